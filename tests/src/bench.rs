//! The benchmarks: the bars of the architecture that apply, each measured on the real thing and printed with its
//! method.
//!
//! Owns the rows, their figures and the printing. A bar that is missed is printed as missed. Latencies are stamped by
//! the peer: by the model server that saw a connection drop or a request arrive, by whoever looks into `/proc`
//! (`C-PRF-2`). Refuses to sum figures up into a verdict on anything but their bar.

mod admission;
mod cold;
mod deciding;
mod discord;
mod interrupt;
mod life;
mod python;
mod rig;
mod tree;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::daemon::ApiError;
use crate::fake_model::ClientError;
use crate::process::ProcessError;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rows.
    pub rows: Vec<Row>,
    /// How often a thing is measured: runs of a latency, a tenth of it for what takes long.
    pub runs: usize,
    /// How many trees of processes are killed.
    pub trees: usize,
    /// Where the binaries are, if not beside the running program.
    pub folder: Option<PathBuf>,
    /// Whether lines are JSON.
    pub json: bool,
}

/// One group of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// From an operator's message to the end of what ran, in every state.
    Interrupt,
    /// From an operator's message until a whole tree of processes is gone.
    Tree,
    /// From a directed event to the next request, out of a wait.
    Wake,
    /// Durable admissions.
    Admission,
    /// Starts.
    Cold,
    /// Memory.
    Rss,
    /// A start with 10,000 waiting events.
    Restart,
    /// The growth of the database.
    Growth,
    /// Hooks and cells in Python.
    Python,
    /// Messages on Discord: one, and many at once.
    Discord,
    /// 10,000 messages on Discord within a minute.
    Burst,
}

impl Row {
    /// Every row that takes no longer than it must.
    pub const ALL: [Row; 10] = [
        Row::Interrupt,
        Row::Tree,
        Row::Wake,
        Row::Admission,
        Row::Cold,
        Row::Rss,
        Row::Restart,
        Row::Growth,
        Row::Python,
        Row::Discord,
    ];

    /// Rows that take their time, and are run only when they are named.
    pub const LONG: [Row; 1] = [Row::Burst];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Row::Interrupt => "interrupt",
            Row::Tree => "tree",
            Row::Wake => "wake",
            Row::Admission => "admission",
            Row::Cold => "cold",
            Row::Rss => "rss",
            Row::Restart => "restart",
            Row::Growth => "growth",
            Row::Python => "python",
            Row::Discord => "discord",
            Row::Burst => "burst",
        }
    }
}

/// One printed line.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The row.
    pub row: &'static str,
    /// What was measured.
    pub what: String,
    /// How.
    pub method: String,
    /// How often.
    pub n: usize,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// One figure, with its bar if it has one.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Which: `p50`, `rate`, …
    pub name: String,
    /// How much.
    pub value: f64,
    /// In what.
    pub unit: &'static str,
    /// What it is held against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bar: Option<Bar>,
}

/// What a figure is held against.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bar {
    /// It is to be no more than this.
    AtMost(f64),
    /// It is to be no less than this.
    AtLeast(f64),
}

impl Figure {
    /// A figure without a bar.
    pub fn plain(name: impl Into<String>, value: f64, unit: &'static str) -> Figure {
        Figure { name: name.into(), value, unit, bar: None }
    }

    /// Holds it against a bar.
    #[must_use]
    pub fn against(self, bar: Bar) -> Figure {
        Figure { bar: Some(bar), ..self }
    }

    /// Whether it is as its bar says; true without one.
    pub fn is_met(&self) -> bool {
        match self.bar {
            None => true,
            Some(Bar::AtMost(most)) => self.value <= most,
            Some(Bar::AtLeast(least)) => self.value >= least,
        }
    }
}

/// The median and the 99th percentile of these times, in milliseconds, and the longest.
pub fn spread(times: &[Duration], p50: Option<f64>, p99: Option<f64>) -> Vec<Figure> {
    let at = |percent| klbr_core::testkit::store_suite::load::percentile(times, percent).as_secs_f64() * 1e3;
    let figure = |name: &str, percent, bar: Option<f64>| {
        let figure = Figure::plain(name, at(percent), "ms");
        bar.map_or(figure.clone(), |most| figure.against(Bar::AtMost(most)))
    };
    vec![figure("p50", 50, p50), figure("p99", 99, p99), figure("max", 100, None)]
}

