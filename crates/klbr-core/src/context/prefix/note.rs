//! The texts of a note: one for each thing that changed, in a fixed order.

use super::Facts;

const NONE: &str = "(none)";
const PLAN_MODE: &str = "plan";
const PLAN_ENDED: &str =
    "Plan mode has ended: make the changes the work needs; nothing is refused for planning any more.";

/// What changed between two states, in the order in which a note says it.
pub(super) fn changes(told: &Facts, now: &Facts) -> Vec<String> {
    let mut out = Vec::new();
    if told.date != now.date && !now.date.is_empty() {
        out.push(format!("Today is {}.", now.date));
    }
    if told.mode != now.mode {
        out.push(match now.mode_text.as_str() {
            "" if told.mode == PLAN_MODE => PLAN_ENDED.to_owned(),
            text => format!("The permission mode is now {}:\n{}", now.mode, or_none(text)),
        });
    }
    let mut say = |intro: &str, told: &str, now: &str| {
        if told != now {
            out.push(format!("{intro}\n{}", or_none(now)));
        }
    };
    say("The person changed the plan; it is now:", &told.plan, &now.plan);
    say("The person changed what is remembered; it is now:", &told.memory, &now.memory);
    for (path, told, now) in pairs(&told.instructions, &now.instructions) {
        say(&format!("{path} changed; it now reads:"), told, now);
    }
    say("The person chose a different personality:", &told.personality, &now.personality);
    for (_, told, now) in pairs(&told.mcp, &now.mcp) {
        say("Instructions from an MCP server that connected since the session began:", told, now);
    }
    out
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
