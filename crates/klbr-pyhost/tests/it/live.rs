//! Activation, epochs, rollback: the success case of policy in Python, and its failures.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::policy::{Answer, Question, Slot};
use klbr_core::runtime::policy::Policy as _;
use klbr_pyhost::*;

use crate::support::*;

#[derive(Default)]
struct Log(Mutex<Vec<Epoch>>);

#[async_trait]
impl EpochLog for Log {
    async fn append(&self, epoch: &Epoch) -> Result<(), String> {
        self.0.lock().unwrap().push(epoch.clone());
        Ok(())
    }
}

struct Home {
    world: World,
    trees: Trees,
    log: Arc<Log>,
    live: Live,
}

impl Home {
    fn new() -> Option<Self> {
        World::new().map(Home::with)
    }

    fn with(world: World) -> Self {
        let trees = Trees::new(world.path());
        let patience = Patience { start: Duration::from_secs(5), ..Patience::default() };
        let trial =
            Trial { program: world.program.clone(), patience, trees: trees.clone(), host: Arc::new(NoHost) };
        let log = Arc::new(Log::default());
        let live = Live::start(
            trial,
            Epochs::default(),
            Probation::default(),
            log.clone(),
            world.recorder(),
            world.watch(),
        );
        Home { world, trees, log, live }
    }

    /// Publishes a module that owns the question whether chatter wakes the agent.
    fn manifest(&self, code: &str) -> Manifest {
        self.manifest_of("attention.wake", code)
    }

    fn manifest_of(&self, slot: &str, code: &str) -> Manifest {
        self.world.write("src/mine.py", code);
        let tree = self.trees.publish(&self.world.path().join("src")).unwrap();
        let text = format!(
            "manifest = 1\n[policy]\ntree = \"{tree}\"\n[[hooks]]\nslot = \"{slot}\"\nrun = \"mine:f\"\ndeadline = \"9s\"\n"
        );
        Manifest::parse("policy.toml", &text, &Known::default()).unwrap()
    }

