//! The activation manifest: which instructions, settings, skills and hooks are in force, each by hash.
//!
//! TOML in, data out. Owns its form and every check that needs no Python; refuses anything that it does not know, with
//! file, line and a hint, before anything changes.

mod kept;
mod order;
mod parse;
mod problem;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use klbr_core::hash::Hash;
use klbr_core::policy::{Heard, Slot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use kept::{KeptError, Manifests};
pub use problem::{ManifestError, Problem};

use crate::hooks::budgets;
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
    /// Settings, which hooks read with `host.settings()`.
    pub settings: BTreeMap<Arc<str>, Value>,
    /// The variables that its hooks find in their environment, by name. Their values are the host's, and are not kept.
    #[serde(default)]
    pub environment: BTreeSet<Arc<str>>,
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
        /// The family: the slot that its steps own together.
        family: Slot,
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
        #[serde(with = "heard")]
        hears: Heard,
        /// Its name: its cursor's identity.
        name: Arc<str>,
        /// Where it begins.
        from: Begin,
        /// How often it may fail on one record.
        attempts: u32,
    },
}

/// What a manifest is checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// How long one operation may take altogether: its transforms and its slot.
    pub operation: Duration,
}

impl Default for Known {
    fn default() -> Self {
        Known { operation: Duration::from_secs(10) }
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

    /// The slots that have an owner, one hook or a family of steps, with the milliseconds that each may take.
    pub fn bindings(&self) -> BTreeMap<Slot, u64> {
        budgets(self).into_iter().map(|(slot, time)| (slot, time.as_millis() as u64)).collect()
    }

    /// Its bytes, which its hash is over.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a manifest is plain data")
    }

    /// What names it.
    pub fn hash(&self) -> Hash {
        Hash::of(&self.to_bytes())
    }

    /// The transforms of each family, in the order in which they run.
    pub fn transforms(&self) -> BTreeMap<Slot, Vec<Step>> {
        let mut families: BTreeMap<Slot, Vec<Step>> = BTreeMap::new();
        for hook in &self.hooks {
            if let Bound::Transform { family, name, place, stage, on_failure } = &hook.bound {
                families.entry(*family).or_default().push(Step {
                    run: hook.run.clone(),
                    name: name.clone(),
                    stage: *stage,
                    order: *place,
                    deadline: hook.deadline,
                    on_failure: *on_failure,
                });
            }
        }
        families.values_mut().for_each(|steps| steps.sort_by(Step::running_order));
        families
    }

    /// The observers.
    pub fn observers(&self) -> Vec<Observer> {
        let observer = |hook: &Hook| match &hook.bound {
            Bound::Observer { hears, name, from, attempts } => Some(Observer {
                name: name.clone(),
                run: hook.run.clone(),
                hears: *hears,
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
        if self.tree != before.tree
            || self.environment != before.environment
            || lines_aside(&self.hooks) != lines_aside(&before.hooks)
        {
            affected.insert(Affected::HookWorker);
        }
        if self.skills != before.skills {
            affected.extend([Affected::HookWorker, Affected::Workbench, Affected::Prefix]);
        }
        if self.soul != before.soul {
            affected.insert(Affected::Prefix);
        }
        if self.settings != before.settings {
            affected.extend([Affected::HookWorker, Affected::Settings]);
        }
        affected
    }
}

/// What an activation touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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
            Bound::Transform { family, .. } => family.as_str().into(),
            Bound::Observer { hears, .. } => hears.as_str().into(),
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

/// A kind of record by its name.
mod heard {
    use klbr_core::policy::Heard;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(heard: &Heard, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(heard.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Heard, D::Error> {
        let name = String::deserialize(deserializer)?;
        let named = Heard::ALL.into_iter().find(|heard| heard.as_str() == name);
        named.ok_or_else(|| de::Error::custom(format!("there is no record {name}")))
    }
}
