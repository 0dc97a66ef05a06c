//! Cells: what they answer with, how they are ended, what is lost and said to be.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_pyhost::*;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::*;

/// The bar from an interrupt to the end of the cell.
const BAR: Duration = Duration::from_millis(250);

struct Registry;

#[async_trait]
impl HostCalls for Registry {
    fn offers(&self) -> Vec<Offer> {
        let parameters = json!({
            "type": "object",
            "properties": {"content": {"type": "string"}, "reply_to": {"type": ["string", "null"]}},
            "required": ["content"],
        });
        vec![
            Offer {
                name: "discord_send".into(),
                doc: "Sends a message.".into(),
                parameters: parameters.clone(),
            },
            Offer {
                name: "slow".into(),
                doc: "Takes for ever.".into(),
                parameters: json!({"type": "object"}),
            },
        ]
    }

    async fn call(&self, caller: Caller, name: &str, arguments: Value) -> Result<Value, HostCallError> {
        assert_eq!(&*caller.owner, "3.1.1");
        match (name, arguments["content"].as_str()) {
            ("slow", _) => std::future::pending().await,
            (_, Some("bad")) => Err(HostCallError { code: "denied", message: "not that".into() }),
            (_, content) => Ok(json!({"sent": content, "number": caller.number})),
        }
    }
}

async fn started(world: &World) -> Arc<Workbench> {
    let workbench = Arc::new(Workbench::start(bench(world), Arc::new(Registry), world.watch()));
    run(&workbench, "None").await;
    workbench
}

async fn run(workbench: &Workbench, code: &str) -> CellAnswer {
    run_for(workbench, code, WATCHDOG).await
}

async fn run_for(workbench: &Workbench, code: &str, limit: Duration) -> CellAnswer {
    workbench.run(Cell { code: code.into(), owner: "3.1.1".into(), limit }).await
}

fn value(answer: &CellAnswer) -> &str {
    match answer.parts.last() {
        Some(Part::Value { repr, .. }) => repr,
        other => panic!("no value: {other:?} of {answer:?}"),
    }
}

/// Runs a cell that says when it is at work, interrupts it, and judges how long that took.
async fn interrupted(world: &World, workbench: &Arc<Workbench>, code: &str) -> (CellAnswer, Duration) {
    let begun = world.path().join("begun");
    let _ = std::fs::remove_file(&begun);
    let code = format!("kept = 1\nopen('begun', 'w').close()\n{code}");
    let running = run(workbench, &code);
    let interrupting = async {
        observed(|| begun.exists().then_some(())).await;
        let at = Instant::now();
        workbench.interrupt();
        at
    };
    let (answer, at) = tokio::join!(async { (running.await, Instant::now()) }, interrupting);
    (answer.0, answer.1 - at)
}

macro_rules! cells {
    ($($name:ident($world:ident, $bench:ident) $body:block)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() { let Some($world) = World::new() else { return }; let $bench = started(&$world).await; let _ = &$world; $body })*
    };
}

