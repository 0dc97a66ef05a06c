//! Policy that changes while it is asked, with a live agent around it: in the midst of a turn, and twice at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use klbr_core::config::Config;
use klbr_core::ids::{Epoch, Seq};
use klbr_core::record::Record;
use klbr_core::runtime::{AgentBuilder, RunningAgent};
use klbr_pyhost::{
    ActivateError, Attached, Change, Invocation, Known, Level, Live, Logged, Manifest, Manifests, NoHost,
    Order, Parts, Patience, Probation, Questions, Recorder, Trees, Trial, Watch,
};
use klbr_store::{Options, SqliteStore};

use super::failures::{Fate, Figures};
use super::home::{self, Folder, HomeError, WATCHDOG};
use super::judge::{self, Executor};
use super::model::Obedient;

const WAITS: &str = "import asyncio, os\nfrom klbr import hooks\n\nasync def f(review):\n    if '\"bad\"' in review.arguments:\n        \
                     open('asked', 'w').close()\n        while not os.path.exists('go'):\n            \
                     await asyncio.sleep(0.002)\n        return hooks.deny('the first')\n    return hooks.allow()\n";

const DENIES: &str = "import logging\nfrom klbr import hooks\n\ndef f(review):\n    logging.warning('it is denied')\n    return hooks.deny('the second')\n";

const ALLOWS: &str = "from klbr import hooks\n\ndef f(review):\n    return hooks.allow()\n";

/// Hears what hooks log.
#[derive(Clone, Default)]
struct Ears(Arc<Mutex<Vec<(u64, Logged)>>>);

impl Ears {
    fn heard(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Logged)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Ears {
    fn changed(&self, _: u64, _: Change) {}

    fn logged(&self, epoch: u64, logged: Logged) {
        self.heard().push((epoch, logged));
    }
}

/// An agent whose policy is what its own records say.
struct Owner {
    live: Live,
    attached: Attached,
    agent: RunningAgent,
    model: Obedient,
    executor: Executor,
    invocations: Arc<Mutex<Vec<Invocation>>>,
    trees: Trees,
    ears: Ears,
    folder: Folder,
    keys: u64,
}

impl Owner {
    async fn start() -> Result<Owner, HomeError> {
        let folder = Folder::new()?;
        let invocations: Arc<Mutex<Vec<Invocation>>> = Arc::default();
        let kept = Arc::clone(&invocations);
        let recorder: Arc<dyn Recorder> = Arc::new(move |invocation| {
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(invocation);
        });
        let ears = Ears::default();
        let watch: Arc<dyn Watch> = Arc::new(ears.clone());
        let trees = Trees::new(folder.path());
        let live = Live::new(Parts {
            trial: Trial {
                program: home::program(folder.path())?,
                patience: Patience::default(),
                trees: trees.clone(),
                host: Arc::new(NoHost),
                variables: Arc::new(|_| Err("is not set")),
            },
            manifests: Manifests::new(folder.path()),
            questions: Questions::new(&folder.path().join("questions")),
            probation: Probation::default(),
            recorder,
            watch,
        });
        let path = folder.path().join("klbr.db");
        let store = SqliteStore::open(&path, Options::default()).map_err(HomeError::inside)?;
        let config = Config::new("hooks".parse().map_err(HomeError::inside)?, "m");
        let (model, executor) = (Obedient::default(), Executor::default());
        let agent = AgentBuilder::new(config, store, model.clone())
            .any_tool(Arc::new(executor.clone()))
            .policy(live.clone())
            .start()
            .await
            .map_err(HomeError::inside)?;
        let attached = live.attach(agent.handle().clone());
        Ok(Owner { live, attached, agent, model, executor, invocations, trees, ears, folder, keys: 0 })
    }

    fn key(&mut self) -> String {
        self.keys += 1;
        format!("key-{}", self.keys)
    }

    /// A module that reviews actions, published; on top of what is in force.
    fn order(&mut self, code: &str, expected: Option<Epoch>) -> Result<Order, HomeError> {
        let key = self.key();
        let source = self.folder.path().join(&key);
        std::fs::create_dir_all(&source)?;
        std::fs::write(source.join("mine.py"), code)?;
        let tree = self.trees.publish(&source).map_err(HomeError::inside)?;
        let text = format!(
            "manifest = 1\n[policy]\ntree = \"{tree}\"\n[[hooks]]\nslot = \"action.review\"\nrun = \"mine:f\"\n\
             deadline = \"9s\"\n"
        );
        let manifest = Manifest::parse("policy.toml", &text, &Known::default()).map_err(HomeError::inside)?;
        Ok(Order { key, via: None, file: "policy.toml".into(), manifest, expected, now: false })
    }

    async fn activate(&mut self, code: &str) -> Result<Epoch, HomeError> {
        let order = self.order(code, None)?;
        Ok(self.live.activate(order).await.map_err(HomeError::inside)?.0.epoch)
    }

    /// Has the agent told something; how long the acknowledgement took, and how many requests there were when the model
    /// had been told.
    async fn say(&mut self, text: &str) -> Result<(Duration, usize), HomeError> {
        let (key, after, begun) = (self.key(), self.model.count(), Instant::now());
        self.agent.handle().say(&key, text).await.map_err(HomeError::inside)?;
        let took = begun.elapsed();
        Ok((took, self.model.is_told(text, after).await?.1))
    }