    async fn activate(&self, code: &str) -> Result<(Epoch, Report), ActivateError> {
        let manifest = self.manifest(code);
        self.live.activate("policy.toml", manifest, self.live.current().epoch.number, &[]).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_is_in_force_and_a_broken_one_is_not() {
    let Some(home) = Home::new() else { return };
    let (epoch, report) = home.activate("def f(q):\n    return q.waiting > 3\n").await.unwrap();
    assert_eq!((epoch.number, report.hooks.len()), (1, 1));
    assert_eq!(home.live.decide(klbr_core::ids::Epoch(1), wake()).await, Ok(Answer::Yes(false)));

    let broken = [
        ("def f(q:\n", "mine.py:1"),
        ("import nothing_here\n", "mine.py:1"),
        ("def g(q):\n    return True\n", "mine has no f"),
        ("def f():\n    return True\n", "takes a question"),
        (
            "from klbr import hooks\n@hooks.slot('turn.idle')\ndef f(q):\n    return True\n",
            "the slot turn.idle, and is bound as the slot attention.wake",
        ),
        ("from klbr import hooks\ndef f(q: hooks.TurnIdle):\n    return True\n", "takes a TurnIdle"),
    ];
    for (code, says) in broken {
        let error = home.activate(code).await.unwrap_err();
        assert!(matches!(error, ActivateError::Refused(Refused::Hooks(_))), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(home.live.current().epoch.number, 1);
    assert_eq!(home.log.0.lock().unwrap().len(), 1);
    assert_eq!(home.live.decide(klbr_core::ids::Epoch(1), wake()).await, Ok(Answer::Yes(false)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_hangs_is_refused_in_time() {
    let Some(home) = Home::new() else { return };
    let error = home.activate("import time\ntime.sleep(1000)\n").await.unwrap_err();
    assert!(error.to_string().contains("an import took longer than 5s"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_required_hook_is_tried_before_it_owns_anything() {
    let Some(home) = Home::new() else { return };
    let manifest = home.manifest_of("delivery.review", "def f(review):\n    return True\n");
    let error = home.live.activate("policy.toml", manifest, 0, &[]).await.unwrap_err();
    assert!(error.to_string().contains("mine:f is required, and failed when it was tried"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_tells_what_would_be_decided_differently() {
    let Some(home) = Home::new() else { return };
    let recorded: Vec<Recorded> = (0..6)
        .map(|waiting| {
            let question = Question::Wake { waiting, configured: true };
            Recorded { answer: question.default_answer(), question }
        })
        .collect();
    let manifest = home.manifest("def f(q):\n    return q.waiting > 3\n");
    let report = home.live.dry_run("policy.toml", &manifest, &recorded).await.unwrap();
    let changed: Vec<&Question> = report.differences.iter().map(|difference| &difference.question).collect();
    let question = |waiting| Question::Wake { waiting, configured: true };
    assert_eq!((report.asked, changed), (6, vec![&question(1), &question(2), &question(3)]));
    assert_eq!(home.live.current().epoch.number, 0);
    assert!(home.world.records.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_keeps_the_epoch_that_it_was_asked_in() {
    let Some(home) = Home::new() else { return };
    let code = "import asyncio, os\nasync def f(q):\n    open('asked', 'w').close()\n    while not os.path.exists('go'):\n        await asyncio.sleep(0.002)\n    return True\n";
    home.activate(code).await.unwrap();
    let asked = home.world.path().join("asked");
    let changing = async {
        observed(|| asked.exists().then_some(())).await;
        home.activate("def f(q):\n    return False\n").await.unwrap();
        assert_eq!(home.live.decide(klbr_core::ids::Epoch(1), wake()).await, Ok(Answer::Yes(false)));
        std::fs::write(home.world.path().join("go"), "").unwrap();
    };
    let (old, ()) = tokio::join!(home.live.decide(klbr_core::ids::Epoch(1), wake()), changing);
    assert_eq!(old, Ok(Answer::Yes(true)));
    let epochs: Vec<u64> = home.world.records.lock().unwrap().iter().map(|record| record.epoch).collect();
    assert_eq!(epochs, [2, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_activations_at_once_one_is_told_that_it_came_second() {
    let Some(home) = Home::new() else { return };
    let first = home.manifest("def f(q):\n    return True\n");
    let second = home.manifest("def f(q):\n    return False\n");
    let (a, b) = tokio::join!(
        home.live.activate("a.toml", first, 0, &[]),
        home.live.activate("b.toml", second, 0, &[])
    );
    let errors: Vec<ActivateError> = [a, b].into_iter().filter_map(Result::err).collect();
    assert!(
        matches!(errors[..], [ActivateError::Epoch(EpochError::Superseded { expected: 0, current: 1 })]),
        "{errors:?}"
    );
    assert_eq!(home.live.epochs().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollback_needs_no_python() {
    let Some(mut world) = World::new() else { return };
    let python = world.path().join("python");
    std::os::unix::fs::symlink(&world.program.python, &python).unwrap();
    world.program.python = python.clone();
    let home = Home::with(world);
    home.activate("def f(q):\n    return True\n").await.unwrap();
    home.activate("def f(q):\n    return False\n").await.unwrap();
    std::fs::remove_file(&python).unwrap();
    let started = std::time::Instant::now();
    let epoch = home.live.roll_back(0).await.unwrap();
    let took = started.elapsed();
    assert!(took < Duration::from_millis(200), "{took:?}");
    assert_eq!((epoch.number, &epoch.cause), (3, &Cause::RolledBack { to: 0 }));
    assert_eq!(home.live.slots().len(), 0);
    assert_eq!(home.live.roll_back(1).await.unwrap().number, 4);
    assert!(home.live.decide(klbr_core::ids::Epoch(1), wake()).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_epoch_whose_worker_keeps_dying_goes_back_by_itself() {
    let Some(home) = Home::new() else { return };
    home.activate("def f(q):\n    return False\n").await.unwrap();
    // Well behaved until it is in force.
    let code = "import os\nif os.path.exists('in_force'):\n    os._exit(1)\ndef f(q):\n    os._exit(1)\n";
    home.activate(code).await.unwrap();
    std::fs::write(home.world.path().join("in_force"), "").unwrap();
    let _ = home.live.decide(klbr_core::ids::Epoch(1), wake()).await;
    observed(|| (home.live.current().epoch.number == 3).then_some(())).await;
    let epoch = home.live.current().epoch.clone();
    assert!(matches!(epoch.cause, Cause::Failed { epoch: 2, to: 1, .. }), "{epoch:?}");
    assert_eq!(home.live.decide(klbr_core::ids::Epoch(1), wake()).await, Ok(Answer::Yes(false)));
    assert_eq!(home.log.0.lock().unwrap().len(), 3);
    assert_eq!(Slot::Wake.as_str(), "attention.wake");
}
