//! The judge: what really ran, against the decisions that were committed.
//!
//! It knows three witnesses that know nothing of each other: the executor, the records in the store, and what the hook
//! itself wrote to a file before it answered. It builds the question anew from what ran, so that a decision counts only
//! for exactly that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::action::{ActionSpec, Class, Outcome, Resource, Role};
use klbr_core::hash::Hash;
use klbr_core::ids::{ActionId, Epoch, TurnId};
use klbr_core::model::ToolDefinition;
use klbr_core::policy::{Answer, Question, Review, Slot, Verdict};
use klbr_core::record::{Record, Stamped};
use klbr_core::runtime::tool::{AnyTool, CallContext};
use tokio::sync::watch;

/// Something that an executor ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The action.
    pub action: ActionId,
    /// Its arguments, as they came to the executor.
    pub arguments: Arc<str>,
}

/// The action `act`: it keeps what it was run with. Clones share that.
#[derive(Clone, Debug, Default)]
pub struct Executor {
    ran: watch::Sender<Vec<Ran>>,
}

impl Executor {
    /// The action's name.
    pub const NAME: &str = "act";

    /// What it ran so far, in order.
    pub fn ran(&self) -> Vec<Ran> {
        self.ran.borrow().clone()
    }
}

#[async_trait]
impl AnyTool for Executor {
    fn spec(&self) -> ActionSpec {
        let parameters = serde_json::json!({"type": "object", "additionalProperties": true});
        ActionSpec {
            tool: ToolDefinition {
                name: Self::NAME.to_owned(),
                description: "Does something that cannot be undone.".to_owned(),
                parameters,
            },
            role: Role::Ordinary,
            class: Class::Irreversible,
            cancellable: false,
            resource: Resource::None,
            deadline: Duration::from_secs(60),
        }
    }

    async fn call(&self, context: CallContext) -> Outcome {
        let ran = Ran { action: context.action, arguments: context.attempt.arguments.clone() };
        self.ran.send_modify(|all| all.push(ran));
        Outcome::confirmed("ran")
    }

    async fn reconcile(&self, _: CallContext) -> Outcome {
        Outcome::unknown("not known")
    }
}

/// The hash over name and arguments that a review names.
pub fn review_hash(arguments: &str) -> Hash {
    Hash::of(format!("{}\0{arguments}", Executor::NAME).as_bytes())
}

/// What the hook is asked about an action, as whoever ran it can tell.
pub fn question(ran: &Ran) -> Question {
    let hash = review_hash(&ran.arguments).to_string().into();
    let (name, arguments) = (Executor::NAME.into(), ran.arguments.clone());
    Question::ActionReview(Review { action: ran.action, name, arguments, hash })
}

/// Everything that ran without having been decided. Where `verdicts` is given, the hook must have written a line
/// `allow HASH` too.
pub fn unauthorised(records: &[Stamped], ran: &[Ran], verdicts: Option<&str>) -> Vec<String> {
    let told: Option<BTreeSet<&str>> = verdicts.map(|text| text.lines().collect());
    let history = History::read(records);
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for one in ran {
        let mut fault = |what: &str| faults.push(format!("{what}: {} {}", one.action, one.arguments));
        if !seen.insert(one.action) {
            fault("it ran twice");
        }
        match history.intended.get(&one.action) {
            Some((arguments, epoch)) => {
                if *arguments != one.arguments {
                    fault("what ran is not what was intended");
                }
                if history.turns.get(&one.action.step.turn) != Some(epoch) {
                    fault("it was decided under another epoch than its turn's");
                }
                if !history.is_bound(*epoch) {
                    // Nobody owned the decision.
                    continue;
                }
            }
            None => fault("no record intends it"),
        }
        let bytes = serde_json::to_vec(&question(one)).expect("a question has only string keys");
        match history.allowed.get(&Hash::of(&bytes)) {
            Some(1) => {}
            Some(_) => fault("it was decided more than once"),
            None => fault("nobody has allowed it"),
        }
        if told
            .as_ref()
            .is_some_and(|told| !told.contains(&*format!("allow {}", review_hash(&one.arguments))))
        {
            fault("the hook itself has not allowed it");
        }
    }
    faults
}

