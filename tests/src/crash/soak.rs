//! A soak: people talk without a pause on a Discord that goes wrong every second or two, in every way that its gateway
//! and its API can, and at the end nothing is missed and nothing was made twice.
//!
//! Owns what goes wrong, and the sum. The judge is the matrix's. Refuses to kill the daemon: that is the matrix's too.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::people::MESSAGES;
use super::schedule::Schedule;
use super::{CrashError, Report, World, home};
use crate::discord_double::{Answer, Control, CutHow, Fault, Make, Scope, Tricks};

/// How long dispatches are lost before the connection is.
const LOSES: Duration = Duration::from_millis(400);

/// The heartbeat interval: a connection whose heartbeats are not acknowledged is given up within two of it.
pub(super) const HEARTBEAT_MS: u64 = 1_000;

/// What is run.
#[derive(Clone, Debug)]
pub struct Soak {
    /// For how long.
    pub lasts: Duration,
    /// What the schedule is made from.
    pub seed: u64,
    /// Where `klbrd` is, if not beside the running program.
    pub folder: Option<PathBuf>,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mishap {
    /// The connection ends so.
    Cut(CutHow),
    /// Dispatches are numbered and never arrive, and then the connection is cut.
    Lost,
    /// Dispatches come twice, and others out of order.
    Muddled,
    /// The connection is cut, and the session cannot be resumed.
    Expired,
    /// The connection is cut, and the next RESUME is answered so.
    Resumed(Answer),
    /// The connection is cut, and the next ones are turned away.
    TurnedAway,
    /// Heartbeats are not acknowledged for a while.
    Zombie,
    /// The next message's request goes wrong.
    Post(u8),
}

impl Mishap {
    const ALL: [Mishap; 19] = [
        Mishap::Cut(CutHow::Cut),
        Mishap::Cut(CutHow::Close(4000)),
        Mishap::Cut(CutHow::Close(4007)),
        Mishap::Cut(CutHow::Close(4009)),
        Mishap::Cut(CutHow::Close(1001)),
        Mishap::Cut(CutHow::Reconnect),
        Mishap::Cut(CutHow::Invalid(true)),
        Mishap::Cut(CutHow::Invalid(false)),
        Mishap::Lost,
        Mishap::Muddled,
        Mishap::Expired,
        Mishap::Resumed(Answer::Invalid(false)),
        Mishap::Resumed(Answer::Cut),
        Mishap::TurnedAway,
        Mishap::Zombie,
        Mishap::Post(0),
        Mishap::Post(1),
        Mishap::Post(2),
        Mishap::Post(3),
    ];

    fn as_str(self) -> &'static str {
        match self {
            Mishap::Cut(CutHow::Cut) => "cut without a word",
            Mishap::Cut(CutHow::Close(4007)) => "closed with 4007",
            Mishap::Cut(CutHow::Close(4009)) => "closed with 4009",
            Mishap::Cut(CutHow::Close(1001)) => "closed with 1001",
            Mishap::Cut(CutHow::Close(_)) => "closed with 4000",
            Mishap::Cut(CutHow::Reconnect) => "asked to reconnect (op 7)",
            Mishap::Cut(CutHow::Invalid(true)) => "invalid session, resumable (op 9)",
            Mishap::Cut(CutHow::Invalid(false)) => "invalid session (op 9)",
            Mishap::Cut(CutHow::Heartbeat) => "asked for a heartbeat (op 1)",
            Mishap::Lost => "dispatches lost, then cut",
            Mishap::Muddled => "dispatches twice and out of order",
            Mishap::Expired => "sessions forgotten (4009)",
            Mishap::Resumed(Answer::Cut) => "cut, and the resume cut",
            Mishap::Resumed(_) => "cut, and the resume refused (op 9)",
            Mishap::TurnedAway => "cut, and two connections turned away",
            Mishap::Zombie => "heartbeats not acknowledged",
            Mishap::Post(0) => "a message made, its answer cut",
            Mishap::Post(1) => "a message made, its answer unreadable",
            Mishap::Post(2) => "a message answered with 502",
            Mishap::Post(_) => "a message answered with 429",
        }
    }

