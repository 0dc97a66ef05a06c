//! The crash matrix: the real daemon is killed again and again on homes that live on, and judged from outside
//! (`C-PRF-1`).
//!
//! Owns the schedule of the kills, the client that keeps its own log of acknowledgements, and the sum. What must hold
//! is in [`evidence`]. Refuses to look into the daemon: it sees what a client, the model server and the file system see.
//!
//! A third of the kills come at random times between the start of the process and some time after it is ready; the
//! others while it stands still at a named point (`KLBR_PAUSE_AT`). A run of the same seed has the same schedule; what
//! the kernel makes of it differs.
//!
//! Two worlds: in the one the operator speaks, in the other people on the double of Discord, where some kills come while
//! a request is held that has made its message and was not answered.

pub mod evidence;
mod home;
mod people;
mod schedule;
mod soak;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::daemon::ApiError;
use crate::fake_model::ClientError;
use crate::process::ProcessError;
pub use evidence::Evidence;
pub use soak::Soak;

/// Who speaks to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// Its operator, over the daemon's API.
    Operator,
    /// People on Discord.
    Discord,
}

impl World {
    /// How many daemons one home sees before a new one is begun: for the operator's enough for its checkpoints to come
    /// up, for Discord's few enough that many homes are begun.
    fn lives_of_a_home(self) -> usize {
        match self {
            World::Operator => 125,
            World::Discord => 50,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            World::Operator => "operator",
            World::Discord => "discord",
        }
    }
}

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who speaks.
    pub world: World,
    /// How many kills.
    pub trials: usize,
    /// What the schedule is made from.
    pub seed: u64,
    /// How many homes live at once.
    pub lanes: usize,
    /// Where `klbrd` is, if not beside the running program.
    pub folder: Option<PathBuf>,
}

/// What was done and found.
#[derive(Debug, Default)]
pub struct Report {
    /// Kills.
    pub trials: usize,
    /// Kills at random times.
    pub random: usize,
    /// Kills at each named point.
    pub points: BTreeMap<&'static str, usize>,
    /// Kills at no point because it was not reached in time; they are in none of the counts above but the first.
    pub unreached: BTreeMap<&'static str, usize>,
    /// Homes.
    pub homes: usize,
    /// Messages acknowledged and answered; on Discord messages that were said to the agent.
    pub messages: usize,
    /// Keys that were sent again after their acknowledgement.
    pub repeats: usize,
    /// Deliveries told.
    pub deliveries: usize,
    /// Lines that commands have written.
    pub effects: usize,
    /// Attempts that ended as unknown.
    pub unknown: usize,
    /// Requests that the model server captured.
    pub requests: usize,
    /// Records.
    pub records: usize,
    /// Markers that the model itself had said more than once.
    pub said_again: usize,
    /// What was seen at Discord.
    pub discord: AtDiscord,
    /// What must not be.
    pub violations: Vec<String>,
    /// Where the homes with violations are.
    pub kept: Vec<PathBuf>,
}

/// What the double of Discord saw over all homes.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtDiscord {
    /// Messages that nobody in particular was meant by.
    pub chatter: usize,
    /// Messages that the agent made.
    pub made: usize,
    /// Requests that were answered with a message that was there under its nonce.
    pub known_nonces: u64,
    /// Gateway sessions that went on after a kill.
    pub resumed: u64,
    /// Gateway sessions that began.
    pub identified: u64,
}

