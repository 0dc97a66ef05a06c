//! A required hook dies in mid-call, again and again, and nothing runs that it has not allowed.
//!
//! A trial is one death: the worker is killed at a random time around a call, or its connection is cut at a place in a
//! frame ([`cut`]). The hook allows what has an even number and writes each verdict to a file before it
//! answers. Owns the plan, the homes and the sum; the verdict is the [`judge`]'s.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use klbr_core::record::Record;
use klbr_pyhost::{Change, NoHost, Spec};
use klbr_store::Durability;

use super::cut;
use super::failures::Fate;
use super::home::{Closed, Home, HomeError, Setup, WATCHDOG};
use super::judge;
use crate::process::{Signal, send};

/// How many deaths one home sees.
const DEATHS_OF_A_HOME: usize = 125;

/// A kill comes at most so long after the question.
const WINDOW_MICROS: u64 = 1_500;

/// How long a review may take: longer than any start.
const DEADLINE: Duration = Duration::from_secs(30);

const CODE: &str = r#"import os, time
from klbr import hooks

verdicts = os.open("verdicts", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

def f(review):
    verdict = "deny" if hooks.arguments(review)["n"] % 2 else "allow"
    os.write(verdicts, f"{verdict} {review.hash}\n".encode())
    time.sleep(0.0005)
    return hooks.allow() if verdict == "allow" else hooks.deny("an odd number")
"#;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many deaths.
    pub trials: usize,
    /// How many of them are kills; the others are cuts.
    pub kills: usize,
    /// What times and places are drawn from.
    pub seed: u64,
    /// How many homes live at once.
    pub lanes: usize,
    /// Where `cut-wire` is, if not beside the running program.
    pub folder: Option<PathBuf>,
}

impl Default for Plan {
    /// The full number.
    fn default() -> Self {
        Plan { trials: 10_000, kills: 500, seed: 1, lanes: 2, folder: None }
    }
}

/// What was done and found.
#[derive(Debug, Default)]
pub struct Report {
    /// Deaths by kills.
    pub kills: usize,
    /// Deaths by cuts, at each kind of place.
    pub cuts: BTreeMap<String, usize>,
    /// Homes.
    pub homes: usize,
    /// Questions.
    pub questions: usize,
    /// Actions that the hook allowed and that ran.
    pub ran: usize,
    /// Actions that the hook denied.
    pub denied: usize,
    /// Actions that are held, since the hook did not come to answer.
    pub held: usize,
    /// Verdicts that the hook wrote down and never brought to the host.
    pub lost: usize,
    /// What must not be.
    pub violations: Vec<String>,
}

impl Report {
    /// How many deaths there were.
    pub fn deaths(&self) -> usize {
        self.kills + self.cuts.values().sum::<usize>()
    }

    fn add(&mut self, other: Report) {
        self.kills += other.kills;
        for (place, count) in other.cuts {
            *self.cuts.entry(place).or_default() += count;
        }
        self.homes += other.homes;
        self.questions += other.questions;
        self.ran += other.ran;
        self.denied += other.denied;
        self.held += other.held;
        self.lost += other.lost;
        self.violations.extend(other.violations);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  {} homes, {} questions: {} allowed by the hook and run, {} denied by it, {} held; {} verdicts that it came \
             to and never told",
            self.homes, self.questions, self.ran, self.denied, self.held, self.lost
        )?;
        writeln!(f, "  {} kills", self.kills)?;
        for (place, count) in &self.cuts {
            writeln!(f, "  {count} cuts {place}")?;
        }
        for violation in &self.violations {
            writeln!(f, "  VIOLATION: {violation}")?;
        }
        write!(f, "  {} unauthorised executions", self.violations.len())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { trials, kills, seed, lanes, .. } = self;
        write!(f, "--trials {trials} --kills {kills} --seed {seed} --lanes {lanes}")
    }
}

