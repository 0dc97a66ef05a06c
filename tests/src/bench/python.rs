//! Hooks and cells in Python: how long one takes, how well a deadline holds, how soon a worker is back, how fast a cell
//! ends that must end; and what the agent around a failing hook feels of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::ids::Epoch;
use klbr_core::policy::{Question, Slot};
use klbr_core::runtime::policy::Policy as _;
use klbr_pyhost::{
    Bench, Bounds, Cell, Change, HookPolicy, Invocation, Ladder, Loaded, NoHost, Patience, Recorder, Watch,
    Workbench, Worker,
};
use klbr_server::api::policy::Process;
use serde_json::json;
use tokio::time::Instant;

use super::life::resident;
use super::rig::{Rig, always, wait};
use super::{Bar, BenchError, Figure, Line, Plan, spread};
use crate::daemon::Klbrd;
use crate::hooks::failures;
use crate::hooks::home::{self, Folder, HomeError};
use crate::process::{Signal, send};

/// How long anything may take before a measurement fails.
const WATCHDOG: Duration = Duration::from_secs(60);

/// How many questions a second come at random times.
const RATE: f64 = 500.0;

/// Turns before memory is looked at.
const TURNS: usize = 20;

/// The deadline of a hook that never answers.
const DEADLINE: Duration = Duration::from_millis(100);

/// Answers at once; spins where so many wait that no batch has ever waited.
const CODE: &str = r"from klbr import hooks
async def f(q: hooks.AttentionWake) -> bool:
    while q.waiting > 1000:
        pass
    return q.waiting > 3
";

/// The default policies, one for each decision that a turn asks for and some between turns.
const POLICIES: [(&str, &str); 14] = [
    ("event.priority", "attention:priority"),
    ("event.accept", "attention:accept"),
    ("attention.wake", "attention:wake"),
    ("attention.batch_delay", "attention:batch_delay"),
    ("frame.render", "attention:render"),
    ("turn.idle", "attention:idle"),
    ("turn.nudge", "social:nudge"),
    ("context.blocks", "context:blocks"),
    ("model.plan", "model:plan"),
    ("action.review", "social:review_action"),
    ("delivery.review", "social:review_delivery"),
    ("delivery.format", "social:format_delivery"),
    ("result.shape", "social:shape"),
    ("compact.when", "context:when"),
];

/// The rows whose agent is listened to.
const AROUND: [&str; 3] = ["an infinite loop in Python", "an infinite loop in C", "a memory blow-up"];

pub(super) async fn measure(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let folder = Folder::new()?;
    let hooks = Hooks::start(folder.path())?;
    let mut lines = vec![
        hooks.one_at_a_time(plan.runs * 10).await?,
        hooks.at_random_times(plan.runs * 10).await?,
        hooks.overrun((plan.runs / 5).max(2)).await?,
        hooks.respawn((plan.runs / 10).max(2)).await?,
    ];
    drop(hooks);
    lines.extend(cells(plan, folder.path()).await?);
    lines.extend(around(plan).await?);
    lines.push(together(plan).await?);
    Ok(lines)
}

/// What the daemon needs with a worker beside it that has answered the questions of some turns.
async fn together(plan: &Plan) -> Result<Line, BenchError> {
    let python = crate::hooks::python().ok_or(HomeError::NoPython)?;
    let python = python.to_str().ok_or_else(|| absent("an interpreter whose path is text"))?;
    let send = json!({"call": {"name": "local_send", "arguments": {"content": "Yes."}}});
    let set = |klbrd: Klbrd| klbrd.env("KLBR_PYTHON", python).env("KLBR_PYTHON_ENABLED", "true");
    let mut rig = Rig::start_as(plan, always(json!([send, wait()])), set).await?;
    let hooks = POLICIES.map(|(slot, run)| {
        format!("[[hooks]]\nslot = {slot:?}\nrun = \"klbr.policy.{run}\"\ndeadline = \"5s\"\n")
    });
    rig.api().activate(&format!("manifest = 1\n{}", hooks.concat())).await?;
    for turn in 0..TURNS {
        rig.say(&format!("Is number {turn} all right?")).await?;
        rig.is_asked().await?;
        rig.waits().await?;
    }
    let policy = rig.api().policy().await?;
    let Some(Process::Ready { pid, .. }) = policy.worker else {
        return Err(absent(format!("a worker that answers: {:?}", policy.worker)));
    };
    if let Some(failure) = policy.failures.first() {
        return Err(absent(format!("a hook that answers: {failure:?}")));
    }
    let mb = |pid| Ok::<_, BenchError>(resident(pid)? as f64 / 1024.0);
    let (daemon, worker) = (mb(rig.daemon.running.pid())?, mb(pid)?);
    let figures = vec![
        Figure::plain("together", daemon + worker, "MB").against(Bar::AtMost(60.0)),
        Figure::plain("daemon", daemon, "MB"),
        Figure::plain("worker", worker, "MB"),
    ];
    let method = format!(
        "VmRSS of both in /proc after {TURNS} turns whose every decision a default policy in Python made"
    );
    Ok(line("daemon and worker", &method, 1, figures))
}

