//! The activation manifest: which instructions, settings, skills and hooks are in force, each by hash.
//!
//! TOML in, data out. Owns its form and every check that needs no Python; refuses anything that it does not know, with
//! file, line and a hint, before anything changes.

mod order;
mod parse;
mod problem;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use klbr_core::hash::Hash;
use klbr_core::policy::Slot;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use problem::{ManifestError, Problem};

use crate::observers::{Begin, Observer};
use crate::publish::Trees;
use crate::slots::SlotBinding;
use crate::sources::Sources;
use crate::transforms::{OnFailure, Step};
use crate::worker::{Entry, Kind, OnDeath};

/// The version of the form.
pub const MANIFEST: u32 = 1;

/// The pause after an observer's first failure on a record.
const OBSERVER_PAUSE: Duration = Duration::from_millis(100);

/// What an activation puts in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The soul (`C-SOUL`); without one the built-in stays.
    pub soul: Option<Arc<str>>,
    /// Settings, as whoever reads them knows them.
    pub settings: BTreeMap<Arc<str>, Value>,
    /// The skills, what they need first.
    pub skills: Vec<Skill>,
    /// The published tree that hooks are imported from, besides `klbr.policy`.
    pub tree: Option<Hash>,
    /// The hooks.
    pub hooks: Vec<Hook>,
}

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// Its name.
    pub name: Arc<str>,
    /// Its published tree.
    pub tree: Hash,
    /// The skills that it needs.
    pub needs: Vec<Arc<str>>,
}

/// A hook and what it is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// `module:function`.
    pub run: Arc<str>,
    /// How long it may take.
    pub deadline: Duration,
    /// What it is bound to.
    pub bound: Bound,
    /// The line of the manifest that binds it.
    pub line: usize,
}

/// What a hook is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Bound {
    /// It owns a slot.
    Slot {
        /// Which.
        slot: Slot,
    },
    /// It rewrites.
    Transform {
        /// The family.
        family: Arc<str>,
        /// Its name.
        name: Arc<str>,
        /// Its place, as `after` and `order` come to: unique within its family and stage.
        place: i64,
        /// Its stage.
        stage: i64,
        /// What becomes of the operation when it fails.
        on_failure: OnFailure,
    },
    /// It hears.
    Observer {
        /// Which records.
        hears: Arc<str>,
        /// Its name: its cursor's identity.
        name: Arc<str>,
        /// Where it begins.
        from: Begin,
        /// How often it may fail on one record.
        attempts: u32,
    },
}

/// What a manifest is checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Families of transforms that exist, such as `result.shape`.
    pub transforms: BTreeSet<&'static str>,
    /// Kinds of record that observers may hear, such as `turn.ended`.
    pub records: BTreeSet<&'static str>,
    /// How long one operation may take altogether: its transforms and its slot.
    pub operation: Duration,
}

impl Default for Known {
    fn default() -> Self {
        Known {
            transforms: BTreeSet::from([
                "frame.render",
                "context.blocks",
                "result.shape",
                "delivery.rewrite",
            ]),
            records: BTreeSet::from([
                "turn.ended",
                "effect.settled",
                "event.admitted",
                "activation.changed",
                "compacted",
            ]),
            operation: Duration::from_secs(10),
        }
    }
}

impl Manifest {
    /// Reads a manifest. `name` is what problems call the file.
    ///
    /// # Errors
    ///
    /// Fails with everything that is wrong with it, each with its line and a hint.
    pub fn parse(name: &str, text: &str, known: &Known) -> Result<Self, ManifestError> {
        parse::parse(name, text, known)
    }

    /// Checks it against a home: trees are there and unchanged, and modules exist in them. Reads only.
    ///
    /// # Errors
    ///
    /// Fails with everything that is wrong.
    pub fn check(&self, name: &str, trees: &Trees) -> Result<(), ManifestError> {
        let mut problems = Vec::new();
        let mut report = |line, message: String, hint: &str| {
            problems.push(Problem { file: name.into(), line, message, hint: hint.into() });
        };
        let publish = "publish the source folder, and name the hash that this answers with";
        let named = self.skills.iter().map(|skill| (Some(&skill.name), skill.tree));
        for (skill, tree) in named.chain(self.tree.map(|tree| (None, tree))) {
            if let Err(error) = trees.verify(tree) {
                let of = skill.map(|name| format!("skill {name}: ")).unwrap_or_default();
                report(0, format!("{of}{error}"), publish);
            }
        }
        for hook in &self.hooks {
            let module = hook.run.split_once(':').map_or(&*hook.run, |(module, _)| module);
            let is_there = match module.split_once('.').map_or(module, |(first, _)| first) {
                "klbr" => is_ours(module),
                _ => self.tree.is_some_and(|tree| is_module(&trees.path(tree), module)),
            };
            if !is_there {
                let message = format!("there is no module {module}");
                report(
                    hook.line,
                    message,
                    "modules come from the tree that `policy.tree` names, and from `klbr.policy`",
                );
            }
        }
        ManifestError::unless_empty(problems)
    }