    async fn result(&self, after: usize) -> Result<String, HomeError> {
        self.model.result(after).await
    }

    /// Goes back to an epoch; how long that took.
    async fn roll_back(&mut self, to: Epoch) -> Result<Duration, HomeError> {
        let (key, begun) = (self.key(), Instant::now());
        self.live.roll_back(&key, None, Some(to)).await.map_err(HomeError::inside)?;
        Ok(begun.elapsed())
    }

    async fn close(self, figures: &mut Figures) -> Result<(), HomeError> {
        let handle = self.agent.handle().clone();
        self.attached.stop().await;
        self.agent.shutdown().await;
        let records =
            handle.store().records(handle.agent(), Seq(0), usize::MAX).await.map_err(HomeError::inside)?;
        figures.faults.extend(judge::unauthorised(&records, &self.executor.ran(), None));
        let decided =
            |stamped: &&klbr_core::record::Stamped| matches!(stamped.record, Record::Decided { .. });
        let decided = records.iter().filter(decided).count();
        // Each activation tries the hooks before; a trial has no epoch of the agent's and leaves no record.
        let invocations = self.invocations.lock().map_err(|_| HomeError::Absent("the records".into()))?.len();
        if decided != invocations {
            figures.faults.push(format!("{decided} decisions, and {invocations} invocations"));
        }
        Ok(())
    }
}

/// An activation comes while a question of the turn is out: the epoch that was asked answers it, the next turn asks the new
/// one, and a rollback holds from the turn after that.
///
/// # Errors
///
/// Fails when it cannot be seen.
pub async fn during_a_turn() -> Result<Figures, HomeError> {
    let mut figures = Figures::of("an activation during a turn");
    let mut owner = Owner::start().await?;
    let first = owner.activate(WAITS).await?;
    let (_, after) = owner.say(r#"do {"what":"bad","n":1}"#).await?;
    let (asked, until) = (owner.folder.path().join("asked"), Instant::now() + WATCHDOG);
    while !asked.exists() && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let second = owner.activate(DENIES).await?;
    std::fs::write(owner.folder.path().join("go"), "")?;
    let result = owner.result(after).await?;
    if result != "Denied: the first" {
        figures.faults.push(format!("the epoch that was asked did not answer: {result}"));
    }
    let (_, after) = owner.say(r#"do {"what":"good","n":2}"#).await?;
    let result = owner.result(after).await?;
    if result != "Denied: the second" {
        figures.faults.push(format!("the new epoch was not asked: {result}"));
    }
    let is_told = |(epoch, one): &(u64, Logged)| {
        *epoch == second.0 && one.level == Level::Warning && &*one.message == "it is denied"
    };
    if !owner.ears.heard().iter().any(is_told) {
        figures.faults.push(format!("what the hook logs is not told: {:?}", owner.ears.heard()));
    }
    figures.rolled_back = owner.roll_back(first).await?;
    let (admitted, after) = owner.say(r#"do {"what":"good","n":3}"#).await?;
    figures.admitted = admitted;
    figures.fate = Fate::of(&owner.result(after).await?);
    if figures.fate != Fate::Ran {
        figures.faults.push("what was allowed by what came back did not run".to_owned());
    }
    if second != first.next() {
        figures.faults.push(format!("{second} follows on {first}"));
    }
    owner.close(&mut figures).await?;
    Ok(figures)
}

/// Two candidates come at once on top of the same epoch, while the operator speaks.
///
/// # Errors
///
/// Fails when it cannot be seen.
pub async fn two_at_once() -> Result<Figures, HomeError> {
    let mut figures = Figures::of("two activations at once");
    let mut owner = Owner::start().await?;
    let base = owner.activate(ALLOWS).await?;
    let (one, other) = (owner.order(DENIES, Some(base))?, owner.order(WAITS, Some(base))?);
    let live = owner.live.clone();
    let (first, second, said) =
        tokio::join!(live.activate(one), live.activate(other), owner.say("say hello"));
    let (admitted, after) = said?;
    figures.admitted = admitted;
    owner.result(after).await?;
    let refused: Vec<ActivateError> =
        [first.map(drop), second.map(drop)].into_iter().filter_map(Result::err).collect();
    let is_right = |error: &ActivateError| {
        matches!(error, ActivateError::Superseded { expected, current }
            if *expected == base && *current == base.next())
    };
    if refused.len() != 1 || !is_right(&refused[0]) {
        figures.faults.push(format!("refused: {refused:?}"));
    }
    let history = owner.live.history().await.map_err(HomeError::inside)?;
    if history.last().map(|in_force| in_force.epoch) != Some(base.next()) {
        figures.faults.push(format!("in force: {:?}", history.last()));
    }
    figures.rolled_back = owner.roll_back(base).await?;
    let (_, after) = owner.say(r#"do {"what":"good","n":1}"#).await?;
    figures.fate = Fate::of(&owner.result(after).await?);
    if figures.fate != Fate::Ran {
        figures.faults.push("what was allowed by what came back did not run".to_owned());
    }
    owner.close(&mut figures).await?;
    Ok(figures)
}
