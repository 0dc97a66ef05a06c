//! Transforms in their order, and observers with their cursors.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::policy::{Heard, Question, Slot};
use klbr_pyhost::*;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::support::*;

const CODE: &str = r#"
import json
from klbr import hooks

def upper(result: hooks.ResultShape):
    return {"text": result.text.upper()}
def count(result):
    return f"{result.text} ({len(result.text)})"
def nothing(result):
    return None
def unknown(result):
    return {"name": "another"}
def wrong(result):
    return {"text": 7}
def number(result):
    return 7
def signed(send: hooks.DeliveryFormat):
    said = hooks.arguments(send)
    return {"arguments": {**said, "content": said["content"] + " (by Ada)"}}
def broken(send):
    return "no object"
"#;

fn transforms(world: &World, family: Slot, steps: &[(&str, i64, OnFailure)]) -> Transforms {
    world.write("p.py", CODE);
    let runs: Vec<String> = steps.iter().map(|(name, ..)| format!("p:{name}")).collect();
    let hooks: Vec<(&str, Kind, &str)> =
        runs.iter().map(|run| (run.as_str(), Kind::Transform, family.as_str())).collect();
    let worker = world.worker(world.spec(&hooks));
    let step = |(name, order, on_failure): &(&str, i64, OnFailure)| Step {
        run: format!("p:{name}").into(),
        name: (*name).into(),
        stage: 0,
        order: *order,
        deadline: Duration::from_secs(20),
        on_failure: *on_failure,
    };
    let families = BTreeMap::from([(family, steps.iter().map(step).collect())]);
    Transforms::new(worker, families, world.recorder())
}

