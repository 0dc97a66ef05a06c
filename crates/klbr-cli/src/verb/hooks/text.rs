//! Policy as people read it.

use klbr_core::policy::{Answer, Cause, InForce};
use klbr_core::time::Human;
use klbr_pyhost::{Affected, Manifest};
use klbr_server::api::policy::{Failure, Hook, Policy, PolicyLog, Process, PythonStatus, Trial};
use std::time::Duration;

use crate::text::{clean_line, fit};
use crate::view::why;

/// The columns of one answer in a comparison.
const ANSWER: usize = 72;

/// What is in force, in one line.
pub(super) fn in_force(one: &InForce) -> String {
    let manifest = one.manifest.as_deref().map_or("the built-in defaults", short);
    format!("{} {manifest}: {}\n", one.epoch, clean_line(&why(&one.cause)))
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

pub(super) fn policy(policy: &Policy) -> String {
    let mut text = in_force(&policy.in_force);
    match &policy.python {
        PythonStatus::On { interpreter } => text += &format!("python   {interpreter}\n"),
        PythonStatus::Unasked { interpreter } => {
            text += &format!(
                "python   {interpreter}, not asked for in klbr.toml: nothing new can be activated\n"
            );
        }
        PythonStatus::Off => {
            text += "python   switched off: slots that a policy owns have nobody who answers\n"
        }
    }
    if let Some(worker) = &policy.worker {
        text += &format!("worker   {}\n", process(worker));
    }
    if policy.at_work.len() > 1 {
        let epochs: Vec<String> = policy.at_work.iter().map(ToString::to_string).collect();
        text += &format!("at work  {}: an older one lives until its turn has ended\n", epochs.join(", "));
    }
    if let Some(why) = &policy.unreadable {
        text += &format!("BAD      its manifest cannot be read: {}\n", clean_line(why));
    }
    if policy.hooks.is_empty() && policy.unreadable.is_none() {
        text += "no hook is bound: everything is decided by the built-in defaults\n";
    }
    text += &policy.hooks.iter().map(hook).collect::<String>();
    if !policy.failures.is_empty() {
        text += "\nfailed last\n";
        text += &policy.failures.iter().map(failure).collect::<String>();
    }
    text
}

fn hook(hook: &Hook) -> String {
    let order = hook.order.map(|order| format!(" {order}.")).unwrap_or_default();
    let place = hook.found.as_ref().and_then(|found| Some((found.file.as_deref()?, found.line?)));
    let place = place.map(|(file, line)| format!("  {}:{line}", base(file))).unwrap_or_default();
    let cursor = hook.cursor.map(|cursor| format!(", at record {cursor}")).unwrap_or_default();
    let deadline = Human(Duration::from_millis(hook.deadline_ms));
    let name = format!("{}{order}", hook.name);
    let problem = hook.problem.as_ref().map(|problem| format!("\n  BAD {}", clean_line(problem)));
    format!(
        "{:<10} {name:<24} {:<36} {deadline}, when it fails: {}{cursor}{place}{}\n",
        hook.kind,
        hook.run,
        hook.on_failure,
        problem.unwrap_or_default()
    )
}

fn base(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

fn failure(failure: &Failure) -> String {
    let took = Human(Duration::from_millis(failure.elapsed_ms));
    format!(
        "{} {} ({}, after {took}): {}\n",
        failure.name,
        failure.run,
        failure.epoch,
        clean_line(&failure.how)
    )
}

/// How a Python process is doing.
pub(in crate::verb) fn process(process: &Process) -> String {
    match process {
        Process::Absent => "is not there yet: the first cell starts it".to_owned(),
        Process::Starting => "is starting".to_owned(),
        Process::Ready { pid, version, took_ms } => {
            format!("is ready (process {pid}, Python {version}, started in {took_ms} ms)")
        }
        Process::BackingOff { reason, in_ms } => {
            format!("is down, and starts again in {in_ms} ms: {}", clean_line(reason))
        }
        Process::Stopped => "was stopped".to_owned(),
    }
}

/// What a manifest binds, while no daemon runs that would know more.
pub(super) fn bound(manifest: &Manifest) -> String {
    let line = |hook: &klbr_pyhost::Hook| {
        let (kind, deadline) = (hook.bound.kind().as_str(), Human(hook.deadline));
        format!("{kind:<10} {:<24} {:<36} {deadline}\n", hook.bound.name(), hook.run)
    };
    manifest.hooks.iter().map(line).collect()
}

pub(super) fn log(log: &PolicyLog) -> String {
    let line = |one: &InForce| {
        let manifest = one.manifest.as_deref().map_or("built-in", short);
        let slots = match one.slots.len() {
            0 => String::new(),
            1 => ", 1 slot".to_owned(),
            n => format!(", {n} slots"),
        };
        let soul = if one.soul.is_some() && one.cause != Cause::First { ", a soul" } else { "" };
        let at = if one.at.0 == 0 { "-".to_owned() } else { one.at.to_string() };
        format!("{:>8}  {at:<20} {manifest}{slots}{soul}: {}\n", one.epoch, clean_line(&why(&one.cause)))
    };
    log.epochs.iter().map(line).collect()
}

/// What a candidate would restart, and what it answers differently.
pub(super) fn trial(trial: &Trial) -> String {
    restarts(trial) + &answers(trial)
}

fn restarts(trial: &Trial) -> String {
    let mut text = String::new();
    let restarts = |affected: &Affected| match affected {
        Affected::HookWorker => "a new hook worker takes over",
        Affected::Workbench => "the workbench starts over, and its variables are gone",
        Affected::Prefix => "the prompt begins anew, since the instructions change",
        Affected::Settings => "the settings are read anew",
    };
    for affected in &trial.affected {
        text += &format!("restarts  {}\n", restarts(affected));
    }
    if !trial.affected.contains(&Affected::Workbench) {
        text += "stays     the workbench with its variables\n";
    }
    text
}

/// The hooks as they were found, and what they answer differently.
pub(super) fn answers(trial: &Trial) -> String {
    let mut text = String::new();
    for hook in &trial.hooks {
        let place = hook.file.as_deref().map(base).unwrap_or_default();
        let line = hook.line.map(|line| format!(":{line}")).unwrap_or_default();
        let loaded = format!("loaded    {} ({place}{line}) {}", hook.run, clean_line(&hook.doc));
        text += loaded.trim_end();
        text.push('\n');
    }
    let differing = trial.differences.len();
    text += &match trial.asked {
        0 => "asked     samples alone: nothing of this was asked before\n".to_owned(),
        asked => format!(
            "asked     {asked} questions that were asked before; {differing} are answered differently\n"
        ),
    };
    for difference in &trial.differences {
        let slot = difference.question.slot().as_str();
        let about = difference.question.text().map(|text| fit(&clean_line(text), ANSWER)).unwrap_or_default();
        text +=
            &format!("\n{slot} {about}\n- {}\n+ {}\n", answer(&difference.before), answer(&difference.after));
    }
    text
}

/// An answer, as short as it goes.
pub(super) fn answer(answer: &Answer) -> String {
    let text = match answer {
        Answer::Priority(priority) => format!("{priority:?}").to_lowercase(),
        Answer::Yes(true) => "yes".to_owned(),
        Answer::Yes(false) => "no".to_owned(),
        Answer::Count(count) => count.to_string(),
        Answer::Events(events) => events.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        Answer::Delay { millis } => Human(Duration::from_millis(*millis)).to_string(),
        Answer::Text(Some(text)) => text.to_string(),
        Answer::Text(None) => "(nothing)".to_owned(),
        Answer::Plan { model, effort } => match effort {
            Some(effort) => format!("{model}, effort {effort}"),
            None => model.to_string(),
        },
        Answer::Verdict(verdict) => match verdict {
            klbr_core::policy::Verdict::Allow => "allow".to_owned(),
            klbr_core::policy::Verdict::Deny { reason } => format!("deny: {reason}"),
            klbr_core::policy::Verdict::Hold { reason } => format!("hold: {reason}"),
        },
    };
    fit(&clean_line(&text), ANSWER)
}