/// Why a run came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    /// A process could not be had.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The model server could not be asked.
    #[error(transparent)]
    Model(#[from] ClientError),
    /// The daemon could not be asked.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// A home could not be made or read.
    #[error("{doing}: {source}")]
    Home {
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
}

impl CrashError {
    fn home(doing: &'static str) -> impl FnOnce(std::io::Error) -> CrashError {
        move |source| CrashError::Home { doing, source }
    }
}

/// Runs the matrix; `progress` hears of each home that is done.
///
/// # Errors
/// Fails when the matrix itself cannot be run; a violation is no error but in the report.
pub async fn run(plan: &Plan, progress: impl Fn(&Report)) -> Result<Report, CrashError> {
    let homes = plan.trials.div_ceil(plan.world.lives_of_a_home()).max(plan.lanes.min(plan.trials));
    let lives = |home: usize| plan.trials / homes + usize::from(home < plan.trials % homes);
    let mut waiting = 0..homes;
    let mut running = tokio::task::JoinSet::new();
    let mut report = Report::default();
    loop {
        while running.len() < plan.lanes.max(1)
            && let Some(home) = waiting.next()
        {
            let schedule = schedule::Schedule::new(plan.world, plan.seed, home as u64, lives(home));
            let folder = plan.folder.clone();
            running.spawn(async move { home::live(schedule, folder.as_deref()).await });
        }
        match running.join_next().await {
            None => return Ok(report),
            Some(Ok(done)) => {
                report.add(done?.0);
                progress(&report);
            }
            Some(Err(panic)) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}

/// One home of a run, with the evidence that it was judged on.
///
/// # Errors
/// Fails when it cannot be run.
pub async fn run_one(world: World, seed: u64, trials: usize) -> Result<(Report, Evidence), CrashError> {
    home::live(schedule::Schedule::new(world, seed, 0, trials), None).await
}

impl Report {
    fn add(&mut self, other: Report) {
        self.trials += other.trials;
        self.random += other.random;
        for (point, count) in other.points {
            *self.points.entry(point).or_default() += count;
        }
        for (point, count) in other.unreached {
            *self.unreached.entry(point).or_default() += count;
        }
        self.homes += other.homes;
        self.messages += other.messages;
        self.repeats += other.repeats;
        self.deliveries += other.deliveries;
        self.effects += other.effects;
        self.unknown += other.unknown;
        self.requests += other.requests;
        self.records += other.records;
        self.said_again += other.said_again;
        self.discord.chatter += other.discord.chatter;
        self.discord.made += other.discord.made;
        self.discord.known_nonces += other.discord.known_nonces;
        self.discord.resumed += other.discord.resumed;
        self.discord.identified += other.discord.identified;
        self.violations.extend(other.violations);
        self.kept.extend(other.kept);
    }

    /// The closing summary, over several lines.
    pub fn summary(&self, plan: &Plan, commit: &str, took: Duration) -> String {
        let named: usize = self.points.values().sum();
        let mut text = format!(
            "crash matrix ({}): commit {commit}, seed {}, {} SIGKILLs in {:.0} s on {} homes: {} at random times, {named} \
             at {} named points, {} where the point was not reached in time; {} violations\n",
            plan.world.as_str(),
            plan.seed,
            self.trials,
            took.as_secs_f64(),
            self.homes,
            self.random,
            self.points.len(),
            self.unreached.values().sum::<usize>(),
            self.violations.len(),
        );
        for (point, count) in &self.points {
            text += &format!("  {point}: {count}\n");
        }
        for (point, count) in &self.unreached {
            text += &format!("  not reached: {point}: {count}\n");
        }
        text += &match plan.world {
            World::Operator => format!(
                "  {} messages acknowledged and answered ({} keys sent again), {} deliveries ({} markers said again by the \
                 model itself), {} effects{}",
                self.messages,
                self.repeats,
                self.deliveries,
                self.said_again,
                self.effects,
                self.rest(),
            ),
            World::Discord => self.discord_summary(),
        };
        text += &self.findings();
        if !self.violations.is_empty() {
            text += &format!("  again: crash-matrix {plan}\n");
        }
        text
    }

    /// What was said and made at Discord, in one line.
    fn discord_summary(&self) -> String {
        format!(
            "  {} messages said to the agent and accounted for, beside {} of chatter; {} confirmed deliveries ({} \
             markers said again by the model itself); at Discord {} messages made, {} of them found again by their \
             nonce, {} sessions resumed, {} begun{}",
            self.messages,
            self.discord.chatter,
            self.deliveries,
            self.said_again,
            self.discord.made,
            self.discord.known_nonces,
            self.discord.resumed,
            self.discord.identified,
            self.rest(),
        )
    }

    fn rest(&self) -> String {
        format!(
            ", {} attempts flagged unknown, {} requests captured, {} records\n",
            self.unknown, self.requests, self.records,
        )
    }

    /// Violations, a line each, and where their homes are.
    fn findings(&self) -> String {
        let mut text = String::new();
        for violation in &self.violations {
            text += &format!("  VIOLATION: {violation}\n");
        }
        for home in &self.kept {
            text += &format!("  kept: {}\n", home.display());
        }
        text
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world.as_str();
        write!(f, "--world {world} --trials {} --seed {} --lanes {}", self.trials, self.seed, self.lanes)
    }
}

impl Plan {
    /// Reads the command line, without the program's name.
    ///
    /// # Errors
    /// Says what cannot be understood.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Plan, String> {
        let mut plan = Plan { world: World::Operator, trials: 500, seed: 1, lanes: 2, folder: None };
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{name}: {value:?} is no number"));
            match name.as_str() {
                "--world" => {
                    plan.world = [World::Operator, World::Discord]
                        .into_iter()
                        .find(|world| world.as_str() == value)
                        .ok_or_else(|| format!("--world: {value:?} is neither operator nor discord"))?;
                }
                "--trials" => plan.trials = number()? as usize,
                "--seed" => plan.seed = number()?,
                "--lanes" => plan.lanes = number()? as usize,
                "--release-dir" => plan.folder = Some(value.into()),
                _ => {
                    return Err(format!(
                        "unknown option {name}; known: --world, --trials, --seed, --lanes, --release-dir"
                    ));
                }
            }
        }
        Ok(plan)
    }

    /// Runs it, tells of each home on standard error, and prints the summary; whether nothing was violated.
    ///
    /// # Errors
    /// Fails when it cannot be run.
    #[expect(clippy::print_stdout, clippy::print_stderr, reason = "what a program of the proofs prints")]
    pub async fn execute(&self) -> Result<bool, CrashError> {
        let (begun, commit) = (Instant::now(), crate::commit());
        let report = run(self, |report| {
            eprintln!("crash matrix: {} kills, {} violations", report.trials, report.violations.len());
        })
        .await?;
        print!("{}", report.summary(self, &commit, begun.elapsed()));
        Ok(report.violations.is_empty())
    }
}
