//! Observers with a live agent around them: one that fails and fails, and a host that ends under one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::event::SourceKind;
use klbr_core::ids::Seq;
use klbr_core::policy::Heard;
use klbr_core::record::{Record, Stamped};
use klbr_pyhost::{
    Advance, Batch, Begin, Entry, Journal, JournalError, Kind, NoHost, Observer, Observers, Outcome, Records,
    Spec,
};
use klbr_store::Durability;
use tokio::sync::watch;

use super::failures::{Fate, Figures};
use super::home::{Folder, Home, HomeError, Setup, WATCHDOG};

/// The observer's name.
const NAME: &str = "tidy";

/// How often it may fail on one record.
const ATTEMPTS: usize = 50;

/// What the observer of a home is, beside a hook that allows everything.
fn module(observer: &str) -> String {
    format!(
        "import os\nfrom klbr import hooks\n\nasync def f(review):\n    return hooks.allow()\n\n{observer}"
    )
}

async fn start(folder: Folder, code: &str) -> Result<Home, HomeError> {
    let change = |spec: &mut Spec, _: &Path| {
        spec.hooks.push(Entry {
            run: "p:g".into(),
            kind: Kind::Observer,
            name: Heard::TurnEnded.as_str().into(),
        });
    };
    let (deadline, host, durability) = (Duration::from_secs(10), Arc::new(NoHost), Durability::PowerCut);
    Home::start_in(folder, Setup { code, deadline, host, change: &change, durability }).await
}

fn observe(home: &Home, journal: Arc<Watched>) -> Observers {
    let observer = Observer {
        name: NAME.into(),
        run: "p:g".into(),
        hears: Heard::TurnEnded,
        deadline: Duration::from_secs(5),
        attempts: ATTEMPTS as u32,
        // The pauses are another proof's.
        pause: Duration::ZERO,
        from: Begin::Cursor,
    };
    Observers::start(Arc::clone(home.worker()), vec![observer], journal, home.recorder())
}

