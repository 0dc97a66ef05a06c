//! The bars of hooks and cells, each beside what was measured: `cargo bench -p klbr-pyhost`.
//!
//! The interpreter is `KLBR_PYTHON`, else `python3`.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use klbr_core::ids::Epoch;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::policy::{Question, Slot};
use klbr_core::runtime::policy::Policy as _;
use klbr_pyhost::*;
use tokio::time::Instant;

fn main() {
    // `cargo test --benches` builds this and calls it without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be made").block_on(measure());
}

struct Setup {
    folder: tempfile::TempDir,
    program: Program,
}

fn setup() -> Setup {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let named = std::env::var_os("KLBR_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let out =
        std::process::Command::new(named).args(["-I", "-c", "import sys; print(sys.executable)"]).output();
    let python = String::from_utf8(out.expect("Python can be started").stdout).expect("a path");
    let program = Program {
        python: python.trim().into(),
        package: Sources.install(folder.path()).expect("it can be written"),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: folder.path().to_owned(),
        bytecode: Some(folder.path().join("bytecode")),
        limits: Limits::default(),
    };
    Setup { folder, program }
}

fn percentile(sorted: &[Duration], part: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}

fn say(what: &str, times: &mut [Duration], bars: &str) {
    times.sort_unstable();
    let (p50, p99) = (percentile(times, 0.5), percentile(times, 0.99));
    println!("{what:<34} n {:>5}  p50 {p50:>9.2?}  p99 {p99:>9.2?}  bar {bars}", times.len());
}

async fn measure() {
    let Setup { folder, program } = setup();
    std::fs::write(
        folder.path().join("p.py"),
        "from klbr import hooks\nasync def f(q: hooks.AttentionWake) -> bool:\n    return q.waiting > 3\n",
    )
    .expect("it can be written");
    let spec = Spec {
        program: program.clone(),
        epoch: 1,
        paths: vec![folder.path().to_owned()],
        hooks: vec![Entry { run: "p:f".into(), kind: Kind::Slot, name: "attention.wake".into() }],
        // The pause between restarts is policy; what is measured is the restart.
        patience: Patience { back_off: Duration::ZERO, ..Patience::default() },
    };
    let quiet: Arc<dyn Watch> = Arc::new(|_, _: Change| {});
    let worker = Arc::new(Worker::start(spec, Arc::new(NoHost), quiet.clone()));
    let far = || Instant::now() + Duration::from_secs(60);
    let loaded = worker.ready(far()).await.expect("the worker starts");
    let binding =
        SlotBinding { run: "p:f".into(), deadline: Duration::from_secs(5), on_death: OnDeath::Fail };
    let recorder: Arc<dyn Recorder> = Arc::new(|_: Invocation| {});
    let policy = Arc::new(HookPolicy::new(worker.clone(), BTreeMap::from([(Slot::Wake, binding)]), recorder));
    let question = |waiting| Question::Wake { waiting, configured: true };
    println!("Python {}, worker's memory {} MiB", loaded.python, resident(loaded.pid) >> 20);

    let mut warm = Vec::new();
    for n in 0..5000 {
        let started = Instant::now();
        policy.decide(Epoch(1), question(n % 7)).await.expect("an answer");
        warm.push(started.elapsed());
    }
    say("hook, warm, one at a time", &mut warm, "p50 0.5 ms, p99 5 ms");

    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let policy = Arc::clone(&policy);
        tasks.spawn(async move {
            let mut times = Vec::new();
            for n in 0..500 {
                let started = Instant::now();
                policy
                    .decide(Epoch(1), Question::Wake { waiting: n % 7, configured: true })
                    .await
                    .expect("an answer");
                times.push(started.elapsed());
            }
            times
        });
    }
    let mut loaded_times: Vec<Duration> = tasks.join_all().await.concat();
    say("hook, warm, eight at once", &mut loaded_times, "p99 5 ms");

    let mut respawns = Vec::new();
    for _ in 0..20 {
        let pid = worker.ready(far()).await.expect("a worker").pid;
        kill(pid);
        let started = Instant::now();
        while worker.ready(far()).await.expect("a worker").pid == pid {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        policy.decide(Epoch(1), question(1)).await.expect("an answer");
        respawns.push(started.elapsed());
    }
    say("worker killed → next answer", &mut respawns, "300 ms");

    let bench = Bench {
        program,
        paths: Vec::new(),
        patience: Patience::default(),
        ladder: Ladder::default(),
        outputs: None,
        bounds: Bounds::default(),
    };
    let workbench = Arc::new(Workbench::start(bench, Arc::new(NoHost), quiet));
    let cell = |code: &str| Cell { code: code.into(), owner: "1.1.1".into(), limit: Duration::from_secs(60) };
    let mut cells = Vec::new();
    workbench.run(cell("x = 0")).await;
    for _ in 0..2000 {
        let started = Instant::now();
        workbench.run(cell("x += 1\nx")).await;
        cells.push(started.elapsed());
    }
    say("cell, round trip", &mut cells, "p50 1 ms");

    for (what, code) in [
        ("interrupt of an await", "import asyncio\nopen('begun', 'w').close()\nawait asyncio.sleep(100)"),
        ("interrupt of time.sleep", "import time\nopen('begun', 'w').close()\ntime.sleep(100)"),
        ("interrupt of a loop", "open('begun', 'w').close()\nwhile True: pass"),
        (
            "interrupt of C code (killed)",
            "import itertools\nopen('begun', 'w').close()\nsum(itertools.repeat(0))",
        ),
    ] {
        let mut times = Vec::new();
        for _ in 0..20 {
            let begun = folder.path().join("begun");
            let _ = std::fs::remove_file(&begun);
            let running = workbench.run(cell(code));
            let interrupt = async {
                while !begun.exists() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                let at = Instant::now();
                workbench.interrupt();
                at
            };
            let (done, at) = tokio::join!(async { (running.await, Instant::now()).1 }, interrupt);
            times.push(done - at);
        }
        say(what, &mut times, "250 ms");
    }
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a process id");
    // Gone already is as good.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// Resident bytes of a process, 0 where that is not shown.
fn resident(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4096
}