/// What the records say of reviews.
#[derive(Default)]
struct History {
    /// Each intended action with what it would run with and under which epoch it was decided.
    intended: BTreeMap<ActionId, (Arc<str>, Epoch)>,
    /// The epoch of each turn.
    turns: BTreeMap<TurnId, Epoch>,
    /// Epochs that were activated, and whether they bind the review of actions.
    activated: BTreeMap<Epoch, bool>,
    /// How often each question was answered with "allow" by its owner.
    allowed: BTreeMap<Hash, u32>,
}

impl History {
    fn read(records: &[Stamped]) -> Self {
        let mut history = History::default();
        for stamped in records {
            match &stamped.record {
                Record::Intended { action, arguments, epoch, .. } => {
                    history.intended.insert(*action, (arguments.clone(), *epoch));
                }
                Record::TurnStarted { turn, epoch, .. } => {
                    history.turns.insert(*turn, *epoch);
                }
                Record::Activated { epoch, bound, .. } => {
                    history.activated.insert(*epoch, bound.contains_key(&Slot::ActionReview));
                }
                Record::Decided { question, answer, failure: None, .. } => {
                    if matches!(answer, Some(Answer::Verdict(Verdict::Allow))) {
                        *history.allowed.entry(*question).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        history
    }

    /// Whether the review had an owner in an epoch; it had before the first activation.
    fn is_bound(&self, epoch: Epoch) -> bool {
        self.activated.range(..=epoch).next_back().is_none_or(|(_, bound)| *bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klbr_core::ids::{Seq, StepId};
    use klbr_core::policy::HookFailure;
    use klbr_core::time::Timestamp;

    fn ran(n: u32) -> Ran {
        let step = StepId { turn: TurnId(1), number: 1 };
        Ran { action: step.action(n), arguments: format!(r#"{{"n":{n}}}"#).into() }
    }

    fn history(of: &Ran, decided: Option<Record>) -> Vec<Stamped> {
        let turn = TurnId(1);
        let cause = klbr_core::record::TurnCause::Idle;
        let (model, effort, frame) = ("m".into(), None, None);
        let mut records = vec![Record::TurnStarted { turn, cause, frame, epoch: Epoch(1), model, effort }];
        records.extend(decided);
        let (name, arguments) = (Executor::NAME.into(), of.arguments.clone());
        let (class, channel) = (Class::Irreversible, None);
        records.push(Record::Intended {
            action: of.action,
            name,
            arguments,
            class,
            channel,
            epoch: Epoch(1),
        });
        let stamp = |record| Stamped { seq: Seq(1), at: Timestamp(0), record };
        records.into_iter().map(stamp).collect()
    }

    fn allow(of: &Ran, failure: Option<HookFailure>) -> Record {
        Record::Decided {
            slot: Slot::ActionReview,
            question: Hash::of(&serde_json::to_vec(&question(of)).unwrap()),
            answer: Some(Answer::Verdict(Verdict::Allow)),
            failure,
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn what_was_decided_may_run_once_and_nothing_else() {
        let one = ran(1);
        let judged = |records: &[Stamped], ran: &[Ran]| unauthorised(records, ran, None);
        let decided = history(&one, Some(allow(&one, None)));
        assert_eq!(judged(&decided, std::slice::from_ref(&one)), [""; 0]);
        assert!(judged(&decided, &[one.clone(), one.clone()])[0].starts_with("it ran twice"));
        let other = Ran { arguments: r#"{"n":7}"#.into(), ..one.clone() };
        assert_eq!(judged(&decided, &[other]).len(), 2, "neither intended nor allowed");

        let failed = history(&one, Some(allow(&one, Some(HookFailure::Deadline))));
        assert!(judged(&failed, std::slice::from_ref(&one))[0].starts_with("nobody has allowed it"));
        let another = history(&one, Some(allow(&ran(2), None)));
        assert!(judged(&another, std::slice::from_ref(&one))[0].starts_with("nobody has allowed it"));
        assert!(
            judged(&history(&one, None), std::slice::from_ref(&one))[0].starts_with("nobody has allowed it")
        );
        assert!(unauthorised(&decided, &[one], Some("deny 00\n"))[0].starts_with("the hook itself"));
    }
}
