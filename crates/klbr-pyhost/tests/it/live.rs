//! Activation, epochs, rollback, over an agent that lives: the records are the truth.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::config::Config;
use klbr_core::event::{Body, NewEvent, Priority, Source, SourceKind};
use klbr_core::ids::{Epoch, Seq};
use klbr_core::policy::{Answer, Cause, InForce, Question};
use klbr_core::record::Record;
use klbr_core::runtime::policy::Policy as _;
use klbr_core::runtime::store::Store as _;
use klbr_core::runtime::{AgentBuilder, RunningAgent};
use klbr_core::testkit::{MemoryStore, Scripted, ScriptedModel};
use klbr_core::update::Happening;
use klbr_pyhost::*;

use crate::support::*;

const WAIT: (&str, &str) = ("wait_and_continue", r#"{"seconds":600}"#);

struct Home {
    world: World,
    trees: Trees,
    store: MemoryStore,
    model: ScriptedModel,
    life: Life,
}

/// From a start of the agent to its end.
struct Life {
    live: Live,
    agent: RunningAgent,
    _attached: Attached,
}

impl Home {
    async fn new() -> Option<Self> {
        Some(Home::with(World::new()?).await)
    }

    async fn with(world: World) -> Self {
        let (store, model) = (MemoryStore::new(), ScriptedModel::new([]));
        let life = begin(&world, &store, &model).await;
        let trees = Trees::new(world.path());
        Home { world, trees, store, model, life }
    }

    /// Ends the agent as a kill would, and begins anew on what is kept.
    async fn restart(self) -> Self {
        let Home { world, trees, store, model, life } = self;
        let Life { live, agent, _attached } = life;
        _attached.stop().await;
        drop(live);
        agent.shutdown().await;
        let life = begin(&world, &store, &model).await;
        Home { world, trees, store, model, life }
    }

    /// Publishes a module that owns the question whether chatter wakes the agent.
    fn manifest(&self, code: &str) -> Manifest {
        self.manifest_of("slot = \"attention.wake\"", code)
    }

    fn manifest_of(&self, bound: &str, code: &str) -> Manifest {
        self.world.write("src/mine.py", code);
        let tree = self.trees.publish(&self.world.path().join("src")).unwrap();
        let text = format!(
            "manifest = 1\n[policy]\ntree = \"{tree}\"\n[[hooks]]\n{bound}\nrun = \"mine:f\"\ndeadline = \"9s\"\n"
        );
        Manifest::parse("policy.toml", &text, &Known::default()).unwrap()
    }

    async fn activate(&self, code: &str) -> Result<(InForce, Report), ActivateError> {
        self.put(self.manifest(code)).await
    }

    async fn put(&self, manifest: Manifest) -> Result<(InForce, Report), ActivateError> {
        self.life.live.activate(order(manifest)).await
    }

    async fn epochs(&self) -> Vec<InForce> {
        self.life.live.history().await.unwrap()
    }

    async fn current(&self) -> InForce {
        self.epochs().await.pop().unwrap()
    }

    async fn roll_back(&self, to: u64) -> Result<InForce, ActivateError> {
        self.life.live.roll_back(&format!("back-{to}"), None, Some(Epoch(to))).await
    }

    async fn ask(&self, epoch: u64) -> Result<Answer, klbr_core::policy::HookFailure> {
        self.life.live.decide(Epoch(epoch), wake()).await
    }

    async fn records(&self) -> Vec<Record> {
        let agent = "ada".parse().unwrap();
        let stamped = self.store.records(&agent, Seq(0), usize::MAX).await.unwrap();
        stamped.into_iter().map(|stamped| stamped.record).collect()
    }
}

/// An activation that follows on whatever is in force.
fn order(manifest: Manifest) -> Order {
    static KEYS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let key = KEYS.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string();
    Order { key, via: None, file: "policy.toml".into(), manifest, expected: None, now: false }
}

async fn begin(world: &World, store: &MemoryStore, model: &ScriptedModel) -> Life {
    let live = Live::new(Parts {
        trial: Trial {
            program: world.program.clone(),
            patience: Patience { start: Duration::from_secs(5), ..Patience::default() },
            trees: Trees::new(world.path()),
            host: Arc::new(NoHost),
            variables: Arc::new(|name| match name {
                "COLOUR" => Ok("green".into()),
                _ => Err("is not set"),
            }),
        },
        manifests: Manifests::new(world.path()),
        questions: Questions::new(&world.path().join("ada")),
        probation: Probation::default(),
        recorder: world.recorder(),
        watch: world.watch(),
    });
    let mut config = Config::new("ada".parse().unwrap(), "m");
    config.questions_kept = 8;
    let builder = AgentBuilder::new(config, store.clone(), model.clone()).policy(live.clone());
    let agent = builder.start().await.unwrap();
    let attached = live.attach(agent.handle().clone());
    Life { live, agent, _attached: attached }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_is_in_force_and_a_broken_one_is_not() {
    let Some(home) = Home::new().await else { return };
    let (epoch, report) = home.activate("def f(q):\n    return q.waiting > 3\n").await.unwrap();
    assert_eq!((epoch.epoch, report.hooks.len()), (Epoch(2), 1));
    assert_eq!(home.ask(2).await, Ok(Answer::Yes(false)));

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
        ("def f(q):\n    return 'yes'\n", "attention.wake is answered with a bool, not with str"),
    ];
    for (code, says) in broken {
        let error = home.activate(code).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(home.current().await.epoch, Epoch(2));
    assert_eq!(home.ask(2).await, Ok(Answer::Yes(false)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_hangs_is_refused_in_time_and_no_rollback_waits_for_it() {
    let Some(home) = Home::new().await else { return };
    home.activate("def f(q):\n    return True\n").await.unwrap();
    let hanging = home.activate("import time\ntime.sleep(1000)\n");
    let started = std::time::Instant::now();
    let (error, back) = tokio::join!(hanging, async {
        let back = home.roll_back(1).await.unwrap();
        (back, started.elapsed())
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("an import took longer than 5s"), "{error}");
    assert!(back.1 < Duration::from_secs(1), "{:?}", back.1);
    assert_eq!((back.0.epoch, back.0.slots.len()), (Epoch(3), 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_is_tried_before_it_owns_anything() {
    let Some(home) = Home::new().await else { return };
    let manifest = home.manifest_of("slot = \"delivery.review\"", "def f(review):\n    return True\n");
    let error = home.put(manifest).await.unwrap_err().to_string();
    assert!(error.contains("mine:f failed when it was tried on delivery.review"), "{error}");
    let hangs = home.manifest("import time\ndef f(q):\n    time.sleep(1000)\n");
    let error = home.put(hangs).await.unwrap_err().to_string();
    assert!(error.contains("no answer by the deadline"), "{error}");
    let formats = "def f(send):\n    raise ValueError('no words')\n";
    let error = home.put(home.manifest_of("transform = \"delivery.format\"", formats)).await.unwrap_err();
    assert!(error.to_string().contains("ValueError: no words"), "{error}");
    assert_eq!(home.epochs().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_is_over_what_was_asked_and_tells_the_differences() {
    let Some(home) = Home::new().await else { return };
    let agent = home.life.agent.handle().clone();
    let room = Source::new(SourceKind::Channel, "irc");
    for (n, text) in ["a", "b", "c"].into_iter().enumerate() {
        let event = NewEvent::external(room.clone(), format!("msg:{n}"), Priority::Ambient, Body::text(text));
        agent.admit(event).await.unwrap();
    }
    let manifest = home.manifest_of("slot = \"event.priority\"", "def f(e):\n    return 'directed'\n");
    let report = home.life.live.dry_run("policy.toml", &manifest).await.unwrap();
    // Nobody owns the slot; what was decided by default is known all the same.
    assert_eq!((report.asked, report.differences.len()), (3, 3));
    let code = "from datetime import timedelta\ndef f(q):\n    return timedelta(seconds=1)\n";
    let manifest = home.manifest_of("slot = \"attention.batch_delay\"", code);
    let report = home.life.live.dry_run("policy.toml", &manifest).await.unwrap();
    assert!(report.asked > 0, "{report:?}");
    let difference = report.differences.first().unwrap();
    assert_eq!(difference.before, difference.question.default_answer());
    assert_eq!(difference.after, Answer::Delay { millis: 1000 });
    assert!(matches!(difference.question, Question::BatchDelay { .. }), "{difference:?}");
    assert_eq!(home.current().await.epoch, Epoch(1));
    assert!(home.world.records.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_keeps_the_epoch_that_it_was_asked_in() {
    let Some(home) = Home::new().await else { return };
    let code = "import asyncio, os\nasync def f(q):\n    open('asked', 'w').close()\n    while os.path.exists('slow') and not os.path.exists('go'):\n        await asyncio.sleep(0.002)\n    return True\n";
    home.activate(code).await.unwrap();
    let asked = home.world.path().join("asked");
    std::fs::remove_file(&asked).unwrap();
    home.world.write("slow", "");
    let changing = async {
        observed(|| asked.exists().then_some(())).await;
        home.activate("def f(q):\n    return False\n").await.unwrap();
        assert_eq!(home.ask(3).await, Ok(Answer::Yes(false)));
        home.world.write("go", "");
    };
    let (old, ()) = tokio::join!(home.ask(2), changing);
    assert_eq!(old, Ok(Answer::Yes(true)));
    let epochs: Vec<u64> = home.world.records.lock().unwrap().iter().map(|record| record.epoch).collect();
    assert_eq!(epochs, [3, 2]);
    observed(|| (home.life.live.at_work() == [Epoch(3)]).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_keeps_its_epoch_also_over_a_restart() {
    let Some(home) = Home::new().await else { return };
    let shape = |word: &str| {
        let code = format!("def f(result):\n    return '{word}'\n");
        home.manifest_of("transform = \"result.shape\"", &code)
    };
    home.put(shape("old")).await.unwrap();
    let agent = home.life.agent.handle().clone();
    home.model.then(Scripted::Stalls("thinking".into()));
    agent.say("1", "look").await.unwrap();
    home.model.requests(1).await;
    home.put(shape("new")).await.unwrap();
    // The turn may still ask the older one.
    observed(|| (home.life.live.at_work() == [Epoch(2), Epoch(3)]).then_some(())).await;
    // The same turn goes on; its result is worded by the epoch that it began with.
    home.model.then(Scripted::calls(&[("history_search", r#"{"text":"look"}"#)]));
    home.model.then(Scripted::calls(&[WAIT]));
    let home = home.restart().await;
    let requests = home.model.requests(3).await;
    let said = format!("{:?}", requests[2].messages);
    assert!(said.contains("[#0001]\\nold"), "{said}");
    let agent = home.life.agent.handle().clone();
    home.model.then(Scripted::calls(&[("history_search", r#"{"text":"look"}"#)]));
    home.model.then(Scripted::calls(&[WAIT]));
    agent.say("2", "look again").await.unwrap();
    let requests = home.model.requests(5).await;
    assert!(format!("{:?}", requests[4].messages).contains("\\nnew"), "{:?}", requests[4].messages);
    observed(|| (home.life.live.at_work() == [Epoch(3)]).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_activations_at_once_one_is_told_that_it_came_second() {
    let Some(home) = Home::new().await else { return };
    let at = |code: &str| Order { expected: Some(Epoch(1)), ..order(home.manifest(code)) };
    let (first, second) = (at("def f(q):\n    return True\n"), at("def f(q):\n    return False\n"));
    let live = &home.life.live;
    let (a, b) = tokio::join!(live.activate(first), live.activate(second));
    let errors: Vec<ActivateError> = [a, b].into_iter().filter_map(Result::err).collect();
    assert!(
        matches!(errors[..], [ActivateError::Superseded { expected: Epoch(1), current: Epoch(2) }]),
        "{errors:?}"
    );
    assert_eq!(home.epochs().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_soul_that_is_edited_while_a_candidate_is_tried_makes_it_come_second() {
    let Some(home) = Home::new().await else { return };
    let code = "import os, time\nopen('trying', 'w').close()\nwhile not os.path.exists('go'):\n    time.sleep(0.002)\ndef f(q):\n    return True\n";
    let trying = home.world.path().join("trying");
    let (refused, ()) = tokio::join!(home.activate(code), async {
        observed(|| trying.exists().then_some(())).await;
        let soul = klbr_core::event::Control::Soul { text: "You are Grace.".into() };
        home.life.agent.handle().control("soul", soul).await.unwrap();
        home.world.write("go", "");
    });
    let error = refused.unwrap_err();
    assert!(
        matches!(error, ActivateError::Superseded { expected: Epoch(1), current: Epoch(2) }),
        "{error:?}"
    );
    assert!(home.life.live.at_work().is_empty(), "the worker that was warm for nothing is gone");
}

fn linked(world: &mut World) -> PathBuf {
    let python = world.path().join("python");
    std::os::unix::fs::symlink(&world.program.python, &python).unwrap();
    world.program.python = python.clone();
    python
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollback_needs_no_python_and_brings_the_soul_of_its_epoch() {
    let Some(mut world) = World::new() else { return };
    let python = linked(&mut world);
    let home = Home::with(world).await;
    let with_soul = |soul: &str, code: &str| Manifest { soul: Some(soul.into()), ..home.manifest(code) };
    home.put(with_soul("You are Ada.", "def f(q):\n    return True\n")).await.unwrap();
    home.put(with_soul("You are Grace.", "def f(q):\n    return False\n")).await.unwrap();
    let agent = home.life.agent.handle().clone();
    assert_eq!(&*agent.soul().await.unwrap(), "You are Grace.");
    std::fs::remove_file(&python).unwrap();
    let started = std::time::Instant::now();
    let epoch = home.roll_back(1).await.unwrap();
    let took = started.elapsed();
    assert!(took < Duration::from_millis(200), "{took:?}");
    assert_eq!((epoch.epoch, &epoch.cause), (Epoch(4), &Cause::RolledBack { to: Epoch(1) }));
    assert_eq!(epoch.slots.len(), 0);
    assert!(agent.soul().await.unwrap().contains("klbr") || !agent.soul().await.unwrap().contains("Grace"));
    let epoch = home.roll_back(2).await.unwrap();
    assert_eq!((epoch.epoch, epoch.slots.len()), (Epoch(5), 1));
    assert_eq!(&*agent.soul().await.unwrap(), "You are Ada.");
    assert!(home.ask(5).await.is_err());
    // Without a name: what was in force before this.
    let epoch = home.life.live.roll_back("before", None, None).await.unwrap();
    assert_eq!(epoch.cause, Cause::RolledBack { to: Epoch(4) });
    assert!(matches!(home.roll_back(99).await, Err(ActivateError::NoWayBack(_))));
    // That no process could be started is no policy's fault: nothing went back by itself.
    assert_eq!(home.epochs().await.len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_epoch_whose_worker_keeps_dying_goes_back_by_itself() {
    let Some(home) = Home::new().await else { return };
    home.activate("def f(q):\n    return False\n").await.unwrap();
    // Well behaved until it is in force.
    let code = "import os, sys\nif os.path.exists('in_force'):\n    print('my last words', file=sys.stderr, flush=True)\n    os._exit(1)\ndef f(q):\n    if os.path.exists('in_force'):\n        os._exit(1)\n    return True\n";
    home.activate(code).await.unwrap();
    home.world.write("in_force", "");
    let _ = home.ask(3).await;
    let mut announced = home.life.agent.handle().updates(Some(Seq(0))).await.unwrap();
    let back = async {
        loop {
            let update = announced.next().await.unwrap().unwrap();
            if let Happening::Activated { epoch: Epoch(4), cause, .. } = update.happening {
                return cause;
            }
        }
    };
    let cause = tokio::time::timeout(WATCHDOG, back).await.unwrap();
    let Cause::Failed { epoch: Epoch(3), to: Epoch(2), reason } = &cause else { panic!("{cause:?}") };
    assert!(reason.contains("my last words"), "{reason}");
    assert_eq!(home.ask(4).await, Ok(Answer::Yes(false)));
    let records = home.records().await;
    let told = records.iter().filter(
        |record| matches!(record, Record::Admitted { event, .. } if &*event.source.instance == "policy"),
    );
    assert_eq!(told.count(), 1, "the agent is told once");
    // What failed is no way back.
    let back = home.life.live.roll_back("b", None, None).await.unwrap();
    assert_eq!(back.cause, Cause::RolledBack { to: Epoch(1) });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_in_force_is_in_force_after_a_restart_and_a_lost_manifest_holds_nothing_up() {
    let Some(home) = Home::new().await else { return };
    let (epoch, _) = home.activate("def f(q):\n    return False\n").await.unwrap();
    let home = home.restart().await;
    assert_eq!(home.ask(2).await, Ok(Answer::Yes(false)));
    assert_eq!(home.epochs().await.len(), 2);
    let hash = epoch.manifest.unwrap().parse().unwrap();
    std::fs::remove_file(Manifests::new(home.world.path()).path(hash)).unwrap();
    let home = home.restart().await;
    let error = home.ask(2).await.unwrap_err().to_string();
    assert!(error.contains("its manifest cannot be read"), "{error}");
    home.activate("def f(q):\n    return True\n").await.unwrap();
    assert_eq!(home.ask(3).await, Ok(Answer::Yes(true)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_reads_its_settings_its_variables_and_what_was_said() {
    let Some(home) = Home::new().await else { return };
    let code = "import os\nasync def f(q, host):\n    said = await host.recent_deliveries(minutes=1)\n    assert [s['arguments']['content'] for s in said] == ['hey'], said\n    assert await host.history_search(text='hey')\n    return (await host.settings())['wakes'] == os.environ['COLOUR']\n";
    home.model.then(Scripted::calls(&[("local_send", r#"{"content":"hey"}"#), WAIT]));
    let mut updates = home.life.agent.handle().updates(None).await.unwrap();
    home.life.agent.handle().say("1", "hi").await.unwrap();
    while !matches!(updates.next().await.unwrap().unwrap().happening, Happening::Waiting { .. }) {}
    let mut manifest = home.manifest(code);
    manifest.settings.insert("wakes".into(), "green".into());
    manifest.environment.insert("COLOUR".into());
    home.put(manifest.clone()).await.unwrap();
    assert_eq!(home.ask(2).await, Ok(Answer::Yes(true)));
    manifest.environment.insert("SECRET".into());
    let error = home.put(manifest).await.unwrap_err().to_string();
    assert!(error.contains("the variable SECRET is not set"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_hears_the_agents_records_and_what_it_wishes_is_done() {
    let Some(home) = Home::new().await else { return };
    let agent = home.life.agent.handle().clone();
    home.model.then(Scripted::calls(&[("local_send", r#"{"content":"hey"}"#), WAIT]));
    agent.say("1", "before").await.unwrap();
    home.model.requests(1).await;
    let code = "def f(record, host):\n    if record['body']['event']['priority'] == 'operator':\n        host.admit('heard ' + record['body']['text'])\n        host.remember('it said ' + record['body']['text'])\n";
    let manifest = home.manifest_of("observer = \"event.admitted\"\nfrom = 1", code);
    home.put(manifest).await.unwrap();
    let admitted = || async {
        let records = home.records().await;
        let of_observer = |record: &&Record| matches!(record, Record::Admitted { event, .. } if &*event.source.instance == "mine-f");
        records.iter().filter(of_observer).count()
    };
    let until = async |count| {
        let wait = async {
            while admitted().await < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(WATCHDOG, wait).await.unwrap();
    };
    until(1).await;
    agent.say("2", "after").await.unwrap();
    until(2).await;
    let cursor = agent.observers().await.unwrap()["mine-f"];
    let home = home.restart().await;
    let agent = home.life.agent.handle().clone();
    assert!(agent.observers().await.unwrap()["mine-f"] >= cursor, "a restart places nobody");
    let memories = home.store.memories(agent.agent(), "", &[], 9).await.unwrap();
    let mut texts: Vec<&str> = memories.iter().map(|memory| &*memory.text).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["it said after", "it said before"]);
}
