//! What is read back: pages, checkpoints, bodies, results.

use super::fixtures::Script;
use super::ok;
use crate::event::EventKey;
use crate::ids::{EventId, Generation, Seq};
use crate::record::{BreakCause, CallResult, Record, WaitEnd};
use crate::runtime::store::{Checkpoint, Store, StoreError};

pub(super) async fn records_come_in_pages(store: &dyn Store) {
    let mut ada = Script::new("ada");
    for _ in 0..25 {
        ada.record(Record::Reset);
    }
    let whole = ada.take();
    ok(store.commit(whole.clone()).await);
    let mut read = Vec::new();
    loop {
        let after = read.last().map_or(Seq(0), |record: &crate::record::Stamped| record.seq);
        let page = ok(store.records(ada.agent(), after, 10).await);
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 10);
        read.extend(page);
    }
    assert_eq!(read, whole.records);
    assert!(ok(store.records(ada.agent(), Seq(0), 0).await).is_empty());
    assert!(ok(store.records(ada.agent(), Seq(u64::MAX), 10).await).is_empty());
    assert_eq!(ok(store.records(ada.agent(), Seq(24), usize::MAX).await).len(), 1);
}

pub(super) async fn checkpoints_shorten_the_restore(store: &dyn Store) {
    let mut ada = Script::new("ada");
    for _ in 0..4 {
        ada.record(Record::Reset);
    }
    ok(store.commit(ada.take()).await);
    let checkpoint = |seq, byte| Checkpoint { seq: Seq(seq), bytes: vec![byte; 300] };
    for (seq, byte) in [(1, 1), (2, 2), (3, 3), (3, 4)] {
        ok(store.checkpoint(ada.agent(), checkpoint(seq, byte)).await);
        let kept = ok(store.load(ada.agent()).await);
        assert_eq!(kept.checkpoint, Some(checkpoint(seq, byte)));
        assert_eq!(kept.records.len() as u64, 4 - seq);
        assert_eq!(kept.records[0].seq, Seq(seq + 1));
    }
    let ahead = store.checkpoint(ada.agent(), checkpoint(5, 5)).await;
    assert!(matches!(ahead, Err(StoreError::Conflict { .. })), "a checkpoint folds what is kept: {ahead:?}");
    let empty = Checkpoint { seq: Seq(4), bytes: Vec::new() };
    ok(store.checkpoint(ada.agent(), empty.clone()).await);
    assert_eq!(ok(store.load(ada.agent()).await).checkpoint, Some(empty));
}

pub(super) async fn happenings_and_bodies_are_found_in_order(store: &dyn Store) {
    let mut ada = Script::new("ada");
    for n in 1..=5 {
        ada.admit("discord", "c1", "Grace", &format!("text {n}"));
    }
    ada.admit("irc", "c1", "Grace", "text 6");
    ok(store.commit(ada.take()).await);
    let key = |instance: &str, n: u64| EventKey {
        instance: instance.into(),
        external_id: format!("msg:{n}").into(),
    };
    let keys =
        [key("discord", 3), key("irc", 3), key("discord", 1), key("irc", 6), key("", 0), key("discord", 3)];
    let found = ok(store.find(ada.agent(), &keys).await);
    let [three, one, six] = [3, 1, 6].map(|n| Some(EventId(n)));
    assert_eq!(found, [three, None, one, six, None, three]);
    let bodies = ok(store.bodies(ada.agent(), &[EventId(5), EventId(2), EventId(5)]).await);
    assert_eq!(bodies.iter().map(|body| &*body.text).collect::<Vec<_>>(), ["text 5", "text 2", "text 5"]);
    for absent in [EventId(0), EventId(7), EventId(u64::MAX)] {
        let missing = store.bodies(ada.agent(), &[EventId(1), absent]).await;
        assert!(matches!(missing, Err(StoreError::Missing(_))), "{missing:?}");
    }
}

pub(super) async fn results_are_read_back(store: &dyn Store) {
    let mut ada = Script::new("ada");
    let step = ada.reply("", "read", "{}");
    ada.settle(step, 1, "the whole first", None);
    let long = "line\n".repeat(20_000);
    ada.settle(step, 2, &long, None);
    let action = step.action(1);
    let result = |id, full: &str| CallResult { shown: Some("cut".into()), ..CallResult::plain(id, full) };
    let held = "held for review";
    ada.record(Record::Held {
        action,
        name: "send".into(),
        arguments: "{}".into(),
        channel: None,
        reason: "policy".into(),
        result: result(3, held),
    });
    ada.record(Record::Detached { action, result: result(4, "detached") });
    ada.record(Record::WaitEnded { action, end: WaitEnd::TimedOut, result: result(0xFFFF, "waited") });
    ok(store.commit(ada.take()).await);
    for (id, full) in [(1, "the whole first"), (2, &long), (3, held), (4, "detached"), (0xFFFF, "waited")] {
        assert_eq!(ok(store.result(ada.agent(), id).await).as_deref(), Some(full));
    }
    for absent in [0, 5, u64::MAX] {
        assert_eq!(ok(store.result(ada.agent(), absent).await), None);
    }
}

/// A store may keep what is said twice only once; it comes back all the same.
pub(super) async fn repeated_texts_come_back_exactly(store: &dyn Store) {
    let mut ada = Script::new("ada");
    let mut whole = Vec::new();
    let text = (0..400).map(|n| format!("{} ", n * 7919 % 1009)).collect::<String>();
    for round in 0..3_u64 {
        let said = format!("{round} {text}");
        let arguments = serde_json::json!({ "text": said }).to_string();
        ada.record(Record::PrefixMade {
            generation: Generation(round),
            cause: BreakCause::First,
            system: text.as_str().into(),
            tools: "[]".into(),
            functions: Vec::new(),
            facts: Box::default(),
        });
        let events = [1, 2, 3].map(|n| ada.admit("discord", "c1", "Grace", &format!("{n} {said}")));
        ada.frame(&events, &said);
        let step = ada.reply(&said, "discord_send", &arguments);
        ada.intend(step, "discord_send", &arguments);
        let commit = ada.take();
        whole.extend(commit.records.clone());
        ok(store.commit(commit).await);
        ada.settle(step, round + 1, &said, Some(&arguments));
        ada.end_turn(&[]);
        let commit = ada.take();
        whole.extend(commit.records.clone());
        ok(store.commit(commit).await);
    }
    assert_eq!(ok(store.load(ada.agent()).await).records, whole);
    for from in 0..whole.len() {
        let one = ok(store.records(ada.agent(), Seq(from as u64), 1).await);
        assert_eq!(one, whole[from..=from]);
    }
}
