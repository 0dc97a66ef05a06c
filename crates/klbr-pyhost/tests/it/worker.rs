//! What a healthy worker does: answers, reads of the host, records, logs, signs of life.

use klbr_core::ids::Epoch;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::event::Priority;
use klbr_core::policy::{Answer, HookFailure, Slot, Verdict};
use klbr_core::runtime::policy::Policy as _;
use klbr_pyhost::*;
use serde_json::{Value, json};

use crate::support::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_decides_and_leaves_one_record() {
    let Some(world) = World::new() else { return };
    let policy = world.owner(
        Slot::DeliveryReview,
        r#"
from klbr import hooks

@hooks.slot("delivery.review", deadline="300ms")
async def f(send: hooks.DeliveryReview) -> hooks.Verdict:
    return hooks.hold("not this: " + hooks.arguments(send)["content"])
"#,
        SECOND * 5,
    );
    let loaded = ready(&policy).await;
    assert_eq!(loaded.hooks[0].deadline_ms, Some(300));
    assert!(loaded.hooks[0].file.as_deref().unwrap().ends_with("p.py"), "{:?}", loaded.hooks);
    let answer = policy.decide(Epoch(1), delivery()).await.unwrap();
    assert_eq!(answer, Answer::Verdict(Verdict::Hold { reason: "not this: hello".into() }));
    let record = world.record();
    assert_eq!(
        (&*record.run, record.kind, &*record.name, record.epoch),
        ("p:f", Kind::Slot, "delivery.review", 1)
    );
    assert_eq!(record.outcome, Outcome::Answered);
    assert_eq!(record.answer, Some(serde_json::to_value(&answer).unwrap()));
    assert!(record.elapsed < record.deadline);
}

struct Reads;

#[async_trait]
impl HostCalls for Reads {
    fn offers(&self) -> Vec<Offer> {
        let parameters = json!({
            "type": "object",
            "properties": {"conversation": {"type": "string"}, "minutes": {"type": "integer", "default": 5}},
            "required": ["conversation"],
        });
        vec![Offer { name: "recent_deliveries".into(), doc: "What was said lately.".into(), parameters }]
    }

