//! Commits: whole or not at all, in order, once.

use futures_util::future::{join_all, poll_immediate};

use super::fixtures::{Script, body, header};
use super::ok;
use crate::event::EventKey;
use crate::ids::{EventId, Seq};
use crate::record::Record;
use crate::runtime::store::{Commit, Kept, Store, StoreError};

pub(super) async fn a_new_agent_is_empty(store: &dyn Store) {
    let ada = Script::new("ada").agent().clone();
    let kept = ok(store.load(&ada).await);
    assert!(kept.checkpoint.is_none() && kept.records.is_empty());
    assert_eq!(ok(store.last(&ada).await), Seq(0));
    assert!(ok(store.records(&ada, Seq(0), 10).await).is_empty());
    assert!(ok(store.agents().await).is_empty());
    assert!(ok(store.ledger(&ada).await).balances());
    assert!(ok(store.pinned(&ada).await).is_empty());
    assert_eq!(ok(store.result(&ada, 1).await), None);
    let key = EventKey { instance: "discord".into(), external_id: "msg:1".into() };
    assert_eq!(ok(store.find(&ada, &[key]).await), [None]);
    assert!(ok(store.bodies(&ada, &[]).await).is_empty());
}

pub(super) async fn what_is_committed_comes_back_exactly(store: &dyn Store) {
    let mut ada = Script::new("ada");
    let event = ada.admit("discord", "c1", "Grace \u{0} \"<b>\"", "first\r\nsecond \u{1F980}\u{0}");
    ada.frame(&[event], "first");
    let step = ada.reply("thinking", "local_send", "{\"text\":\"hi\\u0000\"}");
    ada.settle(step, 1, "sent", Some("{\"text\":\"hi\"}"));
    ada.record(Record::Reset);
    ada.record(Record::Recovered);
    let commit = ada.take();
    ok(store.commit(commit.clone()).await);
    let Kept { checkpoint, records } = ok(store.load(ada.agent()).await);
    assert_eq!((checkpoint, &records), (None, &commit.records));
    assert_eq!(ok(store.bodies(ada.agent(), &[event]).await), [commit.bodies[0].1.clone()]);
    assert_eq!(ok(store.last(ada.agent()).await), Seq(6));
    assert_eq!(ok(store.agents().await), [ada.agent().clone()]);
}

pub(super) async fn records_that_do_not_follow_are_a_conflict(store: &dyn Store) {
    let mut ada = Script::new("ada");
    for _ in 0..3 {
        ada.record(Record::Reset);
    }
    let whole = ada.take();
    let part =
        |range: std::ops::Range<usize>| Commit { records: whole.records[range].to_vec(), ..whole.clone() };
    let gap = store.commit(part(1..2)).await;
    assert!(matches!(gap, Err(StoreError::Conflict { expected: Seq(1), got: Seq(2) })), "{gap:?}");
    ok(store.commit(part(0..2)).await);
    let again = store.commit(part(1..3)).await;
    assert!(matches!(again, Err(StoreError::Conflict { expected: Seq(3), got: Seq(2) })), "{again:?}");
    let mut torn = part(2..3);
    torn.records.push(whole.records[0].clone());
    assert!(matches!(store.commit(torn).await, Err(StoreError::Conflict { expected: Seq(4), got: Seq(1) })));
    assert_eq!(ok(store.last(ada.agent()).await), Seq(2));
    ok(store.commit(part(2..3)).await);
    ok(store.commit(part(0..0)).await);
}

pub(super) async fn nothing_of_a_refused_commit_stays(store: &dyn Store) {
    let mut ada = Script::new("ada");
    ada.admit("discord", "c1", "Grace", "kept");
    ok(store.commit(ada.take()).await);
    let mut doomed = ada.clone();
    let event = doomed.admit("discord", "c1", "Grace", "doomed");
    doomed.frame(&[event], "doomed");
    let mut commit = doomed.take();
    commit.records[1].seq = Seq(9);
    assert!(store.commit(commit).await.is_err());
    assert_eq!(ok(store.last(ada.agent()).await), Seq(1));
    assert_eq!(ok(store.ledger(ada.agent()).await).admitted, 1);
    assert!(matches!(store.bodies(ada.agent(), &[event]).await, Err(StoreError::Missing(_))));
    let key = EventKey { instance: "discord".into(), external_id: "msg:2".into() };
    assert_eq!(ok(store.find(ada.agent(), &[key]).await), [None]);
    ok(store.commit(doomed_again(&mut ada)).await);
    assert_eq!(ok(store.ledger(ada.agent()).await).waiting, 2);
}

fn doomed_again(ada: &mut Script) -> Commit {
    ada.admit("discord", "c1", "Grace", "not doomed");
    ada.take()
}

