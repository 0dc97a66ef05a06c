//! How hooks fail: each row holds the operation, or falls back, within its deadline, and the next question is answered.

use klbr_core::ids::Epoch;
use std::time::Duration;

use klbr_core::policy::{Answer, HookFailure, Slot};
use klbr_core::runtime::policy::Policy as _;
use klbr_pyhost::*;

use crate::support::*;

const DEADLINE: Duration = Duration::from_millis(150);

/// Asks once; the failure comes by the deadline, is recorded once, and is answered with.
async fn fails(world: &World, policy: &HookPolicy) -> (HookFailure, Outcome) {
    let (answer, over) = overrun(DEADLINE, policy.decide(Epoch(1), wake())).await;
    assert!(over <= OVERRUN, "{over:?} beyond the control timer");
    (answer.unwrap_err(), world.record().outcome)
}

/// The next question finds a worker: `waiting: 0` is what every module here answers honestly.
async fn recovers(policy: &HookPolicy) {
    let honest = klbr_core::policy::Question::Wake { waiting: 0, configured: false };
    // The deadline is short on purpose, so that a start may take several questions.
    observed_async(|| async { policy.decide(Epoch(1), honest.clone()).await.ok() }).await;
}

async fn observed_async<T, F: Future<Output = Option<T>>>(mut look: impl FnMut() -> F) -> T {
    let until = tokio::time::Instant::now() + WATCHDOG;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < until, "it never came");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A module that answers honestly unless somebody waits, and does something else then.
fn misbehaving(head: &str, body: &str) -> String {
    let body = body.replace('\n', "\n        ");
    format!(
        "{head}\nasync def f(question, host=None):\n    if question.waiting:\n        {body}\n    return True\n"
    )
}

async fn warm(world: &World, head: &str, body: &str) -> HookPolicy {
    let policy = world.owner(Slot::Wake, &misbehaving(head, body), DEADLINE);
    ready(&policy).await;
    recovers(&policy).await;
    world.records.lock().unwrap().clear();
    policy
}

macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident($world:ident) $body:block)*) => {
        $($(#[$doc])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() { let Some($world) = World::new() else { return }; $body })*
    };
}

rows! {
    a_worker_that_is_dead_at_its_start(world) {
        let policy = world.owner_with(Slot::Wake, "", DEADLINE, |spec| spec.program.python = "/nowhere/python".into());
        let (failure, _) = fails(&world, &policy).await;
        assert!(matches!(failure, HookFailure::Unavailable { .. } | HookFailure::Deadline), "{failure:?}");
        let change = world.until(|change| matches!(change, Change::NotStarted { .. })).await;
        assert!(format!("{change:?}").contains("/nowhere/python"), "{change:?}");
    }

    an_interpreter_that_dies_at_once(world) {
        let policy = world.owner_with(Slot::Wake, "", DEADLINE, |spec| spec.program.python = "/bin/false".into());
        let (failure, _) = fails(&world, &policy).await;
        assert!(matches!(failure, HookFailure::Unavailable { .. } | HookFailure::Deadline), "{failure:?}");
        world.until(|change| matches!(change, Change::Died { .. })).await;
    }

    an_import_that_hangs(world) {
        let hang = "import itertools\nsum(itertools.repeat(0))\n";
        let start = Duration::from_millis(600);
        let policy = world.owner_with(Slot::Wake, hang, DEADLINE, |spec| spec.patience.start = start);
        assert_eq!(fails(&world, &policy).await, (HookFailure::Deadline, Outcome::Deadline));
        let change = world.until(|change| matches!(change, Change::Died { .. })).await;
        let Change::Died { pid, reason, .. } = change else { unreachable!() };
        assert!(reason.contains("not ready within 600ms"), "{reason}");
        assert!(!lives(pid));
    }

    an_import_error(world) {
        let policy = world.owner(Slot::Wake, "x = 1\nimport nothing_of_this_name\n", DEADLINE);
        ready(&policy).await;
        let (failure, _) = fails(&world, &policy).await;
        let HookFailure::Unavailable { reason } = failure else { panic!("{failure:?}") };
        assert!(reason.contains("nothing_of_this_name") && reason.contains("p.py:2"), "{reason}");
    }

    a_syntax_error(world) {
        let policy = world.owner(Slot::Wake, "x = 1\ndef f(:\n", DEADLINE);
        ready(&policy).await;
        let (failure, _) = fails(&world, &policy).await;
        let HookFailure::Unavailable { reason } = failure else { panic!("{failure:?}") };
        assert!(reason.contains("SyntaxError") && reason.contains("p.py:2"), "{reason}");
    }

    an_infinite_loop_in_python(world) {
        let policy = warm(&world, "", "while True:\n    pass").await;
        assert_eq!(fails(&world, &policy).await, (HookFailure::Deadline, Outcome::Deadline));
        let change = world.until(|change| matches!(change, Change::Died { .. })).await;
        assert!(format!("{change:?}").contains("did not answer to being cancelled"), "{change:?}");
        recovers(&policy).await;
    }

    an_infinite_loop_in_c(world) {
        let policy = warm(&world, "import itertools", "sum(itertools.repeat(0))").await;
        assert_eq!(fails(&world, &policy).await, (HookFailure::Deadline, Outcome::Deadline));
        let Change::Died { pid, .. } = world.until(|change| matches!(change, Change::Died { .. })).await else { unreachable!() };
        assert!(!lives(pid));
        recovers(&policy).await;
    }

    a_sleep_that_answers_to_being_cancelled(world) {
        let policy = warm(&world, "import asyncio", "await asyncio.sleep(1000)").await;
        assert_eq!(fails(&world, &policy).await, (HookFailure::Deadline, Outcome::Deadline));
        recovers(&policy).await;
        let died = world.changes.lock().unwrap().iter().any(|change| matches!(change, Change::Died { .. }));
        assert!(!died, "a worker that can be cancelled stays");
    }

    a_deadline_during_garbage_collection(world) {
        let body = "global kept\nkept = [[] for _ in range(400_000)]\nwhile True:\n    gc.collect()";
        let policy = warm(&world, "import gc", body).await;
        assert_eq!(fails(&world, &policy).await, (HookFailure::Deadline, Outcome::Deadline));
        recovers(&policy).await;
    }

    a_memory_blow_up(world) {
        let body = "kept = []\nwhile True:\n    kept.append(bytearray(1 << 24))";
        let policy = warm(&world, "", body).await;
        let (failure, outcome) = fails(&world, &policy).await;
        match failure {
            // It may also have taken until the deadline to come to the limit.
            HookFailure::Deadline => assert_eq!(outcome, Outcome::Deadline),
            HookFailure::Unavailable { reason } => assert!(reason.contains("MemoryError"), "{reason}"),
            failure => panic!("{failure:?}"),
        }
        recovers(&policy).await;
    }

    os_exit(world) {
        let policy = warm(&world, "import os, sys", "sys.stderr.write('last words')\nsys.stderr.flush()\nos._exit(7)").await;
        let question = overrun(DEADLINE, policy.decide(Epoch(1), wake())).await;
        assert!(question.1 <= OVERRUN, "{:?}", question.1);
        question.0.unwrap_err();
        let Change::Died { reason, stderr, .. } = world.until(|change| matches!(change, Change::Died { .. })).await else { unreachable!() };
        assert!(reason.contains("exit status: 7"), "{reason}");
        assert_eq!(&*stderr, "last words");
        recovers(&policy).await;
    }

    sys_exit_is_a_failure_of_the_hook_alone(world) {
        let policy = warm(&world, "", "raise SystemExit(3)").await;
        let (failure, _) = fails(&world, &policy).await;
        assert!(matches!(&failure, HookFailure::Unavailable { reason } if reason.contains("SystemExit: 3")), "{failure:?}");
        recovers(&policy).await;
        assert!(!world.changes.lock().unwrap().iter().any(|change| matches!(change, Change::Died { .. })));
    }

    a_worker_that_is_killed(world) {
        let policy = warm(&world, "import os, signal", "os.kill(os.getpid(), signal.SIGKILL)").await;
        let (answer, over) = overrun(DEADLINE, policy.decide(Epoch(1), wake())).await;
        assert!(over <= OVERRUN && answer.is_err(), "{over:?} {answer:?}");
        recovers(&policy).await;
    }

    a_fork_in_a_hook(world) {
        // The copy goes on as if it were the worker: it must neither answer nor live on.
        let policy = warm(&world, "import os", "pid = os.fork()\nreturn pid != 0").await;
        let (answer, over) = overrun(DEADLINE, policy.decide(Epoch(1), wake())).await;
        assert!(over <= OVERRUN);
        assert_eq!(answer, Ok(Answer::Yes(true)), "the copy answered");
        recovers(&policy).await;
    }

    a_copy_that_spins_dies_with_the_worker(world) {
        let body = "pid = os.fork()\nif pid == 0:\n    open('copy', 'w').write(str(os.getpid()))\n    while True:\n        pass\nreturn True";
        let policy = warm(&world, "import os", body).await;
        assert_eq!(policy.decide(Epoch(1), wake()).await, Ok(Answer::Yes(true)));
        let path = world.path().join("copy");
        let copy: u32 = observed(|| std::fs::read_to_string(&path).ok()?.parse().ok()).await;
        assert!(lives(copy));
        let worker = std::sync::Arc::clone(policy.worker());
        drop(policy);
        std::sync::Arc::into_inner(worker).unwrap().stop().await;
        observed(|| (!lives(copy)).then_some(())).await;
    }

    a_hundred_megabytes_of_output(world) {
        let body = "for _ in range(100):\n    sys.stdout.write('x' * (1 << 20))\n    sys.stderr.write('y' * (1 << 20))\nreturn True";
        let policy = warm(&world, "import sys", body).await;
        let (answer, over) = overrun(DEADLINE, policy.decide(Epoch(1), wake())).await;
        assert!(over <= OVERRUN);
        // In time or not: it is never wrong, and the worker that waited for nobody is still there.
        assert!(matches!(answer, Ok(Answer::Yes(true)) | Err(HookFailure::Deadline)), "{answer:?}");
        recovers(&policy).await;
    }

    output_in_the_middle_of_a_frame(world) {
        let head = "import os, sys, threading\ndef noise():\n    while True:\n        os.write(1, b'\\x00\\x00\\x00\\x05noise')\n        os.write(2, b'{\"t\":\"result\"}')\nthreading.Thread(target=noise, daemon=True).start()";
        let policy = world.owner(Slot::Wake, &misbehaving(head, "return True"), Duration::from_secs(10));
        ready(&policy).await;
        for _ in 0..50 {
            assert_eq!(policy.decide(Epoch(1), wake()).await, Ok(Answer::Yes(true)));
        }
    }

    standard_input_is_not_the_protocol(world) {
        let policy = warm(&world, "import os, sys", "return os.read(0, 100) == b'' and sys.stdin.read() == ''").await;
        assert_eq!(policy.decide(Epoch(1), wake()).await, Ok(Answer::Yes(true)));
    }

    a_wrong_answer_type(world) {
        let policy = warm(&world, "", "return 1").await;
        let (failure, outcome) = fails(&world, &policy).await;
        let HookFailure::Invalid { reason } = failure else { panic!("{failure:?}") };
        assert!(reason.contains("attention.wake is answered with a bool, not with int"), "{reason}");
        assert!(reason.contains("p:f") && reason.contains("p.py:2"), "{reason}");
        assert!(matches!(outcome, Outcome::Invalid { .. }));
    }

    an_exception(world) {
        let policy = warm(&world, "", "raise ValueError('no idea')").await;
        let (failure, outcome) = fails(&world, &policy).await;
        assert!(matches!(&failure, HookFailure::Unavailable { reason } if reason.contains("ValueError: no idea") && reason.contains("p.py:4")), "{failure:?}");
        assert!(matches!(outcome, Outcome::Raised { .. }));
    }

    an_answer_after_the_deadline(world) {
        let body = "try:\n    await asyncio.sleep(1000)\nexcept asyncio.CancelledError:\n    return True";
        let policy = warm(&world, "import asyncio", body).await;
        assert_eq!(fails(&world, &policy).await, (HookFailure::Deadline, Outcome::Deadline));
        recovers(&policy).await;
        let records = world.records.lock().unwrap();
        let late = records.iter().filter(|record| record.outcome == Outcome::Deadline).count();
        assert!(late >= 1 && records[0].answer.is_none());
    }

    a_hook_that_calls_the_host_in_a_loop(world) {
        let body = "try:\n    while True:\n        await host.peek()\nexcept HostError as error:\n    return error.code == 'too_many'";
        world.write("p.py", &misbehaving("from klbr.hooks import HostError", body));
        let spec = world.spec(&[("p:f", Kind::Slot, "attention.wake")]);
        let worker = std::sync::Arc::new(Worker::start(spec, std::sync::Arc::new(Peek), world.watch()));
        let binding = SlotBinding { run: "p:f".into(), deadline: Duration::from_secs(20), on_death: OnDeath::Fail };
        let policy = HookPolicy::new(worker, [(Slot::Wake, binding)].into(), world.recorder());
        assert_eq!(policy.decide(Epoch(1), wake()).await, Ok(Answer::Yes(true)));
    }

    a_worker_that_dies_under_a_required_call_decides_nothing(world) {
        let code = "import os\ndef f(review):\n    os._exit(0)\n";
        let policy = world.owner(Slot::DeliveryReview, code, Duration::from_secs(20));
        let failure = policy.decide(Epoch(1), delivery()).await.unwrap_err();
        assert!(matches!(&failure, HookFailure::Unavailable { reason } if reason.contains("died under the call")), "{failure:?}");
    }

    an_optional_question_is_asked_again_of_the_next_worker(world) {
        let code = "import os\ndef f(question):\n    if not os.path.exists('once'):\n        open('once', 'w').close()\n        os._exit(1)\n    return True\n";
        let policy = world.owner(Slot::Wake, code, Duration::from_secs(20));
        assert_eq!(policy.decide(Epoch(1), wake()).await, Ok(Answer::Yes(true)));
        assert_eq!(world.record().outcome, Outcome::Answered);
    }

    a_future_that_is_dropped_cancels_and_is_recorded(world) {
        let code = "import asyncio\nasync def f(question):\n    open('asked', 'w').close()\n    try:\n        await asyncio.sleep(1000)\n    finally:\n        open('cancelled', 'w').close()\n";
        let policy = world.owner(Slot::Wake, code, Duration::from_secs(20));
        let asked = world.path().join("asked");
        tokio::select! {
            _ = policy.decide(Epoch(1), wake()) => unreachable!(),
            () = observed(|| asked.exists().then_some(())) => {}
        }
        assert_eq!(world.record().outcome, Outcome::Abandoned);
        let cancelled = world.path().join("cancelled");
        observed(|| cancelled.exists().then_some(())).await;
    }

    restarts_are_spaced_and_said(world) {
        let code = "import os\nos._exit(9)\n";
        let _policy = world.owner(Slot::Wake, code, DEADLINE);
        let pauses: Vec<Duration> = observed(|| {
            let changes = world.changes.lock().unwrap();
            let pauses = changes.iter().filter_map(|change| match change {
                Change::Died { pause, .. } => Some(*pause),
                _ => None,
            });
            let pauses: Vec<Duration> = pauses.collect();
            (pauses.len() >= 4).then_some(pauses)
        })
        .await;
        let millis: Vec<u128> = pauses[..4].iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [0, 50, 100, 200]);
    }
}

