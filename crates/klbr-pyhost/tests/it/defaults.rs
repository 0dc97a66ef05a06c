//! The default policies in Python say what the built-in ones say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::event::{Bucket, Priority, SourceKind};
use klbr_core::ids::{Epoch, EventId, TurnId};
use klbr_core::policy::{Answer, Candidate, NudgeKind, Question, Slot};
use klbr_core::runtime::policy::Policy as _;
use klbr_pyhost::*;

use crate::support::*;

const RUNS: [(Slot, &str); 20] = [
    (Slot::EventPriority, "klbr.policy.attention:priority"),
    (Slot::Wake, "klbr.policy.attention:wake"),
    (Slot::BatchDelay, "klbr.policy.attention:batch_delay"),
    (Slot::Age, "klbr.policy.attention:age"),
    (Slot::EventAccept, "klbr.policy.attention:accept"),
    (Slot::FrameRender, "klbr.policy.attention:render"),
    (Slot::ContextBlocks, "klbr.policy.context:blocks"),
    (Slot::Limits, "klbr.policy.social:limits"),
    (Slot::ResultShape, "klbr.policy.social:shape"),
    (Slot::Idle, "klbr.policy.attention:idle"),
    (Slot::Nudge, "klbr.policy.social:nudge"),
    (Slot::Plan, "klbr.policy.model:plan"),
    (Slot::ActionReview, "klbr.policy.social:review_action"),
    (Slot::DeliveryReview, "klbr.policy.social:review_delivery"),
    (Slot::DeliveryFormat, "klbr.policy.social:format_delivery"),
    (Slot::CompactWhen, "klbr.policy.context:when"),
    (Slot::CompactPrompt, "klbr.policy.context:prompt"),
    (Slot::CompactKeep, "klbr.policy.context:keep"),
    (Slot::ContextSelect, "klbr.policy.context:select"),
    (Slot::DeliveryTarget, "klbr.policy.social:target"),
];

fn defaults(world: &World, prefix: &str) -> HookPolicy {
    let runs: Vec<(Slot, String)> =
        RUNS.iter().map(|(slot, run)| (*slot, run.replacen("klbr.policy", prefix, 1))).collect();
    let hooks: Vec<(&str, Kind, &str)> =
        runs.iter().map(|(slot, run)| (run.as_str(), Kind::Slot, slot.as_str())).collect();
    let worker = world.worker(world.spec(&hooks));
    let bindings: BTreeMap<Slot, SlotBinding> = runs
        .iter()
        .map(|(slot, run)| {
            let (run, deadline) = (run.as_str().into(), Duration::from_secs(20));
            (*slot, SlotBinding { run, deadline, on_death: OnDeath::Fail })
        })
        .collect();
    HookPolicy::new(worker, bindings, world.recorder())
}

fn questions() -> Vec<Question> {
    let mut all = Vec::new();
    for level in [Priority::Ambient, Priority::Directed] {
        for kind in
            [SourceKind::Channel, SourceKind::Job, SourceKind::Team, SourceKind::System, SourceKind::Timer]
        {
            all.push(Question::EventPriority {
                event: EventId(7),
                kind,
                instance: "d".into(),
                priority: level,
            });
        }
    }
    all.push(Question::EventAccept {
        event: EventId(7),
        kind: SourceKind::Channel,
        instance: "d".into(),
        external_id: "msg:1".into(),
        conversation: Some("c".into()),
        priority: Priority::Directed,
        bytes: 12,
    });
    all.push(Question::FrameRender { text: "<nudge>\nä\n</nudge>".into() });
    all.push(Question::ContextBlocks { text: "You are Ada.".into() });
    all.push(Question::Limits { turn: TurnId(3), steps: 50, limit: 50 });
    all.push(Question::ResultShape { action: review().action, name: "look".into(), text: "seen".into() });
    for waiting in [0, 1, 1000] {
        all.extend([true, false].map(|configured| Question::Wake { waiting, configured }));
        all.push(Question::BatchDelay { waiting, configured_ms: waiting as u64 * 8001 });
    }
    for bucket in [Bucket::Dm, Bucket::Mention] {
        all.push(Question::Age { item: "msg:1".into(), instance: "d".into(), bucket, shown_ms: 600_000 });
    }
    all.extend((0..16).chain([u32::MAX]).map(|yields| Question::Idle { yields }));
    for kind in
        [NudgeKind::Delivery, NudgeKind::Silence, NudgeKind::Idle, NudgeKind::WrapUp, NudgeKind::Continue]
    {
        all.push(Question::Nudge { kind, text: "Say it, or wait. ä\"\\".into() });
    }
    for effort in [None, Some("high".into())] {
        all.push(Question::Plan { turn: TurnId(3), model: "m".into(), effort });
    }
    all.extend(
        [Question::ActionReview, Question::DeliveryReview, Question::DeliveryFormat].map(|f| f(review())),
    );
    for used in [0, 99_999, 100_000, u64::MAX] {
        all.push(Question::CompactWhen { used, threshold: 100_000 });
    }
    all.push(Question::CompactPrompt { text: "Summarise.".into() });
    all.extend([0, 3].map(|turns| Question::CompactKeep { messages: 9, turns }));
    for target in [None, Some("d1".into())] {
        all.push(Question::DeliveryTarget { conversations: vec!["d1".into(), "d2".into()], target });
    }
    let candidate = |event| Candidate {
        event: EventId(event),
        kind: SourceKind::Channel,
        instance: "d".into(),
        conversation: (event == 1).then(|| "d1".into()),
        priority: Priority::Directed,
        waited_ms: 3,
        bytes: 12,
    };
    all.push(Question::ContextSelect { events: vec![candidate(1), candidate(2)] });
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_and_rust_say_the_same() {
    let Some(world) = World::new() else { return };
    let policy = defaults(&world, "klbr.policy");
    assert_eq!(ready(&policy).await.failed, []);
    let (mut asked, questions) = (std::collections::BTreeSet::new(), questions());
    for question in &questions {
        asked.insert(question.slot());
        assert_eq!(
            policy.decide(Epoch(1), question.clone()).await.as_ref(),
            Ok(&question.default_answer()),
            "{question:?}"
        );
    }
    assert_eq!(asked.len(), all_slots().len(), "every slot was asked");
    assert_eq!(world.records.lock().unwrap().len(), questions.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_constant_changes_behaviour() {
    let Some(world) = World::new() else { return };
    for (name, text) in Sources.files().iter().filter(|(name, _)| name.starts_with("policy/")) {
        let text = text.replace("IDLE_FIRST = timedelta(seconds=30)", "IDLE_FIRST = timedelta(seconds=7)");
        world.write(&name.replace("policy/", "mine/"), &text);
    }
    let policy = defaults(&world, "mine");
    let answer = policy.decide(Epoch(1), Question::Idle { yields: 3 }).await;
    assert_eq!(answer, Ok(Answer::Delay { millis: 14_000 }));
    let worker: &Arc<Worker> = policy.worker();
    assert!(matches!(worker.state(), State::Ready(_)));
}
