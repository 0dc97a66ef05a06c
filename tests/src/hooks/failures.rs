//! Every way in which a hook can fail, with a live agent around it.
//!
//! While a row happens, the operator's message must be admitted, its interrupt take effect, and a rollback work, each
//! within its bar; the deadline holds; each question leaves exactly one record; nothing runs that was not allowed; and the
//! agent answers afterwards. A row is a hook and what is expected of it ([`ROWS`]); the next one costs a few lines.
//!
//! A latency is held against its bar at once; one that misses it is measured twice more, and the median counts.

mod rows;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use klbr_core::hash::Hash;
use klbr_pyhost::{Caller, HostCallError, HostCalls, Offer, Spec};
use klbr_store::Durability;

use super::home::{Home, HomeError, Setup, WATCHDOG};
use super::judge;

pub use rows::ROWS;

/// How long a review may take.
const DEADLINE: Duration = Duration::from_millis(150);

/// The most that a deadline may be overrun beyond a control timer.
pub const OVERRUN: Duration = Duration::from_millis(20);

/// The most that an admission, the first effect of an interrupt, and a rollback may take.
pub const EFFECT: Duration = Duration::from_millis(250);

/// One way to fail.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What stands at the top of the module.
    head: &'static str,
    /// What the hook does where it misbehaves.
    bad: &'static str,
    /// What may become of an action whose hook misbehaves.
    becomes: &'static [Fate],
    /// Whether its worker comes up, and judges rightly what it is rightly asked.
    comes_up: bool,
    /// Changes to how the worker is started.
    change: fn(&mut Spec),
}

/// What became of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It ran.
    Ran,
    /// It is held for the operator.
    Held,
    /// It is anything else.
    Else,
}

impl Fate {
    pub(super) fn of(result: &str) -> Fate {
        match result {
            "ran" => Fate::Ran,
            text if text.starts_with("Held for review") => Fate::Held,
            _ => Fate::Else,
        }
    }
}

/// What was seen of a row.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The row.
    pub name: &'static str,
    /// From the operator's message to its acknowledgement.
    pub admitted: Duration,
    /// From the acknowledgement to the model's next request.
    pub effect: Duration,
    /// From the command to go back to its acknowledgement.
    pub rolled_back: Duration,
    /// How much longer than a timer of the same length a failing question took.
    pub overrun: Duration,
    /// What became of the action.
    pub fate: Fate,
    /// What must not be.
    pub faults: Vec<String>,
}

impl Figures {
    pub(super) fn of(name: &'static str) -> Figures {
        let none = Duration::ZERO;
        let (admitted, effect, rolled_back, overrun) = (none, none, none, none);
        Figures { name, admitted, effect, rolled_back, overrun, fate: Fate::Else, faults: Vec::new() }
    }

    /// The bars that are missed.
    pub fn missed(&self) -> Vec<String> {
        let bars = [
            ("admission", self.admitted, EFFECT),
            ("interrupt", self.effect, EFFECT),
            ("rollback", self.rolled_back, EFFECT),
            ("overrun", self.overrun, OVERRUN),
        ];
        let missed = bars.into_iter().filter(|(_, figure, bar)| figure > bar);
        missed.map(|(what, figure, bar)| format!("{}: {what} {figure:?} > {bar:?}", self.name)).collect()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
        write!(
            f,
            "{:42} {:5} admitted {:>9}, interrupt {:>9}, rollback {:>9}, overrun {:>9}, faults {}",
            self.name,
            format!("{:?}", self.fate).to_lowercase(),
            millis(self.admitted),
            millis(self.effect),
            millis(self.rolled_back),
            millis(self.overrun),
            self.faults.len()
        )
    }
}

/// Measures a row; again, and with the median, when a bar is missed.
///
/// # Errors
///
/// Fails when it cannot be measured.
pub async fn measure(row: &Row) -> Result<Figures, HomeError> {
    let first = once(row).await?;
    if first.missed().is_empty() {
        return Ok(first);
    }
    let runs = [first, once(row).await?, once(row).await?];
    let median = |figure: fn(&Figures) -> Duration| {
        let mut figures = runs.each_ref().map(figure);
        figures.sort_unstable();
        figures[1]
    };
    Ok(Figures {
        name: row.name,
        admitted: median(|run| run.admitted),
        effect: median(|run| run.effect),
        rolled_back: median(|run| run.rolled_back),
        overrun: median(|run| run.overrun),
        fate: runs[0].fate,
        faults: runs.iter().flat_map(|run| run.faults.clone()).collect(),
    })
}

/// Measures a row once.
///
/// # Errors
///
/// Fails when it cannot be measured.
pub async fn once(row: &Row) -> Result<Figures, HomeError> {
    let setup = Setup {
        code: &row.module(),
        deadline: DEADLINE,
        host: Arc::new(Peek),
        change: &|spec, _| (row.change)(spec),
        durability: Durability::PowerCut,
    };
    let mut run = Run { row, home: Home::start(setup).await?, number: 0, faults: Vec::new() };
    if row.comes_up {
        run.judges_rightly().await?;
    }
    let (fate, overrun) = run.is_left_alone().await?;
    if row.comes_up {
        run.judges_rightly().await?;
    }
    let (admitted, effect) = run.is_interrupted().await?;
    if row.comes_up {
        run.judges_rightly().await?;
    }
    let rolled_back = run.is_rolled_back().await?;
    let faults = run.close().await?;
    Ok(Figures { name: row.name, admitted, effect, rolled_back, overrun, fate, faults })
}