    /// The folders that hooks and skills are imported from.
    pub fn paths(&self, trees: &Trees) -> Vec<PathBuf> {
        self.tree
            .into_iter()
            .chain(self.skills.iter().map(|skill| skill.tree))
            .map(|tree| trees.path(tree))
            .collect()
    }

    /// What a worker has to load.
    pub fn entries(&self) -> Vec<Entry> {
        let entry =
            |hook: &Hook| Entry { run: hook.run.clone(), kind: hook.bound.kind(), name: hook.bound.name() };
        self.hooks.iter().map(entry).collect()
    }

    /// Who owns which slot.
    pub fn slots(&self) -> BTreeMap<Slot, SlotBinding> {
        let binding = |hook: &Hook| match hook.bound {
            Bound::Slot { slot } => {
                let on_death = if slot.is_required() { OnDeath::Fail } else { OnDeath::AskAgain };
                Some((slot, SlotBinding { run: hook.run.clone(), deadline: hook.deadline, on_death }))
            }
            Bound::Transform { .. } | Bound::Observer { .. } => None,
        };
        self.hooks.iter().filter_map(binding).collect()
    }

    /// The transforms of each family.
    pub fn transforms(&self) -> BTreeMap<Arc<str>, Vec<Step>> {
        let mut families: BTreeMap<Arc<str>, Vec<Step>> = BTreeMap::new();
        for hook in &self.hooks {
            if let Bound::Transform { family, name, place, stage, on_failure } = &hook.bound {
                families.entry(family.clone()).or_default().push(Step {
                    run: hook.run.clone(),
                    name: name.clone(),
                    stage: *stage,
                    order: *place,
                    deadline: hook.deadline,
                    on_failure: *on_failure,
                });
            }
        }
        families
    }

    /// The observers.
    pub fn observers(&self) -> Vec<Observer> {
        let observer = |hook: &Hook| match &hook.bound {
            Bound::Observer { hears, name, from, attempts } => Some(Observer {
                name: name.clone(),
                run: hook.run.clone(),
                hears: hears.clone(),
                deadline: hook.deadline,
                attempts: *attempts,
                pause: OBSERVER_PAUSE,
                from: *from,
            }),
            Bound::Slot { .. } | Bound::Transform { .. } => None,
        };
        self.hooks.iter().filter_map(observer).collect()
    }

    /// What an activation of this after `before` restarts or remakes.
    pub fn effect_after(&self, before: &Manifest) -> BTreeSet<Affected> {
        let mut affected = BTreeSet::new();
        let lines_aside = |hooks: &[Hook]| -> Vec<Hook> {
            hooks.iter().map(|hook| Hook { line: 0, ..hook.clone() }).collect()
        };
        if self.tree != before.tree || lines_aside(&self.hooks) != lines_aside(&before.hooks) {
            affected.insert(Affected::HookWorker);
        }
        if self.skills != before.skills {
            affected.extend([Affected::HookWorker, Affected::Workbench, Affected::Prefix]);
        }
        if self.soul != before.soul {
            affected.insert(Affected::Prefix);
        }
        if self.settings != before.settings {
            affected.insert(Affected::Settings);
        }
        affected
    }
}

/// What an activation touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Affected {
    /// A new hook worker takes over; the workbench and its variables stay.
    HookWorker,
    /// The workbench is restarted; its variables are gone.
    Workbench,
    /// The conversation gets a new prefix, with its cause recorded.
    Prefix,
    /// Settings are read anew.
    Settings,
}

impl Bound {
    /// The kind of hook.
    pub fn kind(&self) -> Kind {
        match self {
            Bound::Slot { .. } => Kind::Slot,
            Bound::Transform { .. } => Kind::Transform,
            Bound::Observer { .. } => Kind::Observer,
        }
    }

    /// What it is bound to.
    pub fn name(&self) -> Arc<str> {
        match self {
            Bound::Slot { slot } => slot.as_str().into(),
            Bound::Transform { family, .. } => family.clone(),
            Bound::Observer { hears, .. } => hears.clone(),
        }
    }
}

/// Whether a module of the package `klbr` may own hooks: the default policies may.
fn is_ours(module: &str) -> bool {
    let Some(rest) = module.strip_prefix("klbr.policy") else { return false };
    let name = format!("policy{}", rest.replace('.', "/"));
    Sources
        .files()
        .iter()
        .any(|(file, _)| *file == format!("{name}.py") || *file == format!("{name}/__init__.py"))
}

fn is_module(tree: &Path, module: &str) -> bool {
    let base = tree.join(module.replace('.', "/"));
    base.with_extension("py").is_file() || base.join("__init__.py").is_file()
}