/// One home's part.
#[derive(Clone, Copy)]
struct Part {
    seed: u64,
    deaths: usize,
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Killed,
    Cut,
}

impl Plan {
    /// Reads the command line, without the program's name.
    ///
    /// # Errors
    /// Says what cannot be understood.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Plan, String> {
        let mut plan = Plan::default();
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{name}: {value:?} is no number"));
            match name.as_str() {
                "--trials" => plan.trials = number()? as usize,
                "--kills" => plan.kills = number()? as usize,
                "--seed" => plan.seed = number()?,
                "--lanes" => plan.lanes = (number()? as usize).max(1),
                "--release-dir" => plan.folder = Some(value.into()),
                _ => {
                    return Err(format!(
                        "unknown option {name}; known: --trials, --kills, --seed, --lanes, --release-dir"
                    ));
                }
            }
        }
        plan.kills = plan.kills.min(plan.trials);
        Ok(plan)
    }

    /// Runs it and prints the sum; whether nothing was violated.
    ///
    /// # Errors
    /// Fails when it cannot be run.
    #[expect(clippy::print_stdout, reason = "what a program of the proofs prints")]
    pub async fn execute(&self) -> Result<bool, HomeError> {
        let begun = Instant::now();
        let report = run(self).await?;
        let (commit, seconds) = (crate::commit(), begun.elapsed().as_secs_f64());
        println!("hook-trials {self}: commit {commit}, {} deaths in {seconds:.0} s", report.deaths());
        println!("{report}");
        Ok(report.violations.is_empty())
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for (how, deaths) in [(How::Killed, self.kills), (How::Cut, self.trials - self.kills)] {
            for begun in (0..deaths).step_by(DEATHS_OF_A_HOME) {
                let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(parts.len() as u64);
                parts.push(Part { seed, deaths: DEATHS_OF_A_HOME.min(deaths - begun), how });
            }
        }
        parts
    }
}

/// Runs all homes of a plan.
///
/// # Errors
/// Fails when one cannot be run; a violation is no error but in the report.
pub async fn run(plan: &Plan) -> Result<Report, HomeError> {
    let cutter = match plan.trials > plan.kills {
        true => Some(crate::process::beside("cut-wire", plan.folder.as_deref())?),
        false => None,
    };
    let cutter = cutter.as_deref();
    let homes = futures_util::stream::iter(plan.parts());
    let mut homes = std::pin::pin!(homes.map(|part| one_home(part, cutter)).buffer_unordered(plan.lanes));
    let mut total = Report::default();
    while let Some(report) = homes.next().await {
        total.add(report?);
    }
    Ok(total)
}

async fn one_home(part: Part, cutter: Option<&Path>) -> Result<Report, HomeError> {
    let change = |spec: &mut Spec, _: &Path| {
        // The pauses are another proof's.
        (spec.patience.back_off, spec.patience.back_off_max) = (Duration::ZERO, Duration::ZERO);
        if let (How::Cut, Some(cutter)) = (part.how, cutter) {
            let python = std::mem::replace(&mut spec.program.python, cutter.to_owned());
            let environment = &mut spec.program.environment;
            environment.push((cut::PYTHON.into(), python.into()));
            environment.push((cut::SEED.into(), part.seed.to_string().into()));
        }
    };
    let setup = Setup {
        code: CODE,
        deadline: DEADLINE,
        host: Arc::new(NoHost),
        change: &change,
        // No power is cut here.
        durability: Durability::ProcessEnd,
    };
    let mut life = Life { home: Home::start(setup).await?, report: Report { homes: 1, ..Report::default() } };
    match part.how {
        How::Killed => life.is_killed(part).await?,
        How::Cut => life.is_cut(part).await?,
    }
    life.close().await
}

struct Life {
    home: Home,
    report: Report,
}