/// An observer fails fifty times on one record: that is a dead letter, and it hears the next.
///
/// # Errors
///
/// Fails when it cannot be seen.
pub async fn fails_fifty_times() -> Result<Figures, HomeError> {
    let mut figures = Figures::of("an observer that fails 50 times");
    let code = module(
        "first = None\n\nasync def g(record):\n    global first\n    first = first or record['seq']\n    \
         if record['seq'] == first:\n        raise ValueError('no idea')\n",
    );
    let mut home = start(Folder::new()?, &code).await?;
    let journal = Watched::of(&home);
    let observers = observe(&home, Arc::clone(&journal));
    journal.is_placed().await?;
    home.act(r#"{"what":"good","n":1}"#).await?;
    let answer;
    (figures.admitted, figures.effect, answer) = home.interrupt().await?;
    if answer.starts_with("Held") {
        figures.faults.push(format!("the operator was not answered: {answer}"));
    }
    figures.rolled_back = home.roll_back().await?;
    figures.fate = Fate::of(&home.act(r#"{"what":"good","n":2}"#).await?);
    journal.has_heard(2).await?;
    observers.stop().await;
    let closed = home.close().await?;
    let gave_up = closed.records.iter().filter_map(|stamped| match &stamped.record {
        Record::ObserverAdvanced { gave_up: Some(reason), .. } => Some(reason.to_string()),
        _ => None,
    });
    let gave_up: Vec<String> = gave_up.collect();
    if gave_up.len() != 1 || !gave_up[0].contains("ValueError: no idea") {
        figures.faults.push(format!("it was given up like this: {gave_up:?}"));
    }
    let mine = closed.invocations.iter().filter(|invocation| invocation.kind == Kind::Observer);
    let failed = mine.filter(|invocation| matches!(invocation.outcome, Outcome::Raised { .. })).count();
    if failed != ATTEMPTS {
        figures.faults.push(format!("{failed} failures left a record, not {ATTEMPTS}"));
    }
    Ok(figures)
}

/// The process ends when an observer has answered, and its cursor has not moved: it is told again, and what it wishes is
/// done once.
///
/// # Errors
///
/// Fails when it cannot be seen.
pub async fn ends_before_its_cursor_moves() -> Result<Figures, HomeError> {
    let mut figures = Figures::of("an end between commit and observer cursor");
    let code = module(
        "async def g(record, host):\n    with open('heard', 'a+') as heard:\n        heard.write(f\"{record['seq']}\\n\")\n        \
         heard.seek(0)\n        is_first = int(heard.readline()) == record['seq']\n    \
         if is_first:\n        host.admit('the first turn has ended', priority='ambient')\n",
    );
    let mut home = start(Folder::new()?, &code).await?;
    let journal = Watched::of(&home);
    journal.dies();
    let observers = observe(&home, Arc::clone(&journal));
    journal.is_placed().await?;
    home.act(r#"{"what":"good","n":1}"#).await?;
    journal.is_dead().await?;
    let answer;
    (figures.admitted, figures.effect, answer) = home.interrupt().await?;
    if answer.starts_with("Held") {
        figures.faults.push(format!("the operator was not answered: {answer}"));
    }
    drop((observers, journal));
    let first = home.close().await?;
    if admitted(&first.records) != 0 {
        figures.faults.push("a wish came true before its cursor had moved".to_owned());
    }

    let mut home = start(first.folder, &code).await?;
    let journal = Watched::of(&home);
    let observers = observe(&home, Arc::clone(&journal));
    journal.has_heard(1).await?;
    figures.rolled_back = home.roll_back().await?;
    figures.fate = Fate::of(&home.act(r#"{"what":"good","n":2}"#).await?);
    observers.stop().await;
    let second = home.close().await?;
    let heard = std::fs::read_to_string(second.folder.path().join("heard"))?;
    let mut heard: Vec<&str> = heard.lines().collect();
    let total = heard.len();
    heard.dedup();
    let (wishes, advanced) = (admitted(&second.records), advanced(&second.records));
    // The first is told twice, and what it wishes comes true once.
    if total != heard.len() + 1 || wishes != 1 || advanced != heard.len() {
        figures.faults.push(format!(
            "{total} were told of {} records: {wishes} events admitted, {advanced} cursors moved",
            heard.len()
        ));
    }
    Ok(figures)
}

fn admitted(records: &[Stamped]) -> usize {
    let is_wish = |stamped: &&Stamped| match &stamped.record {
        Record::Admitted { event, .. } => {
            event.source.kind == SourceKind::Job && &*event.source.instance == NAME
        }
        _ => false,
    };
    records.iter().filter(is_wish).count()
}

/// Moves of its cursor over records that it heard.
fn advanced(records: &[Stamped]) -> usize {
    let heard = |seq: &Seq| {
        let at = records.binary_search_by_key(seq, |stamped| stamped.seq);
        at.is_ok_and(|at| Heard::TurnEnded.hears(&records[at].record))
    };
    let is_move = |stamped: &&Stamped| match &stamped.record {
        Record::ObserverAdvanced { observer, through, .. } => &**observer == NAME && heard(through),
        _ => false,
    };
    records.iter().filter(is_move).count()
}

/// The journal of an agent, with an eye on what it commits; it may die before that.
struct Watched {
    records: Records,
    state: watch::Sender<Moves>,
}

#[derive(Clone, Copy, Default)]
struct Moves {
    placed: usize,
    heard: usize,
    dies: bool,
    is_dead: bool,
}

impl Watched {
    fn of(home: &Home) -> Arc<Watched> {
        // Nobody tells of the newest record here: it is looked for.
        let records = Records::new(home.handle().clone(), watch::channel(0).1, u64::MAX);
        Arc::new(Watched { records, state: watch::Sender::default() })
    }

    /// Never commits what is heard.
    fn dies(&self) {
        self.state.send_modify(|state| state.dies = true);
    }

    async fn until(&self, what: &str, wanted: impl Fn(&Moves) -> bool) -> Result<(), HomeError> {
        let mut state = self.state.subscribe();
        let waiting = tokio::time::timeout(WATCHDOG, state.wait_for(|state| wanted(state))).await;
        match waiting {
            Ok(Ok(_)) => Ok(()),
            _ => Err(HomeError::Absent(what.to_owned())),
        }
    }

    async fn is_placed(&self) -> Result<(), HomeError> {
        self.until("the observer's place", |state| state.placed > 0).await
    }

    async fn has_heard(&self, times: usize) -> Result<(), HomeError> {
        self.until("a record that it is done with", |state| state.heard >= times).await
    }

    async fn is_dead(&self) -> Result<(), HomeError> {
        self.until("an answer of the observer", |state| state.is_dead).await
    }
}

#[async_trait]
impl Journal for Watched {
    async fn cursor(&self, observer: &str) -> Result<Option<u64>, JournalError> {
        self.records.cursor(observer).await
    }

    async fn newest(&self) -> Result<u64, JournalError> {
        self.records.newest().await
    }

    async fn read(&self, hears: Heard, after: u64, limit: usize) -> Result<Batch, JournalError> {
        self.records.read(hears, after, limit).await
    }

    async fn advance(&self, observer: &str, advance: Advance) -> Result<(), JournalError> {
        if matches!(advance, Advance::Heard { .. }) && self.state.borrow().dies {
            self.state.send_modify(|state| state.is_dead = true);
            std::future::pending::<()>().await;
        }
        let is_placed = matches!(advance, Advance::Placed { .. });
        self.records.advance(observer, advance).await?;
        self.state.send_modify(|state| match is_placed {
            true => state.placed += 1,
            false => state.heard += 1,
        });
        Ok(())
    }

    async fn wait(&self, after: u64) {
        while self.newest().await.is_ok_and(|newest| newest <= after) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