    async fn happen(self, control: &Control) -> Result<(), CrashError> {
        let cut = || control.cut(CutHow::Cut);
        match self {
            Mishap::Cut(how) => drop(control.cut(how).await?),
            Mishap::Lost => {
                control.tricks(Tricks { lose: 1_000_000, ..Tricks::default() }).await?;
                tokio::time::sleep(LOSES).await;
                cut().await?;
                control.tricks(Tricks::default()).await?;
            }
            Mishap::Muddled => {
                control.tricks(Tricks { duplicate: 2, reorder: 3, ..Tricks::default() }).await?;
            }
            Mishap::Expired => control.expire().await?,
            Mishap::Resumed(answer) => {
                control.on_resume(&[answer]).await?;
                cut().await?;
            }
            Mishap::TurnedAway => {
                control.set(json!({"turn_away": 2})).await?;
                cut().await?;
            }
            Mishap::Zombie => {
                control.set(json!({"acknowledge": false})).await?;
                tokio::time::sleep(Duration::from_millis(HEARTBEAT_MS * 5 / 2)).await;
                control.set(json!({"acknowledge": true})).await?;
            }
            Mishap::Post(how) => {
                let make = match how {
                    0 => Make::CutAfter,
                    1 => Make::Garble,
                    2 => Make::Fail { status: 502, body: None },
                    _ => Make::Limit { retry_after_ms: 300, scope: Scope::User },
                };
                control.faults([Fault::new(make).on("POST", MESSAGES)]).await?;
            }
        }
        Ok(())
    }
}

/// One mishap after the other, for so long; each is counted. At the end all is well again.
pub(super) async fn mishaps(
    control: &Control,
    rng: &mut fastrand::Rng,
    lasts: Duration,
    report: &mut Report,
) -> Result<(), CrashError> {
    let begun = Instant::now();
    let mut left = Vec::new();
    while begun.elapsed() < lasts {
        if left.is_empty() {
            left = Mishap::ALL.to_vec();
            rng.shuffle(&mut left);
        }
        let Some(mishap) = left.pop() else { continue };
        tokio::time::sleep(Duration::from_millis(rng.u64(500..2_000))).await;
        mishap.happen(control).await?;
        *report.points.entry(mishap.as_str()).or_default() += 1;
    }
    control.clear_faults().await?;
    control.tricks(Tricks::default()).await?;
    control.on_resume(&[]).await?;
    Ok(control.set(json!({"turn_away": 0, "acknowledge": true})).await?)
}

impl Soak {
    /// Reads the command line, without the program's name.
    ///
    /// # Errors
    /// Says what cannot be understood.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Soak, String> {
        let mut soak = Soak { lasts: Duration::from_secs(40), seed: 1, folder: None };
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{name}: {value:?} is no number"));
            match name.as_str() {
                "--seconds" => soak.lasts = Duration::from_secs(number()?),
                "--seed" => soak.seed = number()?,
                "--release-dir" => soak.folder = Some(value.into()),
                _ => return Err(format!("unknown option {name}; known: --seconds, --seed, --release-dir")),
            }
        }
        Ok(soak)
    }

    /// Runs it.
    ///
    /// # Errors
    /// Fails when it cannot be run; a violation is no error but in the report.
    pub async fn run(&self) -> Result<Report, CrashError> {
        let schedule = Schedule::new(World::Discord, self.seed, 0, 0);
        Ok(home::soak(schedule, self.lasts, self.folder.as_deref()).await?.0)
    }

    /// Runs it and prints the summary; whether nothing was violated.
    ///
    /// # Errors
    /// Fails when it cannot be run.
    #[expect(clippy::print_stdout, reason = "what a program of the proofs prints")]
    pub async fn execute(&self) -> Result<bool, CrashError> {
        let (begun, commit) = (Instant::now(), crate::commit());
        let report = self.run().await?;
        let mishaps: usize = report.points.values().sum();
        println!(
            "discord soak: commit {commit}, {self}: {mishaps} mishaps of {} kinds in {:.0} s; {} violations",
            report.points.len(),
            begun.elapsed().as_secs_f64(),
            report.violations.len(),
        );
        for (mishap, count) in &report.points {
            println!("  {mishap}: {count}");
        }
        print!("{}", report.discord_summary());
        print!("{}", report.findings());
        Ok(report.violations.is_empty())
    }
}

impl fmt::Display for Soak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--seconds {} --seed {}", self.lasts.as_secs(), self.seed)
    }
}
