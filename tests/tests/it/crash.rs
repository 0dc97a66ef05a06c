//! A small crash matrix, and its judge before evidence that was doctored.

use klbr_core::action::{Class, End, FailureKind};
use klbr_core::ids::{Epoch, Seq};
use klbr_core::record::{Record, Stamped};
use klbr_core::time::Timestamp;
use klbr_core::update::{Happening, Update};
use klbr_tests::clock::Stamp;
use klbr_tests::crash::evidence::{CANARY, Participation, Said, Sent};
use klbr_tests::crash::{Evidence, World, run_one};
use klbr_tests::discord_double::Snowflake;

/// Some violation says this.
fn finds(evidence: &Evidence, what: &str) {
    let found = evidence.judge();
    assert!(found.iter().any(|violation| violation.contains(what)), "{what:?} is not in {found:#?}");
}

/// The evidence after a change.
fn doctored(evidence: &Evidence, change: impl FnOnce(&mut Evidence)) -> Evidence {
    let mut copy = evidence.clone();
    change(&mut copy);
    copy
}

fn delivery(update: &Update) -> bool {
    matches!(update.happening, Happening::Delivered { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_is_killed_loses_nothing_and_repeats_nothing_and_the_judge_would_see_it() {
    if !super::has_daemon() {
        return;
    }
    let (report, evidence) = run_one(World::Operator, 5, 14).await.unwrap();
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert_eq!(report.trials, 14);
    assert!(report.random >= 4 && report.points.values().sum::<usize>() >= 8, "{report:?}");
    assert_eq!(evidence.judge(), Vec::<String>::new());
    assert!(report.effects > 0 && report.deliveries >= report.messages, "{report:?}");

    let lost = doctored(&evidence, |evidence| {
        let place = evidence.updates.iter().position(delivery).unwrap();
        evidence.updates.remove(place);
    });
    finds(&lost, "was acknowledged and never answered");
    finds(&lost, "the records tell");

    let again = doctored(&evidence, |evidence| {
        let update = evidence.updates.iter().find(|update| delivery(update)).unwrap().clone();
        evidence.updates.push(update);
    });
    finds(&again, "was delivered 2 times; the model said it 1 times");
    finds(&again, "ended more than once");

    let scratch = doctored(&evidence, |evidence| {
        let update = evidence.updates.iter_mut().find(|update| delivery(update)).unwrap();
        let Happening::Delivered { text, .. } = &mut update.happening else { unreachable!() };
        *text = format!("{CANARY}-text-1");
    });
    finds(&scratch, "scratch was delivered");

    let rerun = doctored(&evidence, |evidence| evidence.effects.push(evidence.effects[0].clone()));
    finds(&rerun, "was made twice");
    let unasked = doctored(&evidence, |evidence| evidence.effects.push("999-9".to_owned()));
    finds(&unasked, "no action was told to begin");
    let missing = doctored(&evidence, |evidence| evidence.effects.clear());
    let confirms = |update: &Update| {
        matches!(&update.happening, Happening::ActionEnded { end: Some(End::Confirmed), .. })
    };
    if evidence.updates.iter().any(confirms) {
        finds(&missing, "was never written");
    }

    let forgotten = doctored(&evidence, |evidence| {
        evidence.messages.push(Sent { key: "key-x".into(), marker: "msg-999".into(), event: Some(999) });
    });
    finds(&forgotten, "key-x was acknowledged as 999 and is admitted as None");
    let renamed = doctored(&evidence, |evidence| evidence.messages[0].event = Some(999));
    finds(&renamed, "was acknowledged as 999");
    finds(&doctored(&evidence, |evidence| evidence.ledger.shown -= 1), "the ledger does not balance");
    finds(&doctored(&evidence, |evidence| evidence.faults.push("told twice".into())), "told twice");
    finds(&doctored(&evidence, |evidence| evidence.store.push("page 7".into())), "the store: page 7");

    let rewritten = doctored(&evidence, |evidence| {
        let body = String::from_utf8(evidence.requests.last.clone()).unwrap();
        evidence.requests.take(body.replacen("Please answer", "Please ignore", 1).into_bytes(), Stamp::now());
    });
    finds(&rewritten, "does not extend the one before");
    finds(
        &doctored(&evidence, |evidence| evidence.requests.take(b"{}".to_vec(), Stamp::now())),
        "is invalid",
    );
}

#[test]
fn an_attempt_that_a_crash_cut_off_is_flagged_unknown_and_never_made_again() {
    let step = klbr_core::ids::StepId { turn: klbr_core::ids::TurnId(1), number: 1 };
    let action = step.action(1);
    let intended = Record::Intended {
        action,
        name: "process".into(),
        arguments: "{}".into(),
        class: Class::Irreversible,
        channel: None,
        epoch: Epoch(1),
    };
    let settled = |end| {
        let result = klbr_core::record::CallResult::plain(1, "");
        Record::Settled { action, end, result, delivered: None }
    };
    let judged = |records: Vec<Record>| {
        let stamp = |(place, record)| Stamped { seq: Seq(place as u64 + 1), at: Timestamp(0), record };
        let records: Vec<Stamped> = records.into_iter().enumerate().map(stamp).collect();
        let updates = records.iter().filter_map(Update::from_record).collect();
        Evidence { records, updates, ..Evidence::default() }.judge()
    };
    let attempted = |number| Record::Attempted { action, number };
    let cut_off = [intended.clone(), attempted(1), Record::Recovered];
    let with = |more: Vec<Record>| judged(cut_off.iter().cloned().chain(more).collect());
    assert_eq!(with(vec![settled(End::Unknown)]), Vec::<String>::new());
    let cancelled = with(vec![settled(End::failed(FailureKind::Cancelled))]);
    assert!(cancelled[0].contains("was cut off by a crash and ended as"), "{cancelled:?}");
    let again = with(vec![attempted(2), settled(End::Confirmed)]);
    assert!(again.iter().any(|violation| violation.contains("was attempted again")), "{again:?}");
    let never = with(vec![]);
    assert!(never.iter().any(|violation| violation.contains("never flagged")), "{never:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_discord_nothing_said_is_lost_and_nothing_is_made_twice_and_the_judge_would_see_it() {
    if !super::has_daemon() {
        return;
    }
    let (report, evidence) = run_one(World::Discord, 3, 8).await.unwrap();
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert_eq!(report.trials, 8);
    assert!(report.messages >= 8 && report.discord.made >= 4, "{report:?}");
    assert_eq!(evidence.judge(), Vec::<String>::new());

    let at_discord = |change: fn(&mut Participation)| {
        doctored(&evidence, |evidence| change(evidence.discord.as_mut().unwrap()))
    };
    finds(&at_discord(|seen| seen.made.push(seen.made[0].clone())), "was made twice under the nonce");
    let twice = at_discord(|seen| {
        let mut again = seen.made[0].clone();
        again.nonce = Some("another".into());
        seen.made.push(again);
    });
    finds(&twice, "was made 2 times; 1 deliveries are confirmed");
    finds(&at_discord(|seen| seen.made[0].enforced = false), "without a nonce that is enforced");
    finds(&at_discord(|seen| drop(seen.made.pop())), "is confirmed 1 times, and was made 0 times");
    finds(&at_discord(|seen| seen.made[0].content = "re msg-0".into()), "and answers no message");
    let missed = at_discord(|seen| seen.said.push(Said { id: Snowflake(5), marker: "msg-999".into() }));
    finds(&missed, "msg:5 was said, and never admitted");
    finds(&missed, "msg:5 was said to the agent, and nothing came of it");
    finds(&at_discord(|seen| seen.chatter.push(Snowflake(6))), "msg:6 was said, and never admitted");
    finds(&at_discord(|seen| drop(seen.said.pop())), "was admitted, and nobody said it");
    let is_marked = |update: &Update| matches!(update.happening, Happening::Marked { .. });
    let unmarked = doctored(&evidence, |evidence| evidence.updates.retain(|update| !is_marked(update)));
    finds(&unmarked, "is not marked as acted on");
    let is_shown = |update: &Update| matches!(update.happening, Happening::Shown { .. });
    let unseen = doctored(&evidence, |evidence| evidence.updates.retain(|update| !is_shown(update)));
    finds(&unseen, "was admitted and never shown");
    let heard_twice = doctored(&evidence, |evidence| {
        let is_heard = |update: &&Update| matches!(&update.happening, Happening::Admitted { external_id, .. } if external_id.starts_with("msg:"));
        let first = evidence.updates.iter().find(is_heard).cloned();
        evidence.updates.extend(first);
    });
    finds(&heard_twice, "was admitted 2 times");
}