struct Run<'a> {
    row: &'a Row,
    home: Home,
    number: u64,
    faults: Vec<String>,
}

impl Run<'_> {
    fn arguments(&mut self, what: &str) -> String {
        self.number += 1;
        format!(r#"{{"what":"{what}","n":{}}}"#, self.number)
    }

    /// The hook misbehaves, and nobody interferes.
    async fn is_left_alone(&mut self) -> Result<(Fate, Duration), HomeError> {
        let asked = self.home.policy.count();
        let arguments = self.arguments("bad");
        let fate = Fate::of(&self.home.act(&arguments).await?);
        if !self.row.becomes.contains(&fate) {
            self.faults.push(format!("{fate:?} became of the action, not {:?}", self.row.becomes));
        }
        let is_over = |asked: &super::home::Asked| asked.took.is_some() && asked.control.is_some();
        let question = self.home.policy.until(asked, is_over).await?;
        let (took, control) = (question.took.unwrap_or_default(), question.control.unwrap_or_default());
        Ok((fate, took.saturating_sub(control)))
    }

    /// The operator speaks in the midst of it, and is answered.
    async fn is_interrupted(&mut self) -> Result<(Duration, Duration), HomeError> {
        self.misbehaves().await?;
        let (admitted, effect, answer) = self.home.interrupt().await?;
        if answer.starts_with("Held") || answer.starts_with("Denied") {
            self.faults.push(format!("the operator was not answered: {answer}"));
        }
        Ok((admitted, effect))
    }

    /// The operator goes back to no policy in the midst of it: nobody is asked any more.
    async fn is_rolled_back(&mut self) -> Result<Duration, HomeError> {
        self.misbehaves().await?;
        let took = self.home.roll_back().await?;
        let asked = self.home.policy.count();
        let arguments = self.arguments("good");
        let result = self.home.act(&arguments).await?;
        if Fate::of(&result) != Fate::Ran || self.home.policy.count() != asked {
            self.faults.push(format!("a hook still decides after it was taken out of force: {result}"));
        }
        Ok(took)
    }

    /// Has the hook begin to misbehave.
    async fn misbehaves(&mut self) -> Result<(), HomeError> {
        let begun = self.home.folder.path().join("begun");
        let times = || std::fs::metadata(&begun).map_or(0, |file| file.len());
        let (asked, before) = (self.home.policy.count(), times());
        let arguments = self.arguments("bad");
        self.home.say(&format!("do {arguments}")).await?;
        self.home.policy.until(asked, |_| true).await?;
        let until = Instant::now() + WATCHDOG;
        // A worker that never comes up never begins.
        while self.row.comes_up && times() == before && Instant::now() < until {
            if self.home.policy.asked().get(asked).is_some_and(|asked| asked.took.is_some()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// What is rightly asked is rightly judged, once there is a worker again.
    async fn judges_rightly(&mut self) -> Result<(), HomeError> {
        let until = Instant::now() + WATCHDOG;
        loop {
            // A worker that is about to be replaced may still be there, and answers nothing.
            let ready = self.home.worker().ready((Instant::now() + WATCHDOG).into()).await;
            ready.map_err(HomeError::inside)?;
            let arguments = self.arguments("good");
            let result = self.home.act(&arguments).await?;
            if Fate::of(&result) == Fate::Ran {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(HomeError::Absent(format!("a worker that judges rightly; {result}")));
            }
        }
    }

    /// Judges what is left.
    async fn close(self) -> Result<Vec<String>, HomeError> {
        let Run { row, home, mut faults, .. } = self;
        if !home.handle().ledger().await.map_err(HomeError::inside)?.balances() {
            faults.push("an event is not accounted for".to_owned());
        }
        let asked = home.policy.asked();
        let closed = home.close().await?;
        let ran = closed.executor.ran();
        faults.extend(judge::unauthorised(&closed.records, &ran, None));
        if !row.becomes.contains(&Fate::Ran) && ran.iter().any(|ran| ran.arguments.contains("bad")) {
            faults.push("an action ran whose hook misbehaved".to_owned());
        }
        let mut left: BTreeMap<Hash, i64> = BTreeMap::new();
        for invocation in &closed.invocations {
            *left.entry(invocation.question).or_default() += 1;
        }
        for asked in &asked {
            let body = serde_json::to_value(&asked.question).map_err(HomeError::inside)?;
            let bytes = serde_json::to_vec(&body).map_err(HomeError::inside)?;
            *left.entry(Hash::of(&bytes)).or_default() -= 1;
        }
        let unequal = left.values().filter(|count| **count != 0).count();
        if unequal > 0 {
            faults.push(format!("{unequal} questions have not left exactly one record each"));
        }
        Ok(faults)
    }
}

impl Row {
    /// The module whose `f` misbehaves where it is asked about something bad.
    fn module(&self) -> String {
        let bad = self.bad.replace('\n', "\n        ");
        format!(
            "import os\n{}\nfrom klbr import hooks\n\n\
             def begin():\n    fd = os.open('begun', os.O_CREAT | os.O_WRONLY | os.O_APPEND)\n    \
             os.write(fd, b'.')\n    os.close(fd)\n\n\
             async def f(question, host):\n    if '\"bad\"' in question.arguments:\n        begin()\n        \
             {bad}\n    return hooks.allow()\n",
            self.head
        )
    }
}

/// A host with one thing to read.
struct Peek;

#[async_trait]
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