fn line(what: &str, method: &str, n: usize, figures: Vec<Figure>) -> Line {
    Line { row: "python", what: what.to_owned(), method: method.to_owned(), n, figures }
}

fn quiet() -> Arc<dyn Watch> {
    Arc::new(|_, _: Change| {})
}

fn question(waiting: usize) -> Question {
    Question::Wake { waiting, configured: true }
}

fn absent(error: impl std::fmt::Display) -> BenchError {
    BenchError::Absent(error.to_string())
}

/// A worker with one hook, whose deadline is far, or near.
struct Hooks {
    worker: Arc<Worker>,
    far: HookPolicy,
    near: HookPolicy,
}

impl Hooks {
    fn start(folder: &Path) -> Result<Hooks, BenchError> {
        let mut spec = home::spec(folder, CODE, Slot::Wake)?;
        // The pause between restarts is policy; what is measured is the restart.
        spec.patience.back_off = Duration::ZERO;
        let worker = Arc::new(Worker::start(spec, Arc::new(NoHost), quiet()));
        let recorder: Arc<dyn Recorder> = Arc::new(|_: Invocation| {});
        let policy =
            |deadline| home::policy(Arc::clone(&worker), Slot::Wake, deadline, Arc::clone(&recorder));
        Ok(Hooks { far: policy(WATCHDOG), near: policy(DEADLINE), worker })
    }

    async fn ready(&self) -> Result<Arc<Loaded>, BenchError> {
        self.worker.ready(Instant::now() + WATCHDOG).await.map_err(absent)
    }

    async fn ask(&self, waiting: usize) -> Result<Duration, BenchError> {
        let begun = Instant::now();
        self.far.decide(Epoch(1), question(waiting)).await.map_err(absent)?;
        Ok(begun.elapsed())
    }

    async fn one_at_a_time(&self, runs: usize) -> Result<Line, BenchError> {
        self.ready().await?;
        let mut times = Vec::with_capacity(runs);
        for n in 0..runs {
            times.push(self.ask(n % 7).await?);
        }
        let method = "from the question at the policy port to its checked answer, one after the other";
        Ok(line("a hook, warm", method, runs, spread(&times, Some(0.5), Some(5.0))))
    }

    async fn at_random_times(&self, runs: usize) -> Result<Line, BenchError> {
        let mut rng = fastrand::Rng::with_seed(1);
        let begun = Instant::now();
        let mut at = begun;
        let asking = (0..runs).map(|n| {
            at += Duration::from_secs_f64(-(1.0 - rng.f64()).ln() / RATE);
            async move {
                tokio::time::sleep_until(at).await;
                self.ask(n % 7).await
            }
        });
        let times = futures_util::future::try_join_all(asking).await?;
        let method =
            format!("{RATE} questions a second at random times to one worker, as many at once as that makes");
        Ok(line("a hook, warm, under load", &method, runs, spread(&times, Some(0.5), Some(5.0))))
    }

    /// Each question holds the interpreter for ever; the next one waits for the next worker.
    async fn overrun(&self, runs: usize) -> Result<Line, BenchError> {
        let mut times = Vec::with_capacity(runs);
        for _ in 0..runs {
            let pid = self.ready().await?.pid;
            let begun = Instant::now();
            let control = async {
                tokio::time::sleep(DEADLINE).await;
                begun.elapsed()
            };
            let asked = async { (self.near.decide(Epoch(1), question(2000)).await, begun.elapsed()) };
            let (control, (answer, took)) = tokio::join!(control, asked);
            if answer.is_ok() {
                return Err(absent("a hook that never answers has answered"));
            }
            times.push(took.saturating_sub(control));
            self.is_replaced(pid).await?;
        }
        let mut figures = spread(&times, None, None);
        figures[2].bar = Some(Bar::AtMost(20.0));
        let method = "a loop that never ends; beyond a timer of the same length, set at the same moment";
        Ok(line("a deadline's overrun", method, runs, figures))
    }