impl Line {
    /// Whether every bar is met.
    pub fn is_met(&self) -> bool {
        self.figures.iter().all(Figure::is_met)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:9} {}: ", self.row, self.what)?;
        for (place, figure) in self.figures.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            let precision = if figure.value.abs() < 100.0 { 2 } else { 0 };
            write!(f, "{comma}{} {:.precision$} {}", figure.name, figure.value, figure.unit)?;
            let verdict = if figure.is_met() { "met" } else { "MISSED" };
            match figure.bar {
                None => {}
                Some(Bar::AtMost(most)) => write!(f, " (≤ {most}: {verdict})")?,
                Some(Bar::AtLeast(least)) => write!(f, " (≥ {least}: {verdict})")?,
            }
        }
        write!(f, "; n {}; {}", self.n, self.method)
    }
}

/// Why a row could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A process could not be had.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The model server could not be asked, or did not see what was waited for.
    #[error(transparent)]
    Model(#[from] ClientError),
    /// The daemon could not be asked.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// No agent with hooks could be had.
    #[error(transparent)]
    Hooks(#[from] crate::hooks::HomeError),
    /// The system refused.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// Something inside this process failed.
    #[error("{0}")]
    Inside(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What was waited for did not come.
    #[error("{0}")]
    Absent(String),
}

impl BenchError {
    fn inside(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> BenchError {
        BenchError::Inside(error.into())
    }
}

impl Plan {
    /// Reads the command line, without the program's name.
    ///
    /// # Errors
    /// Says what cannot be understood.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Plan, String> {
        let mut plan = Plan { rows: Vec::new(), runs: 200, trees: 100, folder: None, json: false };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            let number = |text: String| text.parse::<usize>().map_err(|_| format!("{text:?} is no number"));
            match argument.as_str() {
                "all" => plan.rows.extend(Row::ALL),
                "--json" => plan.json = true,
                "--runs" => plan.runs = number(value()?)?.max(1),
                "--trees" => plan.trees = number(value()?)?.max(1),
                "--release-dir" => plan.folder = Some(value()?.into()),
                name => {
                    let mut rows = Row::ALL.into_iter().chain(Row::LONG);
                    plan.rows.push(rows.find(|row| row.as_str() == name).ok_or_else(|| {
                        let (rows, long) = (Row::ALL.map(Row::as_str).join(", "), Row::LONG.map(Row::as_str).join(", "));
                        format!("there is no row {name:?}; there are {rows}, and all; and {long}, which all leaves out")
                    })?);
                }
            }
        }
        if plan.rows.is_empty() {
            return Err(
                "usage: bench ROW...|all [--runs N] [--trees N] [--release-dir FOLDER] [--json]".to_owned()
            );
        }
        Ok(plan)
    }

    /// Measures each row and prints its lines as they come; how many bars were met, and how many there are.
    ///
    /// # Errors
    /// Fails when a row cannot be measured; the rows before it have been printed.
    #[expect(clippy::print_stdout, reason = "what a program of the proofs prints")]
    pub async fn execute(&self) -> Result<(usize, usize), BenchError> {
        if !self.json {
            let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
            println!("bench: commit {}, {profile} profile of the bench itself", crate::commit());
        }
        let (mut met, mut bars) = (0, 0);
        for row in &self.rows {
            for line in self.measure(*row).await? {
                let with_bar = line.figures.iter().filter(|figure| figure.bar.is_some());
                bars += with_bar.clone().count();
                met += with_bar.filter(|figure| figure.is_met()).count();
                match self.json {
                    true => println!("{}", serde_json::to_string(&line).map_err(BenchError::inside)?),
                    false => println!("{line}"),
                }
            }
        }
        if !self.json {
            println!("bench: {met} of {bars} bars met");
        }
        Ok((met, bars))
    }

    /// Measures one row.
    ///
    /// # Errors
    /// Fails when it cannot be measured.
    pub async fn measure(&self, row: Row) -> Result<Vec<Line>, BenchError> {
        match row {
            Row::Interrupt => {
                let mut lines = interrupt::measure(self).await?;
                lines.extend(deciding::measure(self).await?);
                Ok(lines)
            }
            Row::Tree => tree::measure(self).await,
            Row::Wake => interrupt::wake(self).await,
            Row::Admission => admission::measure(self).await,
            Row::Cold => cold::measure(self).await,
            Row::Rss => life::memory(self).await,
            Row::Restart => life::restart(self).await,
            Row::Growth => life::growth(self).await,
            Row::Python => python::measure(self).await,
            Row::Discord => discord::measure(self).await,
            Row::Burst => discord::burst(self).await,
        }
    }
}
