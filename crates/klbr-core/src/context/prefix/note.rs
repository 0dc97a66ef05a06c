//! The texts of a note: one for each thing that changed, in a fixed order.

use super::{Facts, Topic};

const NONE: &str = "(none)";
const PLAN_MODE: &str = "plan";
const PLAN_ENDED: &str =
    "Plan mode has ended: make the changes the work needs; nothing is refused for planning any more.";

/// What changed between two states, in the order in which a note says it.
pub(super) fn changes(told: &Facts, now: &Facts) -> Vec<(Topic, String)> {
    let mut out = Vec::new();
    if told.date != now.date && !now.date.is_empty() {
        out.push((Topic::Date, format!("Today is {}.", now.date)));
    }
    if told.mode != now.mode {
        let text = match now.mode_text.as_str() {
            "" if told.mode == PLAN_MODE => PLAN_ENDED.to_owned(),
            text => format!("The permission mode is now {}:\n{}", now.mode, or_none(text)),
        };
        out.push((Topic::Mode, text));
    }
    let mut say = |topic, intro: &str, told: &str, now: &str| {
        if told != now {
            out.push((topic, format!("{intro}\n{}", or_none(now))));
        }
    };
    say(Topic::Plan, "The person changed the plan; it is now:", &told.plan, &now.plan);
    let (before, memory) = (listed(&told.memory), listed(&now.memory));
    say(Topic::Memory, "The person changed what is remembered; it is now:", &before, &memory);
    say(Topic::Environment, "Where you work changed; it is now:", &told.environment, &now.environment);
    for (path, told, now) in pairs(&told.instructions, &now.instructions) {
        say(Topic::Instructions, &format!("{path} changed; it now reads:"), told, now);
    }
    say(Topic::Personality, "The person chose a different personality:", &told.personality, &now.personality);
    for (_, told, now) in pairs(&told.mcp, &now.mcp) {
        say(Topic::Mcp, "Instructions from an MCP server that connected since the session began:", told, now);
    }
    out
}

/// Memories as they are told: one as it is, several as a list.
pub(super) fn listed(memory: &[(u64, String)]) -> String {
    match memory {
        [(_, only)] => only.clone(),
        several => several.iter().map(|(_, text)| item(text)).collect::<Vec<_>>().join("\n"),
    }
}

/// A text as one item of a list.
pub(super) fn item(text: &str) -> String {
    format!("- {}", text.replace('\n', "\n  "))
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { NONE } else { text }
}

/// Each name with its text before and now: those there are now in their order, then those that are gone.
fn pairs<'f>(
    told: &'f [(String, String)],
    now: &'f [(String, String)],
) -> impl Iterator<Item = (&'f str, &'f str, &'f str)> {
    fn text<'f>(list: &'f [(String, String)], name: &str) -> Option<&'f str> {
        list.iter().find(|(other, _)| other == name).map(|(_, text)| text.as_str())
    }
    let here = now.iter().map(|(name, now)| (name.as_str(), text(told, name).unwrap_or(""), now.as_str()));
    let gone = told.iter().filter(|(name, _)| text(now, name).is_none());
    here.chain(gone.map(|(name, told)| (name.as_str(), told.as_str(), "")))
}