    async fn call(&self, caller: Caller, name: &str, arguments: Value) -> Result<Value, HostCallError> {
        assert_eq!((&*caller.who, name), ("p:f", "recent_deliveries"));
        match arguments["minutes"].as_u64() {
            Some(10) => Ok(json!(["a", "b"])),
            _ => Err(HostCallError { code: "refused", message: "ten minutes or nothing".into() }),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_reads_the_host_while_it_is_asked() {
    let Some(world) = World::new() else { return };
    world.write(
        "p.py",
        r#"
from klbr import hooks

async def f(question: hooks.ActionReview, host: hooks.Host):
    recent = await host.recent_deliveries("d1", minutes=10)
    try:
        await host.recent_deliveries("d1", minutes=3)
    except hooks.HostError as error:
        return hooks.deny(f"{len(recent)} and {error.code}: {error}")
"#,
    );
    let spec = world.spec(&[("p:f", Kind::Slot, "action.review")]);
    let worker = Arc::new(Worker::start(spec, Arc::new(Reads), world.watch()));
    let binding = SlotBinding { run: "p:f".into(), deadline: SECOND * 10, on_death: OnDeath::Fail };
    let policy = HookPolicy::new(worker, [(Slot::ActionReview, binding)].into(), world.recorder());
    let answer = policy.decide(Epoch(1), klbr_core::policy::Question::ActionReview(review())).await.unwrap();
    let reason = "2 and refused: ten minutes or nothing".into();
    assert_eq!(answer, Answer::Verdict(Verdict::Deny { reason }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_checked_against_the_domain() {
    let Some(world) = World::new() else { return };
    let policy = world.owner(Slot::EventPriority, "def f(event):\n    return 'operator'\n", SECOND * 10);
    let failure = policy.decide(Epoch(1), priority(Priority::Ambient)).await.unwrap_err();
    let HookFailure::Invalid { reason } = &failure else { panic!("{failure:?}") };
    assert!(reason.contains("an event from outside cannot become Operator"), "{reason}");
    assert!(matches!(world.record().outcome, Outcome::Invalid { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_run_beside_each_other_on_one_thread() {
    let Some(world) = World::new() else { return };
    let code = r#"
import asyncio, threading
seen = []
async def f(question):
    seen.append(threading.current_thread() is threading.main_thread())
    if question.waiting == 1:
        while len(seen) < 2:
            await asyncio.sleep(0.001)
    return all(seen)
"#;
    let policy = world.owner(Slot::Wake, code, SECOND * 20);
    let question = |waiting| klbr_core::policy::Question::Wake { waiting, configured: false };
    let (first, second) =
        tokio::join!(policy.decide(Epoch(1), question(1)), policy.decide(Epoch(1), question(2)));
    assert_eq!((first, second), (Ok(Answer::Yes(true)), Ok(Answer::Yes(true))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_leaves_nothing_behind() {
    let Some(world) = World::new() else { return };
    let policy = world.owner(
        Slot::Wake,
        "import subprocess\ndef f(q):\n    child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n    open('child', 'w').write(str(child.pid))\n    return True\n",
        SECOND * 20,
    );
    let loaded = ready(&policy).await;
    policy.decide(Epoch(1), wake()).await.unwrap();
    let worker = Arc::clone(policy.worker());
    drop(policy);
    Arc::into_inner(worker).unwrap().stop().await;
    assert!(!lives(loaded.pid));
    let child: u32 = std::fs::read_to_string(world.path().join("child")).unwrap().parse().unwrap();
    assert!(!lives(child), "what left the group is gone too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_user_code_logs_arrives_as_records_also_its_last_words() {
    let Some(world) = World::new() else { return };
    let code = r#"import logging, os, sys
log = logging.getLogger("mine")
log.info("imported")
async def f(question):
    if not question.waiting:
        log.debug("not asked for")
        log.warning("%d wait", question.waiting)
        log.error("%d", "no number")
        try:
            raise ValueError("no idea")
        except ValueError:
            log.exception("it failed")
        return True
    log.critical("the end")
    os._exit(1)
"#;
    let policy = world.owner(Slot::Wake, code, SECOND * 20);
    let question = |waiting| klbr_core::policy::Question::Wake { waiting, configured: false };
    assert_eq!(policy.decide(Epoch(1), question(0)).await, Ok(Answer::Yes(true)));
    {
        // The records stand in front of the answer.
        let logged = world.logged.lock().unwrap();
        let told: Vec<(Level, &str)> =
            logged.iter().map(|one| (one.level, one.message.lines().next().unwrap_or_default())).collect();
        let expected = [
            (Level::Info, "imported"),
            (Level::Warning, "0 wait"),
            (Level::Error, "'%d' (TypeError: %d format: a real number is required, not str)"),
            (Level::Error, "it failed"),
        ];
        assert_eq!(told, expected);
        assert_eq!((logged[0].run.as_deref(), logged[1].run.as_deref()), (None, Some("p:f")));
        assert_eq!((&*logged[1].logger, logged[1].line), ("mine", Some(7)));
        assert!(logged[1].file.as_deref().is_some_and(|file| file.ends_with("p.py")), "{logged:?}");
        assert!(logged[3].message.contains("ValueError: no idea"), "{logged:?}");
    }
    let policy = Arc::new(policy);
    let asking = tokio::spawn({
        let policy = Arc::clone(&policy);
        async move { policy.decide(Epoch(1), question(1)).await }
    });
    let last = || world.logged.lock().unwrap().iter().find(|one| one.level == Level::Critical).cloned();
    assert_eq!(&*observed(last).await.message, "the end");
    asking.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_records_is_counted_and_harms_nobody() {
    let Some(world) = World::new() else { return };
    let code = r#"import logging, threading
def flood():
    while True:
        logging.warning("x" * 100_000)
threading.Thread(target=flood, daemon=True).start()
async def f(question):
    return True
"#;
    let policy = world.owner(Slot::Wake, code, SECOND * 20);
    for _ in 0..20 {
        assert_eq!(policy.decide(Epoch(1), wake()).await, Ok(Answer::Yes(true)));
    }
    let counted = || world.logged.lock().unwrap().iter().find(|one| one.left_out > 0).cloned();
    let record = observed(counted).await;
    assert_eq!(record.message.len(), 4096);
    assert!(world.logged.lock().unwrap().len() < 1000);
}

/// A worker that is asked for a sign of life whenever it is idle for a moment.
fn felt_for(world: &World, code: &str) -> HookPolicy {
    world.owner_with(Slot::Wake, code, SECOND * 20, |spec| {
        spec.patience.heartbeat = Duration::from_millis(30);
        spec.patience.silence = Duration::from_millis(250);
    })
}

async fn is_replaced(world: &World, policy: &HookPolicy) {
    let Change::Died { pid, reason, .. } = world.until(|change| matches!(change, Change::Died { .. })).await
    else {
        unreachable!()
    };
    assert!(reason.contains("did not answer its heartbeat within 250ms"), "{reason}");
    assert!(!lives(pid));
    let question = klbr_core::policy::Question::Wake { waiting: 0, configured: false };
    assert_eq!(policy.decide(Epoch(1), question).await, Ok(Answer::Yes(true)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_stuck_without_a_call_is_replaced() {
    let Some(world) = World::new() else { return };
    let code = r#"import asyncio, time
async def f(question):
    if question.waiting:
        # It answers, and then holds the thread on which calls run for ever.
        asyncio.get_running_loop().call_later(0.01, time.sleep, 1000)
    return True
"#;
    let policy = felt_for(&world, code);
    assert_eq!(policy.decide(Epoch(1), wake()).await, Ok(Answer::Yes(true)));
    is_replaced(&world, &policy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_stopped_without_a_call_is_replaced() {
    let Some(world) = World::new() else { return };
    let policy = felt_for(&world, "def f(question):\n    return True\n");
    let pid = rustix::process::Pid::from_raw(ready(&policy).await.pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    is_replaced(&world, &policy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_busy_with_a_call_is_left_alone() {
    let Some(world) = World::new() else { return };
    let code = "import time\ndef f(question):\n    time.sleep(1)\n    return True\n";
    let policy = felt_for(&world, code);
    let pid = ready(&policy).await.pid;
    for _ in 0..2 {
        assert_eq!(policy.decide(Epoch(1), wake()).await, Ok(Answer::Yes(true)));
    }
    assert_eq!(ready(&policy).await.pid, pid);
}