    async fn respawn(&self, runs: usize) -> Result<Line, BenchError> {
        let mut times = Vec::with_capacity(runs);
        for _ in 0..runs {
            let pid = self.ready().await?.pid;
            send(pid, Signal::Kill)?;
            let begun = Instant::now();
            self.is_replaced(pid).await?;
            self.ask(1).await?;
            times.push(begun.elapsed());
        }
        let method = "from SIGKILL to the next worker's first answer, imports included";
        Ok(line("a worker is back", method, runs, spread(&times, None, Some(300.0))))
    }

    async fn is_replaced(&self, pid: u32) -> Result<(), BenchError> {
        let until = Instant::now() + WATCHDOG;
        while self.ready().await?.pid == pid {
            if Instant::now() > until {
                return Err(absent("the next worker"));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }
}

async fn cells(plan: &Plan, folder: &Path) -> Result<Vec<Line>, BenchError> {
    let bench = Bench {
        program: home::program(folder)?,
        paths: Vec::new(),
        patience: Patience::default(),
        ladder: Ladder::default(),
        outputs: None,
        bounds: Bounds::default(),
    };
    let workbench = Workbench::start(bench, Arc::new(NoHost), quiet());
    let cell = |code: &str| Cell { code: code.into(), owner: "1.1.1".into(), limit: WATCHDOG };
    workbench.run(cell("x = 0")).await;
    let mut times = Vec::new();
    for _ in 0..plan.runs * 5 {
        let begun = Instant::now();
        workbench.run(cell("x += 1\nx")).await;
        times.push(begun.elapsed());
    }
    let method = "from the code to its answer with the value's repr";
    let mut lines = vec![line("a cell's round trip", method, times.len(), spread(&times, Some(1.0), None))];
    let stuck = [
        ("an await", "import asyncio", "await asyncio.sleep(100)"),
        ("time.sleep", "import time", "time.sleep(100)"),
        ("a loop", "", "while True: pass"),
        ("C code, which is killed", "import itertools", "sum(itertools.repeat(0))"),
    ];
    for (what, head, body) in stuck {
        let code = format!("{head}\nopen('begun', 'w').close()\n{body}");
        let mut times = Vec::new();
        for _ in 0..(plan.runs / 10).max(2) {
            times.push(interrupted(&workbench, cell(&code), &folder.join("begun")).await?);
        }
        let method = "from the interrupt to the cell's answer";
        let figures = spread(&times, None, Some(250.0));
        lines.push(line(&format!("interrupt of a cell: {what}"), method, times.len(), figures));
    }
    Ok(lines)
}

async fn interrupted(workbench: &Workbench, cell: Cell, begun: &Path) -> Result<Duration, BenchError> {
    let _ = std::fs::remove_file(begun);
    let running = async {
        workbench.run(cell).await;
        Instant::now()
    };
    let interrupt = async {
        let until = Instant::now() + WATCHDOG;
        while !begun.exists() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let at = Instant::now();
        workbench.interrupt();
        at
    };
    let (ended, at) = tokio::join!(running, interrupt);
    Ok(ended - at)
}

/// What the operator feels of an agent whose hook fails.
async fn around(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let mut lines = Vec::new();
    for row in failures::ROWS.iter().filter(|row| AROUND.contains(&row.name)) {
        let mut seen = Vec::new();
        // Each takes seconds: an agent's whole life with a hook that fails in it.
        for _ in 0..(plan.runs / 40).max(2) {
            let figures = failures::once(row).await?;
            if let Some(fault) = figures.faults.first() {
                return Err(HomeError::Absent(fault.clone()).into());
            }
            seen.push(figures);
        }
        let times = |figure: fn(&failures::Figures) -> Duration| seen.iter().map(figure).collect::<Vec<_>>();
        let named = |name: &'static str, times: Vec<Duration>, p50, p99| {
            spread(&times, p50, p99).into_iter().map(move |mut figure| {
                figure.name = format!("{name} {}", figure.name);
                figure
            })
        };
        let mut figures: Vec<Figure> =
            named("interrupt", times(|one| one.effect), Some(5.0), Some(25.0)).collect();
        figures.extend(named("admission", times(|one| one.admitted), None, Some(250.0)));
        figures.extend(named("rollback", times(|one| one.rolled_back), None, Some(250.0)));
        figures.extend(named("overrun", times(|one| one.overrun), None, Some(20.0)));
        let method = "an agent in the bench's process on SQLite, synchronous=FULL, interrupted in the midst of it: from the \
                      acknowledgement to the model's next request; rollback and admission to their acknowledgement";
        lines.push(line(&format!("in a hook: {}", row.name), method, seen.len(), figures));
    }
    Ok(lines)
}