cells! {
    the_last_expression_is_the_result_and_variables_stay(world, bench) {
        let answer = run(&bench, "import asyncio\nx = 20\nawait asyncio.sleep(0)\nx + 1").await;
        assert_eq!((value(&answer), &answer.end, answer.generation), ("21", &CellEnd::Done, 1));
        assert_eq!(value(&run(&bench, "x * 2").await), "40");
        assert_eq!(value(&run(&bench, "_").await), "40");
        assert!(run(&bench, "y = 3").await.parts.is_empty());
        let variables = bench.variables(Instant::now() + WATCHDOG).await.unwrap();
        let names: Vec<&str> = variables.iter().map(|variable| &*variable.name).collect();
        assert_eq!(names, ["asyncio", "x", "y"]);
        assert_eq!((&*variables[1].type_name, &*variables[1].start), ("int", "20"));
    }

    output_and_exceptions_are_separate_parts(world, bench) {
        let answer = run(&bench, "import sys\nprint('out')\nprint('err', file=sys.stderr)\ndef f():\n    return 1 / 0\nf()").await;
        assert_eq!((&*answer.stdout.text, &*answer.stderr.text), ("out\n", "err\n"));
        assert_eq!(answer.end, CellEnd::Raised);
        let Some(Part::Exception(error)) = answer.parts.last() else { panic!("{answer:?}") };
        assert_eq!((&*error.exception, error.line), ("ZeroDivisionError", Some(5)));
        assert!(error.traceback.contains("return 1 / 0") && !error.traceback.contains("workbench.py"), "{}", error.traceback);
        let Some(Part::Exception(error)) = run(&bench, "x = (").await.parts.pop() else { panic!() };
        assert_eq!((&*error.exception, error.line), ("SyntaxError", Some(1)));
        let Some(Part::Exception(error)) = run(&bench, "raise SystemExit(2)").await.parts.pop() else { panic!() };
        assert_eq!(&*error.exception, "SystemExit");
    }

    rich_parts_are_bounded(world, bench) {
        let code = "class Chart:\n    def _repr_png_(self):\n        return b'\\x89PNG'\nshow('text', {'a': [1]}, Chart())\nshow('z' * 10**7)";
        let parts = run(&bench, code).await.parts;
        assert_eq!(parts[..3], [
            Part::Text { text: "text".into() },
            Part::Json { data: json!({"a": [1]}) },
            Part::Image { media_type: "image/png".into(), base64: Some("iVBORw==".into()), path: None },
        ]);
        let Part::Text { text } = &parts[3] else { panic!() };
        assert!(text.len() < 300_000 && text.contains("characters left out"));
    }

    a_repr_has_a_size_and_a_time(world, bench) {
        let slow = "class Slow:\n    def __repr__(self):\n        while True:\n            pass\nSlow()";
        assert_eq!(value(&run(&bench, slow).await), "<Slow: its repr took longer than 200 ms>");
        let long = run(&bench, "list(range(10**6))").await;
        assert!(value(&long).len() < 10_000 && value(&long).ends_with("(of 1000000)"));
        let nested = run(&bench, "[[['x'] * 1000] * 1000] * 1000").await;
        assert!(value(&nested).len() < 10_000, "{}", value(&nested).len());
    }

    long_output_keeps_both_ends_and_is_stored_whole(world, bench) {
        let answer = run(&bench, "print('begin')\nfor _ in range(100):\n    print('x' * 99_999)\nprint('end')").await;
        assert_eq!(answer.stdout.bytes, 6 + 10_000_000 + 4);
        assert!(answer.stdout.text.starts_with("begin\n") && answer.stdout.text.ends_with("\nend\n"));
        assert!(answer.stdout.text.len() < 40_000);
        let whole = std::fs::metadata(answer.stdout.whole.unwrap()).unwrap();
        assert_eq!(whole.len(), answer.stdout.bytes);
        assert_eq!(value(&run(&bench, "import sys, os\nos.write(sys.stdout.fileno(), b'raw')").await), "3");
    }

    actions_are_functions_with_documentation_and_numbers(world, bench) {
        let answer = run(&bench, "first = await discord.send('hi')\nsecond = await discord_send(content='you', reply_to='m1')\nfirst, second").await;
        assert_eq!(value(&answer), "({'number': 1, 'sent': 'hi'}, {'number': 2, 'sent': 'you'})");
        assert!(answer.acts.iter().all(|act| act.state == ActState::Done) && answer.acts.len() == 2);
        let answer = run(&bench, "import inspect\nstr(inspect.signature(discord.send)), discord.send.__doc__").await;
        assert!(value(&answer).contains("content: str") && value(&answer).contains("Sends a message."), "{answer:?}");
        let answer = run(&bench, "await discord.send('bad')").await;
        let Some(Part::Exception(error)) = answer.parts.last() else { panic!("{answer:?}") };
        assert_eq!((&*error.exception, &*error.message), ("HostError", "not that"));
        assert_eq!(answer.acts[0].state, ActState::Failed);
        let answer = run(&bench, "await discord.send('a', nonsense=1)").await;
        assert!(answer.acts.is_empty() && answer.end == CellEnd::Raised);
    }

    a_wait_ends_the_cell(world, bench) {
        let code = "seen = []\ntry:\n    wait('10m', reason='later')\nfinally:\n    seen.append('finally')\nseen.append('never')";
        let wait = WaitAsked { timeout_ms: 600_000, reason: Some("later".into()) };
        assert_eq!(run(&bench, code).await.end, CellEnd::Waits(wait));
        assert_eq!(value(&run(&bench, "seen").await), "['finally']");
        let swallowed = "try:\n    wait('1s')\nexcept BaseException:\n    pass\nawait discord.send('still')";
        let answer = run(&bench, swallowed).await;
        assert!(matches!(answer.end, CellEnd::Waits(_)) && answer.acts.is_empty(), "{answer:?}");
        assert_eq!(run(&bench, "wait('soon')").await.end, CellEnd::Raised);
    }

    a_cell_that_awaits_is_cancelled(world, bench) {
        let (answer, took) = interrupted(&world, &bench, "import asyncio\nawait asyncio.sleep(1000)").await;
        assert_eq!(answer.end, CellEnd::Interrupted { by: Rung::Task });
        assert!(took <= BAR, "{took:?}");
        assert_eq!(value(&run(&bench, "kept").await), "1");
    }

    a_cell_that_acts_is_cancelled_and_says_what_is_open(world, bench) {
        // What it calls after the file is there is called before it hears of an interrupt.
        let ready = world.path().join("ready");
        let running = run(&bench, "await discord.send('one')\nopen('ready', 'w').close()\nawait slow()");
        let interrupting = async {
            observed(|| ready.exists().then_some(())).await;
            bench.interrupt();
        };
        let (answer, ()) = tokio::join!(running, interrupting);
        assert_eq!(answer.end, CellEnd::Interrupted { by: Rung::Task });
        let states: Vec<ActState> = answer.acts.iter().map(|act| act.state).collect();
        assert_eq!(states, [ActState::Done, ActState::Open]);
    }

    blocking_sleep_and_busy_loops_are_interrupted(world, bench) {
        for code in ["import time\ntime.sleep(1000)", "while True:\n    pass", "while True:\n    try:\n        pass\n    except Exception:\n        pass"] {
            let (answer, took) = interrupted(&world, &bench, code).await;
            assert_eq!(answer.end, CellEnd::Interrupted { by: Rung::Signal }, "{code}");
            assert!(took <= BAR, "{took:?} {code}");
            assert_eq!(value(&run(&bench, "kept").await), "1");
        }
    }

    code_that_hears_nothing_is_killed_and_its_state_said_to_be_lost(world, bench) {
        let (answer, took) = interrupted(&world, &bench, "import itertools\nsum(itertools.repeat(0))").await;
        assert_eq!(answer.end, CellEnd::Interrupted { by: Rung::Kill });
        assert!(took <= BAR, "{took:?}");
        let next = run(&bench, "1").await;
        assert_eq!((next.generation, value(&next)), (2, "1"));
        assert!(next.state_lost.is_some());
        assert_eq!(run(&bench, "2").await.state_lost, None);
    }

    the_names_that_are_lost_are_named(world, bench) {
        run(&bench, "a = 1\nb = 2").await;
        let answer = run(&bench, "import os\nprint('last', flush=True)\nos._exit(3)").await;
        assert!(matches!(&answer.end, CellEnd::Died { reason } if reason.contains("exit status: 3")), "{answer:?}");
        assert_eq!(&*answer.stdout.text, "last\n");
        let next = run(&bench, "1").await;
        assert_eq!(next.state_lost, Some(vec!["a".into(), "b".into()]));
    }

    children_die_with_their_cell(world, bench) {
        let code = "import subprocess\ntry:\n    subprocess.run(['sh', '-c', 'trap \"\" INT TERM; echo $$ > child; while true; do sleep 1; done'])\nfinally:\n    pass";
        let child = world.path().join("child");
        let running = interrupted(&world, &bench, code);
        let (answer, took) = running.await;
        assert_eq!(answer.end, CellEnd::Interrupted { by: Rung::Signal });
        assert!(took <= BAR, "{took:?}");
        if let Some(pid) = std::fs::read_to_string(&child).ok().and_then(|text| text.trim().parse().ok()) {
            observed(|| (!lives(pid)).then_some(())).await;
        }
        let code = "import subprocess\np = subprocess.Popen(['sleep', '1000'], start_new_session=True)\np.pid";
        let answer = run(&bench, code).await;
        let pid: u32 = value(&answer).parse().unwrap();
        assert_eq!(answer.survivors, 1);
        observed(|| (!lives(pid)).then_some(())).await;
        assert_eq!(value(&run(&bench, "kept").await), "1");
    }

    a_cell_has_a_limit(world, bench) {
        let limit = Duration::from_millis(200);
        let (answer, over) = overrun(limit, run_for(&bench, "while True: pass", limit)).await;
        assert_eq!(answer.end, CellEnd::TimedOut { by: Rung::Signal });
        assert!(over <= BAR, "{over:?}");
    }

    cells_queued_for_an_old_life_are_aborted(world, bench) {
        let begun = world.path().join("begun");
        let dying = run(&bench, "import os\nopen('begun', 'w').close()\nwhile not os.path.exists('go'):\n    pass\nos._exit(1)");
        let queued = async {
            observed(|| begun.exists().then_some(())).await;
            let queued = run(&bench, "open('ran', 'w').close()");
            let go = async { std::fs::write(world.path().join("go"), "").unwrap() };
            tokio::join!(queued, go).0
        };
        let (died, aborted) = tokio::join!(dying, queued);
        assert!(matches!(died.end, CellEnd::Died { .. }), "{died:?}");
        assert_eq!(aborted.end, CellEnd::Aborted { queued_for: 1 });
        assert!(!world.path().join("ran").exists());
    }

    a_memory_blow_up_is_an_exception(world, bench) {
        let answer = run(&bench, "x = []\nwhile True:\n    x.append(bytearray(1 << 26))").await;
        let Some(Part::Exception(error)) = answer.parts.last() else { panic!("{answer:?}") };
        assert_eq!(&*error.exception, "MemoryError");
        run(&bench, "x = None").await;
        assert_eq!(value(&run(&bench, "1").await), "1");
    }
}