/// A host whose read asks the very hook that reads.
#[derive(Default)]
struct Mirror(std::sync::OnceLock<std::sync::Weak<HookPolicy>>);

#[async_trait::async_trait]
impl HostCalls for Mirror {
    fn offers(&self) -> Vec<Offer> {
        Peek.offers()
    }

    async fn call(
        &self,
        _: Caller,
        _: &str,
        _: serde_json::Value,
    ) -> Result<serde_json::Value, HostCallError> {
        let policy = self.0.get().and_then(std::sync::Weak::upgrade).unwrap();
        let message = format!("{:?}", policy.decide(Epoch(1), wake()).await);
        Err(HostCallError { code: "mirror", message })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_asks_itself_through_the_host() {
    let Some(world) = World::new() else { return };
    let body = "try:\n    await host.peek()\nexcept HostError as error:\n    return 'p:f would ask itself' in str(error)";
    world.write("p.py", &misbehaving("from klbr.hooks import HostError", body));
    let host = std::sync::Arc::new(Mirror::default());
    let spec = world.spec(&[("p:f", Kind::Slot, "attention.wake")]);
    let worker = std::sync::Arc::new(Worker::start(spec, host.clone(), world.watch()));
    let binding =
        SlotBinding { run: "p:f".into(), deadline: Duration::from_secs(20), on_death: OnDeath::Fail };
    let policy = HookPolicy::new(worker, [(Slot::Wake, binding)].into(), world.recorder());
    let policy = std::sync::Arc::new(policy);
    host.0.set(std::sync::Arc::downgrade(&policy)).unwrap();
    assert_eq!(policy.decide(Epoch(1), wake()).await, Ok(Answer::Yes(true)));
}

struct Peek;

#[async_trait::async_trait]
impl HostCalls for Peek {
    fn offers(&self) -> Vec<Offer> {
        let parameters = serde_json::json!({"type": "object", "properties": {}});
        vec![Offer { name: "peek".into(), doc: "Looks.".into(), parameters }]
    }

    async fn call(
        &self,
        _: Caller,
        _: &str,
        _: serde_json::Value,
    ) -> Result<serde_json::Value, HostCallError> {
        Ok(serde_json::Value::Null)
    }
}
