//! What the operator has the agent remember, and how the agent hears of it.

use serde_json::{Value, json};

use crate::model::{says, scripted};
use crate::program::Home;

/// The newest frame that the agent was shown.
fn last_frame(home: &Home) -> String {
    let records = home.good(&["history", "list", "--json", "--limit", "1000"]);
    let records = records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut frames = records.filter(|record| record["kind"] == "frame_made");
    frames.next_back().unwrap()["text"].as_str().unwrap().to_owned()
}

#[test]
fn what_the_operator_pins_is_in_the_prefix_and_a_later_change_is_a_note() {
    let model = scripted(&json!([says("Hello", "", "", "Hi."), says("And now", "", "", "Yes.")]));
    let home = Home::asking(&model.base);
    home.good(&["init"]);
    assert_eq!(
        home.good(&["memory", "add", "--pin", "likes", "tea"]),
        "remembered:    1 (pinned) likes tea\n"
    );
    home.good(&["chat", "-m", "Hello"]);
    assert!(!last_frame(&home).contains("remembered"), "{}", last_frame(&home));

    home.good(&["memory", "edit", "1", "likes coffee"]);
    home.good(&["memory", "add", "is called Grace", "--tag", "author:42"]);
    home.good(&["chat", "-m", "And now?"]);
    let note =
        "<session-note>\nThe person changed what is remembered; it is now:\nlikes coffee\n</session-note>";
    assert!(last_frame(&home).contains(note), "{}", last_frame(&home));
    let updates = home.good(&["events", "--no-follow", "--after", "0"]);
    assert_eq!(updates.matches("prefix").count(), 0, "{updates}");

    assert_eq!(
        home.good(&["memory", "list"]),
        "   2 [author:42] is called Grace\n   1 (pinned) likes coffee\n"
    );
    assert_eq!(home.good(&["memory", "list", "grace"]), "   2 [author:42] is called Grace\n");
    home.good(&["memory", "unpin", "1"]);
    home.good(&["memory", "pin", "2"]);
    home.good(&["chat", "-m", "And now?"]);
    assert!(last_frame(&home).contains("it is now:\nis called Grace\n"), "{}", last_frame(&home));
    home.good(&["memory", "forget", "2"]);
    home.good(&["chat", "-m", "And now?"]);
    assert!(last_frame(&home).contains("it is now:\n(none)\n"), "{}", last_frame(&home));
}

#[test]
fn memories_that_cannot_be_are_refused_by_name() {
    let home = Home::new();
    home.good(&["init"]);
    for (arguments, error) in [
        (&["memory", "forget", "7"][..], "there is no memory 7"),
        (&["memory", "add", " "], "the text is empty"),
        (&["memory", "add", "x", "--tag", "mood:good"], "\"mood:good\" is no scope"),
    ] {
        let ended = home.run(arguments);
        assert!(ended.code != Some(0) && ended.err.contains(error), "{arguments:?}: {ended:?}");
    }
    assert!(home.good(&["memory", "list"]).contains("nothing is remembered"));
}

#[test]
fn verifying_recomputes_what_each_summary_covers() {
    let talk = "Hello, I have a lot to tell. ".repeat(60);
    let summary = json!({
        "when": { "last_contains": "<instructions>" },
        "answer": { "body": { "reply": { "parts": [{ "text": { "say": "They told a lot." } }] } } },
    });
    let model = scripted(&json!([summary, says("Hello", "", "", "Hi.")]));
    let home = Home::asking(&model.base);
    home.good(&["init"]);
    let _daemon = home.daemon();
    home.good(&["chat", "-m", &talk, "-m", &talk]);
    home.good(&["compact"]);
    crate::program::await_that("the summary", || {
        home.good(&["history", "verify"]).contains("1 summary stands for what its record says")
    });
    let verified: Value = serde_json::from_str(&home.good(&["history", "verify", "--json"])).unwrap();
    assert_eq!((&verified["summaries"], &verified["faults"]), (&json!(1), &json!([])));
}