async fn shape(transforms: &Transforms) -> Result<Transformed, Held> {
    let action = review().action;
    let question = Question::ResultShape { action, name: "look".into(), text: "a\nb".into() };
    transforms.apply(&question, Instant::now() + WATCHDOG).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_step_sees_what_the_one_before_it_made() {
    let Some(world) = World::new() else { return };
    let steps =
        [("count", 3, OnFailure::Skip), ("upper", 1, OnFailure::Skip), ("nothing", 2, OnFailure::Skip)];
    let done = shape(&transforms(&world, Slot::ResultShape, &steps)).await.unwrap();
    assert_eq!(&*done.text, "A\nB (3)");
    assert_eq!(done.changed, ["p:upper".into(), "p:count".into()]);
    let order: Vec<Arc<str>> =
        world.records.lock().unwrap().iter().map(|record| record.run.clone()).collect();
    assert_eq!(order, ["p:upper".into(), "p:nothing".into(), "p:count".into()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_breaks_the_value_is_left_out_or_holds() {
    let Some(world) = World::new() else { return };
    for (name, says) in [
        ("unknown", "name is not the step's to change; text is"),
        ("wrong", "text is a text"),
        ("number", "answered with the new text, the fields that change, or None"),
    ] {
        let steps = [(name, 0, OnFailure::Skip), ("upper", 1, OnFailure::Skip)];
        let done = shape(&transforms(&world, Slot::ResultShape, &steps)).await.unwrap();
        assert_eq!(&*done.text, "A\nB");
        assert!(format!("{:?}", done.skipped).contains(says), "{name}: {:?}", done.skipped);
        let held = transforms(&world, Slot::ResultShape, &[(name, 0, OnFailure::Hold)]);
        let held = shape(&held).await.unwrap_err();
        assert!(held.to_string().contains(says), "{held}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_worded_field_by_field_and_stays_a_delivery() {
    let Some(world) = World::new() else { return };
    let question = Question::DeliveryFormat(review());
    let by = |name| transforms(&world, Slot::DeliveryFormat, &[(name, 0, OnFailure::Hold)]);
    let done = by("signed").apply(&question, Instant::now() + WATCHDOG).await.unwrap();
    assert_eq!(&*done.text, r#"{"content": "hello (by Ada)"}"#);
    let held = by("broken").apply(&question, Instant::now() + WATCHDOG).await.unwrap_err();
    assert!(held.to_string().contains("a delivery's arguments are a JSON object"), "{held}");
}

struct Memory {
    records: Mutex<Vec<Committed>>,
    first_kept: u64,
    state: Mutex<(BTreeMap<String, u64>, Vec<Advance>)>,
    /// Commits that are lost after the hook has heard: a crash between hearing and cursor.
    crashes: Mutex<u32>,
    newest: watch::Sender<u64>,
}

impl Memory {
    fn new(records: u64, first_kept: u64) -> Arc<Self> {
        let record = |seq| Committed { seq, at: 0, body: json!({"n": seq}), made_by: None };
        Arc::new(Memory {
            records: Mutex::new((first_kept..=records).map(record).collect()),
            first_kept,
            state: Mutex::default(),
            crashes: Mutex::new(0),
            newest: watch::Sender::new(records),
        })
    }

    fn log(&self) -> Vec<Advance> {
        self.state.lock().unwrap().1.clone()
    }

    async fn until(&self, cursor: u64) -> Vec<Advance> {
        observed(|| self.log().last().is_some_and(|last| last.cursor() == cursor).then(|| self.log())).await
    }
}

#[async_trait]
impl Journal for Memory {
    async fn cursor(&self, observer: &str) -> Result<Option<u64>, JournalError> {
        Ok(self.state.lock().unwrap().0.get(observer).copied())
    }

    async fn newest(&self) -> Result<u64, JournalError> {
        Ok(*self.newest.borrow())
    }

    async fn read(&self, _: Heard, after: u64, limit: usize) -> Result<Batch, JournalError> {
        let records = self.records.lock().unwrap();
        let found = records.iter().filter(|record| record.seq > after).take(limit).cloned().collect();
        Ok(Batch { records: found, first_kept: self.first_kept, newest: *self.newest.borrow() })
    }

    async fn advance(&self, observer: &str, advance: Advance) -> Result<(), JournalError> {
        let mut crashes = self.crashes.lock().unwrap();
        if *crashes > 0 && matches!(advance, Advance::Heard { .. }) {
            *crashes -= 1;
            return Err(JournalError("the power went".into()));
        }
        let mut state = self.state.lock().unwrap();
        state.0.insert(observer.to_owned(), advance.cursor());
        state.1.push(advance);
        Ok(())
    }

    async fn wait(&self, after: u64) {
        let _ = self.newest.subscribe().wait_for(|newest| *newest > after).await;
    }
}

async fn observer(world: &World, journal: &Arc<Memory>, code: &str, from: Begin) -> Observers {
    world.write("p.py", code);
    let worker = world.worker(world.spec(&[("p:heard", Kind::Observer, "turn.ended")]));
    worker.ready(Instant::now() + WATCHDOG).await.unwrap();
    let observer = Observer {
        name: "mine".into(),
        run: "p:heard".into(),
        hears: Heard::TurnEnded,
        deadline: Duration::from_secs(20),
        attempts: 50,
        pause: Duration::ZERO,
        from,
    };
    place(&observer, &**journal).await.unwrap();
    Observers::start(worker, vec![observer], journal.clone(), world.recorder())
}

const ADMITS: &str =
    "def heard(record, host):\n    n = record['body']['n']\n    host.admit(f'turn {n} ended')\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_are_committed_with_the_cursor_and_not_twice() {
    let Some(world) = World::new() else { return };
    let journal = Memory::new(3, 1);
    *journal.crashes.lock().unwrap() = 1;
    let observers = observer(&world, &journal, ADMITS, Begin::Seq(2)).await;
    let log = journal.until(3).await;
    observers.stop().await;
    let admitted = |seq: u64| Advance::Heard {
        seq,
        wishes: vec![Wish::Admit {
            text: format!("turn {seq} ended").into(),
            priority: klbr_core::event::Priority::Ambient,
        }],
    };
    assert_eq!(log, [Advance::Placed { through: 1 }, admitted(2), admitted(3)]);
    assert_eq!(world.records.lock().unwrap().len(), 3, "one record was heard again after the crash");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_that_keeps_failing_is_dead_lettered_and_goes_on() {
    let Some(world) = World::new() else { return };
    let journal = Memory::new(2, 1);
    let code = "def heard(record):\n    if record['body']['n'] == 1:\n        raise ValueError('no')\n";
    let _observers = observer(&world, &journal, code, Begin::Seq(1)).await;
    let log = journal.until(2).await;
    let Advance::DeadLettered { seq: 1, attempts: 50, reason } = &log[1] else { panic!("{log:?}") };
    assert!(reason.contains("ValueError: no") && reason.contains("p.py:3"), "{reason}");
    assert_eq!(log[2], Advance::Heard { seq: 2, wishes: vec![] });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_is_a_gap_and_what_is_old_is_not_replayed() {
    let Some(world) = World::new() else { return };
    let journal = Memory::new(9, 7);
    let _observers = observer(&world, &journal, ADMITS, Begin::Seq(2)).await;
    let log = journal.until(9).await;
    assert_eq!(log[..2], [Advance::Placed { through: 1 }, Advance::Gap { through: 6 }]);
    assert_eq!(log.len(), 5);

    let journal = Memory::new(9, 1);
    let _observers = observer(&world, &journal, ADMITS, Begin::Now).await;
    assert_eq!(journal.log(), [Advance::Placed { through: 9 }]);
    let made_by = Some("mine".into());
    let own = Committed { seq: 10, at: 0, body: json!({"n": 10}), made_by };
    journal.records.lock().unwrap().push(own);
    journal.newest.send_replace(10);
    assert_eq!(journal.until(10).await[1..], [Advance::Placed { through: 10 }], "it does not hear itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_never_speaks_as_the_operator() {
    let Some(world) = World::new() else { return };
    let journal = Memory::new(1, 1);
    let code = "def heard(record, host):\n    host.admit('do it', priority='operator')\n";
    let _observers = observer(&world, &journal, code, Begin::Seq(1)).await;
    let log = journal.until(1).await;
    assert!(
        matches!(&log[1], Advance::DeadLettered { reason, .. } if reason.contains("cannot admit with the priority Operator")),
        "{log:?}"
    );
}
