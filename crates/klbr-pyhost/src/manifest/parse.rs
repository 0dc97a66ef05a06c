//! From TOML to a manifest: every key known, every value in range, every problem with its line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::hash::Hash;
use klbr_core::policy::{Heard, Slot};
use serde::Deserialize;
use toml::Spanned;

use super::order::sorted;
use super::{Bound, Hook, Known, MANIFEST, Manifest, ManifestError, Problem, Skill};
use crate::observers::Begin;
use crate::protocol::PROTOCOL;
use crate::transforms::OnFailure;
use crate::typegen::all_slots;

/// How long a hook may take when nothing is said.
const DEADLINE: Duration = Duration::from_secs(1);
/// How often an observer may fail on one record when nothing is said.
const ATTEMPTS: u32 = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    manifest: Spanned<u32>,
    protocol: Option<Spanned<u32>>,
    #[serde(default)]
    instructions: RawInstructions,
    #[serde(default)]
    settings: BTreeMap<Arc<str>, serde_json::Value>,
    #[serde(default)]
    environment: RawEnvironment,
    #[serde(default)]
    policy: RawPolicy,
    #[serde(default)]
    skills: Vec<Spanned<RawSkill>>,
    #[serde(default)]
    hooks: Vec<Spanned<RawHook>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInstructions {
    soul: Option<Arc<str>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEnvironment {
    #[serde(default)]
    variables: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    tree: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSkill {
    name: Spanned<String>,
    tree: Spanned<String>,
    #[serde(default)]
    needs: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHook {
    run: Spanned<String>,
    slot: Option<Spanned<String>>,
    transform: Option<Spanned<String>>,
    observer: Option<Spanned<String>>,
    deadline: Option<Spanned<String>>,
    name: Option<Spanned<String>>,
    stage: Option<Spanned<i64>>,
    order: Option<Spanned<i64>>,
    #[serde(default)]
    after: Vec<Spanned<String>>,
    on_failure: Option<Spanned<String>>,
    from: Option<Spanned<RawFrom>>,
    attempts: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawFrom {
    Word(String),
    Seq(u64),
}

/// Collects what is wrong.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    known: &'a Known,
    problems: Vec<Problem>,
}

pub(super) fn parse(file: &str, text: &str, known: &Known) -> Result<Manifest, ManifestError> {
    let mut reader = Reader { file, text, known, problems: Vec::new() };
    let raw: Raw = match toml::from_str(text) {
        Ok(raw) => raw,
        Err(error) => {
            let hint = suggestion(error.message());
            reader.problem(error.span().map_or(0, |span| span.start), error.message().to_owned(), hint);
            return Err(ManifestError { problems: reader.problems });
        }
    };
    let manifest = reader.manifest(raw);
    ManifestError::unless_empty(reader.problems)?;
    Ok(manifest)
}

/// For a key or word that is not known: the one that was probably meant.
fn suggestion(message: &str) -> String {
    let mut words = message.split('`').skip(1).step_by(2);
    let Some(wrong) = words.next() else {
        return "see the form of a manifest in the documentation".to_owned();
    };
    let near = words.map(|word| (strsim::damerau_levenshtein(wrong, word), word)).min();
    match near {
        Some((distance, word)) if distance <= 3 => format!("did you mean `{word}`?"),
        _ => "see the form of a manifest in the documentation".to_owned(),
    }
}

/// The one of `words` that was probably meant, else all of them.
fn meant<'w>(wrong: &str, words: impl Iterator<Item = &'w str> + Clone) -> String {
    let near = words.clone().map(|word| (strsim::damerau_levenshtein(wrong, word), word)).min();
    match near {
        Some((distance, word)) if distance <= 3 => format!("did you mean `{word}`?"),
        _ => format!("there are {}", words.collect::<Vec<_>>().join(", ")),
    }
}

impl Reader<'_> {
    fn problem(&mut self, offset: usize, message: impl Into<String>, hint: impl Into<String>) {
        let line = self.line(offset);
        let (message, hint) = (message.into(), hint.into());
        self.problems.push(Problem { file: self.file.into(), line, message, hint });
    }

    fn line(&self, offset: usize) -> usize {
        self.text.as_bytes()[..offset.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    fn manifest(&mut self, raw: Raw) -> Manifest {
        let (version, at) = (*raw.manifest.get_ref(), raw.manifest.span().start);
        if version != MANIFEST {
            self.problem(
                at,
                format!("this is a manifest of version {version}"),
                format!("this build reads version {MANIFEST}"),
            );
        }
        if let Some(protocol) = raw.protocol.filter(|protocol| *protocol.get_ref() > PROTOCOL) {
            let message = format!("it needs protocol {}", protocol.get_ref());
            self.problem(
                protocol.span().start,
                message,
                format!("this build speaks {PROTOCOL}: update klbr first"),
            );
        }
        let tree = raw.policy.tree.as_ref().and_then(|tree| self.hash(tree));
        let skills = self.skills(&raw.skills);
        let mut hooks: Vec<Hook> = Vec::new();
        for hook in &raw.hooks {
            let line = self.line(hook.span().start);
            hooks.extend(self.hook(hook, line));
        }
        self.owners(&raw.hooks);
        self.places(&raw.hooks, &mut hooks);
        self.budget(&hooks);
        let settings = raw.settings;
        let environment = raw.environment.variables.iter().filter_map(|name| self.variable(name)).collect();
        Manifest { soul: raw.instructions.soul, settings, environment, skills, tree, hooks }
    }

    /// The name of an environment variable.
    fn variable(&mut self, text: &Spanned<String>) -> Option<Arc<str>> {
        let name = text.get_ref();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            let hint = "letters, digits and _; the value is the host's, and is not written here";
            self.problem(text.span().start, format!("{name:?} names no variable"), hint);
        }
        is_name.then(|| name.as_str().into())
    }

    fn hash(&mut self, text: &Spanned<String>) -> Option<Hash> {
        let hash = text.get_ref().parse().ok();
        if hash.is_none() {
            let message = format!("{:?} is no hash", text.get_ref());
            self.problem(
                text.span().start,
                message,
                "64 lowercase hexadecimal digits, as publishing answers with",
            );
        }
        hash
    }

    /// A name that becomes part of a path or a cursor.
    fn name(&mut self, text: &Spanned<String>) -> Arc<str> {
        let name = text.get_ref();
        let is_plain = !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
        if !is_plain {
            let hint = "lowercase letters, digits, - and _, at most 64; a name is never a path";
            self.problem(text.span().start, format!("{name:?} is no name"), hint);
        }
        name.as_str().into()
    }

    fn skills(&mut self, raw: &[Spanned<RawSkill>]) -> Vec<Skill> {
        let mut skills: Vec<Skill> = Vec::new();
        for spanned in raw {
            let skill = spanned.get_ref();
            let name = self.name(&skill.name);
            if skills.iter().any(|other| other.name == name) {
                let at = skill.name.span().start;
                self.problem(at, format!("there are two skills {name}"), "give each a name of its own");
            }
            for need in &skill.needs {
                if !raw.iter().any(|other| other.get_ref().name.get_ref() == need.get_ref()) {
                    let names = raw.iter().map(|other| other.get_ref().name.get_ref().as_str());
                    let message = format!("{name} needs a skill {}, which is not here", need.get_ref());
                    self.problem(need.span().start, message, meant(need.get_ref(), names));
                }
            }
            let needs = skill.needs.iter().map(|need| need.get_ref().as_str().into()).collect();
            if let Some(tree) = self.hash(&skill.tree) {
                skills.push(Skill { name, tree, needs });
            }
        }
        let edges: Vec<(&str, Vec<&str>)> = raw
            .iter()
            .map(Spanned::get_ref)
            .map(|skill| {
                (skill.name.get_ref().as_str(), skill.needs.iter().map(|n| n.get_ref().as_str()).collect())
            })
            .collect();
        match sorted(&edges) {
            Ok(order) => {
                let place = |name: &Arc<str>| order.iter().position(|other| **other == **name);
                skills.sort_by_key(|skill| place(&skill.name));
            }
            Err(circle) => {
                let at = raw.iter().find(|skill| skill.get_ref().name.get_ref() == circle[0]);
                let at = at.map_or(0, |skill| skill.span().start);
                self.problem(
                    at,
                    format!("skills need each other in a circle: {}", circle.join(" → ")),
                    "break it",
                );
            }
        }
        skills
    }

    fn hook(&mut self, spanned: &Spanned<RawHook>, line: usize) -> Option<Hook> {
        let raw = spanned.get_ref();
        // A wrong one is refused; what else is wrong with its hook is said all the same.
        let run = self.run(&raw.run).unwrap_or_else(|| raw.run.get_ref().as_str().into());
        let deadline = raw.deadline.as_ref().map_or(Some(DEADLINE), |text| self.duration(text))?;
        let bound = match (&raw.slot, &raw.transform, &raw.observer) {
            (Some(slot), None, None) => {
                self.only_for("a transform", &raw.stage);
                self.only_for("a transform", &raw.order);
                self.only_for("a transform", &raw.on_failure);
                self.only_for("a transform", &raw.after.first());
                self.only_for("an observer", &raw.from);
                self.only_for("an observer", &raw.attempts);
                Bound::Slot { slot: self.word(slot, "slot", all_slots().into_iter(), Slot::as_str)? }
            }
            (None, Some(family), None) => {
                self.only_for("an observer", &raw.from);
                self.only_for("an observer", &raw.attempts);
                let families = all_slots().into_iter().filter(|slot| slot.is_rewrite());
                let family = self.word(family, "transform", families, Slot::as_str)?;
                let on_failure = raw
                    .on_failure
                    .as_ref()
                    .map_or(Some(OnFailure::Skip), |word| self.on_failure(word, family))?;
                let name = raw.name.as_ref().map_or_else(|| default_name(&run), |name| self.name(name));
                let stage = raw.stage.as_ref().map_or(0, |stage| *stage.get_ref());
                let place = raw.order.as_ref().map_or(0, |order| *order.get_ref());
                Bound::Transform { family, name, place, stage, on_failure }
            }
            (None, None, Some(hears)) => {
                self.only_for("a transform", &raw.stage);
                self.only_for("a transform", &raw.order);
                self.only_for("a transform", &raw.on_failure);
                self.only_for("a transform", &raw.after.first());
                let hears = self.word(hears, "record", Heard::ALL.into_iter(), Heard::as_str)?;
                let name = raw.name.as_ref().map_or_else(|| default_name(&run), |name| self.name(name));
                let from = raw.from.as_ref().map_or(Some(Begin::Cursor), |from| self.from(from))?;
                let attempts = raw.attempts.as_ref().map_or(ATTEMPTS, |attempts| *attempts.get_ref());
                Bound::Observer { hears, name, from, attempts }
            }
            _ => {
                let hint = "name exactly one of slot, transform and observer";
                self.problem(
                    spanned.span().start,
                    format!("{run} is bound to nothing, or to several things"),
                    hint,
                );
                return None;
            }
        };
        Some(Hook { run, deadline, bound, line })
    }

    fn only_for<T>(&mut self, kind: &str, field: &Option<impl std::borrow::Borrow<Spanned<T>>>) {
        if let Some(field) = field {
            self.problem(field.borrow().span().start, format!("this is only for {kind}"), "leave it out");
        }
    }

    /// `module:function`, each a dotted name: it can only be imported, and only from where imports go.
    fn run(&mut self, text: &Spanned<String>) -> Option<Arc<str>> {
        let is_word = |word: &str| {
            word.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
                && word.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        let is_dotted = |name: &str| name.split('.').all(is_word);
        let run = text.get_ref();
        match run.split_once(':') {
            Some((module, function)) if is_dotted(module) && is_dotted(function) => Some(run.as_str().into()),
            _ => {
                let hint = "write `package.module:function`; it is never a path";
                self.problem(text.span().start, format!("{run:?} names no function"), hint);
                None
            }
        }
    }

    /// The one of `known` that has this name.
    fn word<T: Copy>(
        &mut self,
        text: &Spanned<String>,
        what: &str,
        known: impl Iterator<Item = T> + Clone,
        name: fn(T) -> &'static str,
    ) -> Option<T> {
        let named = known.clone().find(|one| name(*one) == text.get_ref());
        if named.is_none() {
            let hint = meant(text.get_ref(), known.map(name));
            self.problem(text.span().start, format!("there is no {what} {}", text.get_ref()), hint);
        }
        named
    }

    fn on_failure(&mut self, text: &Spanned<String>, family: Slot) -> Option<OnFailure> {
        match text.get_ref().as_str() {
            "skip" => Some(OnFailure::Skip),
            "hold" if family == Slot::DeliveryFormat => Some(OnFailure::Hold),
            "hold" => {
                let message = format!("{} cannot be held: that would hold the agent", family.as_str());
                self.problem(text.span().start, message, "only a delivery is held; write \"skip\" here");
                None
            }
            other => {
                self.problem(
                    text.span().start,
                    format!("{other:?} is no way to fail"),
                    "write \"skip\" or \"hold\"",
                );
                None
            }
        }
    }

    fn from(&mut self, from: &Spanned<RawFrom>) -> Option<Begin> {
        match from.get_ref() {
            RawFrom::Seq(seq) => Some(Begin::Seq(*seq)),
            RawFrom::Word(word) if word == "now" => Some(Begin::Now),
            RawFrom::Word(word) if word == "cursor" => Some(Begin::Cursor),
            RawFrom::Word(word) => {
                let hint = "write \"now\", \"cursor\" or a record's number";
                self.problem(from.span().start, format!("{word:?} is no place to begin"), hint);
                None
            }
        }
    }

    fn duration(&mut self, text: &Spanned<String>) -> Option<Duration> {
        let parsed = [("ms", 1), ("s", 1000), ("m", 60_000)].iter().find_map(|(unit, millis)| {
            text.get_ref().strip_suffix(unit)?.trim().parse::<u64>().ok()?.checked_mul(*millis)
        });
        match parsed.filter(|millis| *millis > 0) {
            Some(millis) => Some(Duration::from_millis(millis)),
            None => {
                let message = format!("{:?} is no deadline", text.get_ref());
                self.problem(text.span().start, message, "write \"300ms\", \"5s\" or \"1m\"");
                None
            }
        }
    }

    /// One owner for a slot, one cursor for an observer's name, one transform of a name in a family.
    fn owners(&mut self, raw: &[Spanned<RawHook>]) {
        let mut owners: BTreeMap<String, (String, usize)> = BTreeMap::new();
        for hook in raw.iter().map(Spanned::get_ref) {
            self.one_way(raw, hook);
            let name = hook
                .name
                .as_ref()
                .map_or_else(|| default_name(hook.run.get_ref()), |n| n.get_ref().as_str().into());
            let (key, at) = match (&hook.slot, &hook.transform, &hook.observer) {
                (Some(slot), None, None) => (format!("the slot {}", slot.get_ref()), slot.span().start),
                (None, Some(family), None) => {
                    (format!("the transform {name} of {}", family.get_ref()), family.span().start)
                }
                (None, None, Some(hears)) => (format!("the observer {name}"), hears.span().start),
                _ => continue,
            };
            let line = self.line(at);
            let run = hook.run.get_ref().clone();
            if let Some((first, first_line)) = owners.get(&key) {
                let message = format!("{run} would own {key}, which {first} owns (line {first_line})");
                let hint = "bind one of them; a transform or observer may also have a `name` of its own";
                self.problem(at, message, hint);
            } else {
                owners.insert(key, (run, line));
            }
        }
    }

    /// A slot has an owner or rewrites, not both: there would be two answers.
    fn one_way(&mut self, raw: &[Spanned<RawHook>], hook: &RawHook) {
        let Some(slot) = &hook.slot else { return };
        let is_rewrite = |other: &&RawHook| {
            other.transform.as_ref().is_some_and(|family| family.get_ref() == slot.get_ref())
        };
        if let Some(step) = raw.iter().map(Spanned::get_ref).find(is_rewrite) {
            let message = format!(
                "{} would own the slot {}, which the transform {} rewrites",
                hook.run.get_ref(),
                slot.get_ref(),
                step.run.get_ref()
            );
            self.problem(slot.span().start, message, "make it a transform too, or leave the transforms out");
        }
    }

    /// Turns `after` into places.
    fn places(&mut self, raw: &[Spanned<RawHook>], hooks: &mut [Hook]) {
        let named: Vec<(String, &str, &RawHook)> = raw
            .iter()
            .map(Spanned::get_ref)
            .filter_map(|hook| {
                let family = hook.transform.as_ref()?.get_ref().as_str();
                let name = hook
                    .name
                    .as_ref()
                    .map_or_else(|| default_name(hook.run.get_ref()).to_string(), |n| n.get_ref().clone());
                Some((name, family, hook))
            })
            .collect();
        let mut families: Vec<&str> = named.iter().map(|(_, family, _)| *family).collect();
        families.sort_unstable();
        families.dedup();
        for family in families {
            let mut of: Vec<&(String, &str, &RawHook)> =
                named.iter().filter(|hook| hook.1 == family).collect();
            let number = |field: &Option<Spanned<i64>>| field.as_ref().map_or(0, |n| *n.get_ref());
            of.sort_by_key(|(name, _, hook)| (number(&hook.stage), number(&hook.order), name.clone()));
            for (name, _, hook) in &of {
                for after in &hook.after {
                    let names = of.iter().map(|(name, ..)| name.as_str());
                    let earlier = of.iter().find(|(name, ..)| name == after.get_ref());
                    match earlier {
                        None => {
                            let message =
                                format!("{name} stands after {}, which is not here", after.get_ref());
                            self.problem(after.span().start, message, meant(after.get_ref(), names));
                        }
                        Some((_, _, other)) if number(&other.stage) > number(&hook.stage) => {
                            let message =
                                format!("{name} stands after {}, whose stage is later", after.get_ref());
                            self.problem(after.span().start, message, "put both in one stage");
                        }
                        Some(_) => {}
                    }
                }
            }
            let edges: Vec<(&str, Vec<&str>)> = of
                .iter()
                .map(|(name, _, hook)| {
                    (name.as_str(), hook.after.iter().map(|a| a.get_ref().as_str()).collect())
                })
                .collect();
            match sorted(&edges) {
                Ok(order) => {
                    for hook in hooks.iter_mut() {
                        if let Bound::Transform { family: own, name, place, .. } = &mut hook.bound
                            && own.as_str() == family
                            && let Some(found) = order.iter().position(|other| **other == **name)
                        {
                            *place = found as i64;
                        }
                    }
                }
                Err(circle) => {
                    let at = of.iter().find(|(name, ..)| *name == circle[0]);
                    let at = at.map_or(0, |(_, _, hook)| hook.run.span().start);
                    let message = format!("{family} has a circle: {}", circle.join(" after "));
                    self.problem(at, message, "take one `after` out of it");
                }
            }
        }
    }

    /// The worst case of each operation: all transforms of its family, then its slot.
    fn budget(&mut self, hooks: &[Hook]) {
        let mut sums: BTreeMap<String, (Duration, usize)> = BTreeMap::new();
        for hook in hooks {
            let name = hook.bound.name();
            if matches!(hook.bound, Bound::Observer { .. }) {
                continue;
            }
            let operation = name.split('.').next().unwrap_or_default().to_owned();
            let sum = sums.entry(operation).or_default();
            sum.0 += hook.deadline;
            sum.1 = sum.1.max(hook.line);
        }
        for (operation, (worst, line)) in sums {
            if worst > self.known.operation {
                let message = format!("{operation} would take {worst:?} at worst");
                let hint =
                    format!("its hooks have {:?} altogether: shorten their deadlines", self.known.operation);
                self.problems.push(Problem { file: self.file.into(), line, message, hint });
            }
        }
    }
}

/// What a transform or an observer is called when it has no name: its function.
fn default_name(run: &str) -> Arc<str> {
    run.replace([':', '.'], "-").to_lowercase().into()
}