pub(super) async fn an_event_is_admitted_once(store: &dyn Store) {
    let mut ada = Script::new("ada");
    ada.admit("discord", "c1", "Grace", "once");
    ok(store.commit(ada.take()).await);
    let admit = |ada: &mut Script, id: EventId, external_id: &str| {
        let event = header(id, "discord", "c1", external_id, "twice");
        ada.record(Record::Admitted { event, held: false });
        Commit { bodies: vec![(id, body("Grace", "twice"))], ..ada.take() }
    };
    for (id, external_id) in [(EventId(2), "msg:1"), (EventId(1), "msg:2")] {
        let again = store.commit(admit(&mut ada.clone(), id, external_id)).await;
        assert!(matches!(again, Err(StoreError::Contradiction(_))), "{again:?}");
    }
    let mut twice = ada.clone();
    let mut both = admit(&mut twice, EventId(2), "msg:2");
    let other = admit(&mut twice, EventId(3), "msg:2");
    both.records.extend(other.records);
    both.bodies.extend(other.bodies);
    assert!(matches!(store.commit(both).await, Err(StoreError::Contradiction(_))));
    ok(store.commit(admit(&mut ada, EventId(2), "msg:2")).await);
    assert_eq!(ok(store.ledger(ada.agent()).await).admitted, 2);
}

pub(super) async fn admissions_and_bodies_pair_up(store: &dyn Store) {
    let mut ada = Script::new("ada");
    ada.admit("discord", "c1", "Grace", "whole");
    let whole = ada.take();
    let without = Commit { bodies: Vec::new(), ..whole.clone() };
    assert!(matches!(store.commit(without).await, Err(StoreError::Contradiction(_))));
    let mut spare = whole.clone();
    spare.bodies.push((EventId(7), body("Grace", "spare")));
    assert!(matches!(store.commit(spare).await, Err(StoreError::Contradiction(_))));
    ok(store.commit(whole).await);
}

pub(super) async fn two_agents_share_nothing(store: &dyn Store) {
    let (mut ada, mut bob) = (Script::new("ada"), Script::new("bob"));
    for (script, text) in [(&mut ada, "for ada alone"), (&mut bob, "for bob alone")] {
        script.admit("discord", "c1", "Grace", text);
        let step = script.reply("", "read", "{}");
        script.settle(step, 1, &format!("a result {text}"), None);
    }
    let (a, b) = tokio::join!(store.commit(ada.take()), store.commit(bob.take()));
    ok(a);
    ok(b);
    for (script, text) in [(&ada, "for ada alone"), (&bob, "for bob alone")] {
        let agent = script.agent();
        assert_eq!(&*ok(store.bodies(agent, &[EventId(1)]).await)[0].text, text);
        assert_eq!(ok(store.result(agent, 1).await).as_deref(), Some(&*format!("a result {text}")));
        assert_eq!(ok(store.ledger(agent).await).admitted, 1);
        assert_eq!(ok(store.last(agent).await), Seq(3));
    }
    assert_eq!(ok(store.agents().await), [ada.agent().clone(), bob.agent().clone()]);
}

pub(super) async fn many_writers_at_once_keep_every_order(store: &dyn Store) {
    let names = ["ada", "bob", "cyd", "dee"];
    let lives = names.map(|name| async move {
        let mut script = Script::new(name);
        let mut whole = Vec::new();
        for n in 0..25 {
            script.admit("discord", "c1", name, &format!("{name} says {n}"));
            let commit = script.take();
            whole.extend(commit.records.clone());
            ok(store.commit(commit).await);
        }
        (script, whole)
    });
    for (script, whole) in join_all(lives).await {
        assert_eq!(ok(store.load(script.agent()).await).records, whole);
        assert_eq!(ok(store.ledger(script.agent()).await).waiting, 25);
    }
}

pub(super) async fn one_of_two_writers_wins(store: &dyn Store) {
    let mut ada = Script::new("ada");
    let mut rival = ada.clone();
    ada.admit("discord", "c1", "Grace", "mine");
    rival.admit("discord", "c1", "Grace", "mine too");
    let (one, other) = tokio::join!(store.commit(ada.take()), store.commit(rival.take()));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    let lost = one.and(other);
    assert!(matches!(lost, Err(StoreError::Conflict { expected: Seq(2), got: Seq(1) })), "{lost:?}");
    assert_eq!(ok(store.ledger(ada.agent()).await).admitted, 1);
}

pub(super) async fn a_dropped_future_undoes_nothing(store: &dyn Store) {
    let mut ada = Script::new("ada");
    ada.record(Record::Reset);
    let first = ada.take();
    ada.record(Record::Recovered);
    let second = ada.take();
    // Polled once it is handed over, at the latest; then nobody listens.
    let heard = poll_immediate(store.commit(first)).await;
    assert!(heard.is_none_or(|heard| heard.is_ok()));
    ok(store.commit(second).await);
    assert_eq!(ok(store.last(ada.agent()).await), Seq(2));
}