impl Life {
    /// Has the hook asked about the next number.
    async fn ask(&mut self) -> Result<(), HomeError> {
        self.report.questions += 1;
        let arguments = format!(r#"{{"n":{}}}"#, self.report.questions);
        let result = self.home.act(&arguments).await?;
        match Fate::of(&result) {
            Fate::Ran => self.report.ran += 1,
            Fate::Held => self.report.held += 1,
            Fate::Else if result == "Denied: an odd number" => self.report.denied += 1,
            Fate::Else => self.report.violations.push(format!("{arguments} came to {result:?}")),
        }
        Ok(())
    }

    async fn is_killed(&mut self, part: Part) -> Result<(), HomeError> {
        let mut rng = fastrand::Rng::with_seed(part.seed);
        for death in 1..=part.deaths {
            let ready = self.home.worker().ready((Instant::now() + WATCHDOG).into()).await;
            let pid = ready.map_err(HomeError::inside)?.pid;
            let (policy, number) = (self.home.policy.clone(), self.home.policy.count());
            let after = Duration::from_micros(rng.u64(0..WINDOW_MICROS));
            let killing = async move {
                policy.until(number, |_| true).await?;
                // A timer of the runtime is too coarse for this.
                let killed = tokio::task::spawn_blocking(move || {
                    std::thread::sleep(after);
                    send(pid, Signal::Kill)
                });
                Ok(killed.await.map_err(HomeError::inside)??)
            };
            let (asked, killed): (_, Result<(), HomeError>) = tokio::join!(self.ask(), killing);
            asked.and(killed)?;
            self.report.kills += 1;
            self.has_died(death).await?;
        }
        Ok(())
    }

    /// Waits until so many workers have died.
    async fn has_died(&mut self, times: usize) -> Result<(), HomeError> {
        let deaths = |changes: &Vec<Change>| {
            changes.iter().filter(|change| matches!(change, Change::Died { .. })).count() >= times
        };
        let waiting = tokio::time::timeout(WATCHDOG, self.home.changes.wait_for(deaths)).await;
        match waiting {
            Ok(Ok(_)) => Ok(()),
            _ => Err(HomeError::Absent(format!("death {times} of a worker"))),
        }
    }

    async fn is_cut(&mut self, part: Part) -> Result<(), HomeError> {
        let cuts = self.home.folder.path().join(cut::CUTS);
        let made = || std::fs::read_to_string(&cuts).unwrap_or_default();
        while made().lines().count() < part.deaths {
            self.ask().await?;
        }
        for cut in made().lines().take(part.deaths) {
            *self.report.cuts.entry(cut.to_owned()).or_default() += 1;
        }
        Ok(())
    }

    /// Judges what is left.
    async fn close(self) -> Result<Report, HomeError> {
        let Life { home, mut report } = self;
        let asked = home.policy.count();
        let Closed { records, executor, invocations, folder } = home.close().await?;
        let verdicts = std::fs::read_to_string(folder.path().join("verdicts")).unwrap_or_default();
        let ran = executor.ran();
        report.violations.extend(judge::unauthorised(&records, &ran, Some(&verdicts)));
        for ran in &ran {
            let number: serde_json::Value =
                serde_json::from_str(&ran.arguments).map_err(HomeError::inside)?;
            if number["n"].as_u64().is_none_or(|n| n % 2 != 0) {
                report.violations.push(format!("{} ran, which no hook would allow", ran.arguments));
            }
        }
        if ran.len() != report.ran {
            report.violations.push(format!("{} ran, and the model was told of {}", ran.len(), report.ran));
        }
        let decided = records.iter().filter(|one| matches!(one.record, Record::Decided { .. })).count();
        if [decided, invocations.len()] != [asked, asked] {
            let counts = format!("{asked} questions, {} invocations, {decided} decisions", invocations.len());
            report.violations.push(format!("not one record for each question: {counts}"));
        }
        report.lost = verdicts.lines().count().saturating_sub(report.ran + report.denied);
        Ok(report)
    }
}
