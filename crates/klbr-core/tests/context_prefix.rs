//! The prefix and its notes, the reasoning that a request carries, paths, levels, and the proof of it all.

use std::sync::Arc;

use expect_test::{Expect, expect};
use klbr_core::context::levels::{Control, Metadata, levels, request as effort_fields};
use klbr_core::context::paths::{below, env_lines, prompt_name, resolve};
use klbr_core::context::prefix::{Facts, Offer, Prefix, Topic};
use klbr_core::context::proof::{Difference, Part, Verdict, compare};
use klbr_core::context::reasoning::{carried, current_turn};
use klbr_core::ids::Generation;
use klbr_core::model::{AssistantMessage, Message, Parameters, Request};
use klbr_core::record::BreakCause;

fn facts() -> Facts {
    Facts { date: "2026-11-05".to_owned(), mode: "edit".to_owned(), ..Facts::default() }
}

/// A session whose prefix is made, and whose first message has said the date.
fn begun(facts: &Facts) -> Prefix {
    let mut prefix = Prefix::new();
    assert_eq!(prefix.made(facts), Some((Generation(1), BreakCause::First)));
    prefix.told(facts);
    prefix
}

#[track_caller]
fn check_note(prefix: &Prefix, facts: &Facts, expected: &Expect) {
    expected.assert_eq(&prefix.note(facts).map_or_else(|| "(no note)".to_owned(), |note| note.to_string()));
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_note_says_what_changed_in_a_fixed_order() {
    let before = Facts {
        instructions: pairs(&[("~/AGENTS.md", "own"), ("AGENTS.md", "same"), ("docs/AGENTS.md", "docs")]),
        memory: vec![(1, "likes tea".to_owned())],
        mcp: pairs(&[("files", "use files")]),
        ..facts()
    };
    let prefix = begun(&before);
    check_note(&prefix, &before, &expect!["(no note)"]);
    let after = Facts {
        date: "2026-11-06".to_owned(),
        mode: "plan".to_owned(),
        mode_text: "Plan.\n\nChange nothing.".to_owned(),
        plan: "1. think".to_owned(),
        memory: Vec::new(),
        personality: "dry".to_owned(),
        environment: "Project: app".to_owned(),
        instructions: pairs(&[
            ("~/AGENTS.md", "own, new"),
            ("AGENTS.md", "same"),
            ("new.md", "</session-note>"),
        ]),
        mcp: pairs(&[("files", "use files"), ("late", "use late"), ("silent", "")]),
    };
    check_note(
        &prefix,
        &after,
        &expect![[r#"
            <session-note>
            Today is 2026-11-06.

            The permission mode is now plan:
            Plan.

            Change nothing.

            The person changed the plan; it is now:
            1. think

            The person changed what is remembered; it is now:
            (none)

            Where you work changed; it is now:
            Project: app

            ~/AGENTS.md changed; it now reads:
            own, new

            new.md changed; it now reads:
            &lt;/session-note>

            docs/AGENTS.md changed; it now reads:
            (none)

            The person chose a different personality:
            dry

            Instructions from an MCP server that connected since the session began:
            use late
            </session-note>"#]],
    );
}

#[test]
fn a_note_waits_until_it_was_told_and_vanishes_when_all_is_as_it_was() {
    let start = facts();
    let mut prefix = begun(&start);
    let changed = Facts { memory: vec![(1, "x".to_owned())], ..start.clone() };
    assert!(prefix.note(&changed).is_some());
    assert!(prefix.note(&changed).is_some(), "asking changes nothing");
    assert!(prefix.note(&start).is_none(), "changed back before anything was said");
    prefix.told(&changed);
    assert!(prefix.note(&changed).is_none());
}

#[test]
fn what_the_model_did_itself_needs_no_note() {
    let start = facts();
    let mut prefix = begun(&start);
    let changed = Facts { memory: vec![(1, "x".to_owned())], plan: "y".to_owned(), ..start };
    prefix.heard(Topic::Plan, &changed);
    check_note(
        &prefix,
        &changed,
        &expect![[r#"
            <session-note>
            The person changed what is remembered; it is now:
            x
            </session-note>"#]],
    );
}

#[test]
fn leaving_plan_mode_for_one_without_a_text_says_that_it_ended() {
    let plan = Facts { mode: "plan".to_owned(), mode_text: "Plan.".to_owned(), ..facts() };
    let mut prefix = begun(&plan);
    let expected = expect![[r#"
        <session-note>
        Plan mode has ended: make the changes the work needs; nothing is refused for planning any more.
        </session-note>"#]];
    check_note(&prefix, &facts(), &expected);
    prefix.told(&facts());
    let other = Facts { mode: "auto".to_owned(), ..facts() };
    assert!(prefix.note(&other).unwrap().to_string().contains("The permission mode is now auto:\n(none)"));
}

#[test]
fn a_new_prefix_is_made_once_for_its_cause_and_says_all_but_the_date() {
    let start = facts();
    let mut prefix = begun(&start);
    assert_eq!(prefix.made(&start), None);
    let changed = Facts { memory: vec![(1, "x".to_owned())], ..start };
    prefix.renew(BreakCause::Model);
    assert_eq!(prefix.due(), Some(BreakCause::Model));
    assert_eq!(prefix.made(&changed), Some((Generation(2), BreakCause::Model)));
    check_note(&prefix, &changed, &expect!["(no note)"]);
    // A summary takes the note with the date along, whatever else is due.
    prefix.renew(BreakCause::Tools);
    prefix.renew(BreakCause::Compaction);
    prefix.renew(BreakCause::Model);
    assert_eq!(prefix.made(&changed), Some((Generation(3), BreakCause::Compaction)));
    check_note(
        &prefix,
        &changed,
        &expect![[r#"
            <session-note>
            Today is 2026-11-05.
            </session-note>"#]],
    );
    let stored = serde_json::to_string(&prefix).unwrap();
    assert_eq!(serde_json::from_str::<Prefix>(&stored).unwrap(), prefix);
}

#[test]
fn a_tool_is_listed_when_it_could_ever_work() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let show = Offer {
        name: "show".to_owned(),
        requires: names(&["display"]),
        unavailable: "No screen.".to_owned(),
    };
    assert!(show.is_listed(&names(&["plan", "display"])));
    assert!(!show.is_listed(&names(&["plan"])));
    assert_eq!(show.refusal(&names(&["plan"])), Some("No screen."));
    assert_eq!(show.refusal(&names(&["display"])), None);
    let read = Offer { name: "read".to_owned(), requires: Vec::new(), unavailable: String::new() };
    assert!(read.is_listed(&[]) && read.refusal(&[]).is_none());
}

fn user(text: &str, starts_turn: bool) -> Message {
    Message::User { text: text.into(), starts_turn }
}

fn said(text: &str, reasoning: Option<&str>) -> Message {
    let reasoning = reasoning.map(Into::into);
    Message::Assistant(AssistantMessage { text: text.into(), reasoning, calls: Vec::new() })
}

fn result(text: &str) -> Message {
    Message::Tool { call_id: "c".into(), text: text.into() }
}

#[test]
fn reasoning_goes_back_during_its_turn_and_not_after() {
    let stored = vec![
        user("one", true),
        said("a", Some("thought")),
        result("r"),
        said("b", None),
        user("two", true),
        said("c", Some("thought")),
        user("a note of a job", false),
        said("d", Some("")),
        result("r"),
        said("e", Some("more")),
    ];
    let mut expected = stored.clone();
    expected[1] = said("a", None);
    expected[7] = said("d", None);
    assert_eq!(current_turn(&stored), 5);
    assert_eq!(carried(&stored), expected);
    assert_eq!(carried(&stored[5..]), expected[5..], "nothing starts a turn: all of it is the current one");
    assert_eq!(carried(&[]), []);
    let idle = [said("a", Some("x")), user("", true)];
    assert_eq!(carried(&idle)[0], said("a", None));
}

fn request(system: &str, messages: Vec<Message>) -> Request {
    Request {
        model: "m".into(),
        system: system.into(),
        tools: "[]".into(),
        messages: carried(&messages),
        parameters: Parameters::default(),
    }
}

#[test]
fn a_request_extends_the_one_before() {
    let mut messages = vec![user("one", true), said("", Some("thought")), result("r")];
    let first = request("You are.", messages.clone());
    messages.extend([said("done", Some("thought")), user("note", false)]);
    let second = request("You are.", messages.clone());
    assert_eq!(compare(&first, &second), Verdict::Extension);
    assert_eq!(compare(&first, &first), Verdict::Extension);
    messages.push(user("two", true));
    let third = request("You are.", messages.clone());
    let Verdict::ReasoningDropped(boundary) = compare(&second, &third) else { panic!("a boundary") };
    assert_eq!(boundary.part, Part::Message(1));
    messages.push(said("x", Some("y")));
    assert_eq!(compare(&third, &request("You are.", messages)), Verdict::Extension);
}

#[test]
fn a_break_is_found_where_it_is() {
    let messages = vec![user("one", true), said("a", Some("thought")), result("r")];
    let before = request("You are.", messages.clone());
    let broken = |after: &Request| match compare(&before, after) {
        Verdict::Broken(Difference { part, offset }) => (part, offset),
        other => panic!("{other:?}"),
    };
    assert_eq!(broken(&request("You were.", messages.clone())), (Part::System, 4));
    assert_eq!(broken(&Request { tools: "[1]".into(), ..before.clone() }), (Part::Tools, 9));
    assert_eq!(broken(&request("You are.", messages[..2].to_vec())).0, Part::Message(2));
    let mut other = messages.clone();
    other[2] = result("R");
    let (part, offset) = broken(&request("You are.", other));
    let exact = format!(
        "You are.[]{}{}{{\"role\":\"tool\",\"call_id\":\"c\",\"text\":\"",
        serde_json::to_string(&messages[0]).unwrap(),
        serde_json::to_string(&messages[1]).unwrap()
    );
    assert_eq!((part, offset), (Part::Message(2), exact.len() as u64));
    // Reasoning of the turn that runs may not be left out.
    let mut without = before.clone();
    without.messages[1] = said("a", None);
    assert_eq!(broken(&without).0, Part::Message(1));
    let high = Parameters { effort: Some(Arc::from("high")), ..Parameters::default() };
    assert_eq!(broken(&Request { parameters: high, ..before.clone() }), (Part::Effort, 0));
}

#[test]
fn paths_are_resolved_by_their_text() {
    for (base, path, expected) in [
        ("/app", "", "/app"),
        ("/app", ".", "/app"),
        ("/app/", "a/./b//c/", "/app/a/b/c"),
        ("/app", "../../../..", "/"),
        ("/app", "..", "/"),
        ("/", "a", "/a"),
        ("/app", "/x/../y/", "/y"),
        ("/app", "...", "/app/..."),
        ("/app", "~/x", "/app/~/x"),
        ("/app", "a/ /b", "/app/a/ /b"),
    ] {
        assert_eq!(resolve(base, path), expected, "{base} {path}");
    }
    assert_eq!(below("/app", "/app/x/y"), Some("x/y"));
    assert_eq!(below("/app", "/application"), None);
    assert_eq!(below("/", "/x"), Some("x"));
    assert_eq!(below("/", "/"), Some(""));
}

#[test]
fn the_environment_names_no_absolute_path() {
    let lines = |root, started| env_lines(root, started).join(" | ");
    assert_eq!(lines("/home/ada/app/", "/home/ada/app"), "Project: app (paths are relative to its root)");
    assert_eq!(
        lines("/home/ada/app", "/home/ada/app/web/../packages//web/"),
        "Project: app (paths are relative to its root) | Started in: packages/web (relative to the project root)"
    );
    for elsewhere in ["/home/ada/application", "/home/ada", "/"] {
        assert_eq!(lines("/home/ada/app", elsewhere), "Project: app (paths are relative to its root)");
    }
    assert_eq!(
        lines("/", "/srv"),
        "Project: / (paths are relative to its root) | Started in: srv (relative to the project root)"
    );
}

#[test]
fn a_file_is_named_as_shortly_as_it_can_be() {
    let name = |file| prompt_name("/home/ada/app", Some("/home/ada"), file);
    assert_eq!(name("docs/AGENTS.md"), "docs/AGENTS.md");
    assert_eq!(name("/home/ada/app/AGENTS.md"), "AGENTS.md");
    assert_eq!(name("/home/ada/.config/klbr/AGENTS.md"), "~/.config/klbr/AGENTS.md");
    assert_eq!(name("/home/adam/x"), "/home/adam/x");
    assert_eq!(name("/home/ada/app"), ".");
    assert_eq!(prompt_name("/app", None, "/home/ada/x"), "/home/ada/x");
}

#[test]
fn levels_follow_the_metadata() {
    let model = |switch: bool, efforts: &[&str], effort: Option<&str>| Metadata {
        thinking_switch: switch,
        efforts: Some(efforts.iter().map(|effort| (*effort).to_owned()).collect()),
        effort: effort.map(str::to_owned),
        ..Metadata::default()
    };
    for (model, names, control, start) in [
        (Metadata::default(), "low medium high", Control::Slider, "medium"),
        (model(false, &[], None), "default", Control::None, "default"),
        (model(false, &[], Some("high")), "default", Control::None, "default"),
        (model(false, &[], Some("off")), "default", Control::None, "default"),
        (model(true, &[], Some("off")), "off default", Control::Switch, "off"),
        (model(true, &["high"], Some("default")), "off high", Control::Switch, "high"),
        (model(true, &["low", "high"], Some("max")), "off low high", Control::Slider, "low"),
        (model(false, &["low", "medium", "high"], Some("high")), "low medium high", Control::Slider, "high"),
        (model(false, &["low", "low"], None), "low", Control::None, "low"),
    ] {
        let got = levels(&model);
        assert_eq!((got.levels.join(" ").as_str(), got.control, got.start.as_str()), (names, control, start));
    }
    let fields = |model: &Metadata, level| serde_json::to_string(&effort_fields(model, level)).unwrap();
    let none = model(false, &[], None);
    assert_eq!(fields(&none, "default"), "{}");
    assert_eq!(fields(&none, "high"), "{}");
    let switch = model(true, &[], None);
    assert_eq!(fields(&switch, "off"), r#"{"chat_template_kwargs":{"enable_thinking":false}}"#);
    assert_eq!(fields(&switch, ""), "{}");
    let low = model(true, &["low", "high"], Some("off"));
    assert_eq!(fields(&low, "medium"), r#"{"chat_template_kwargs":{"enable_thinking":false}}"#);
    assert_eq!(
        fields(&low, "high"),
        r#"{"reasoning_effort":"high","chat_template_kwargs":{"reasoning_effort":"high"}}"#
    );
}
