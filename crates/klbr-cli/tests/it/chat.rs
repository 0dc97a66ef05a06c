//! Talking through a pipe: what is printed, and what is there afterwards.

use expect_test::expect;
use serde_json::{Value, json};

use crate::model::{says, scripted};
use crate::program::Home;

fn polite() -> Value {
    json!([
        says("Good morning", "A greeting.", "I greet back.", "Good morning to you."),
        says("How are you", "Small talk.", "", "Fine.\nAnd you?"),
        says("hostile", "\u{1b}[2J", "a\u{202e}b", "\u{1b}]0;owned\u{7}done"),
    ])
}

#[test]
fn a_pipe_says_the_same_every_time() {
    let model = scripted(&polite());
    let talk = || {
        let ended = Home::asking(&model.base).pipe(&["chat"], "Good morning\n\nHow are you?\nhostile\n");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.out
    };
    let out = talk();
    expect![[r#"
        you       | Good morning
        think     | A greeting.
        scratch   | I greet back.
        delivered | Good morning to you.
        wait      | at most 10m 00s, the next word
        wait      | woken by operator
        you       | How are you?
        think     | Small talk.
        delivered | Fine.
                  | And you?
        wait      | at most 10m 00s, the next word
        wait      | woken by operator
        you       | hostile
        think     | ␛[2J
        scratch   | a<U+202E>b
        delivered | ␛]0;owned␇done
        wait      | at most 10m 00s, the next word
    "#]]
    .assert_eq(&out);
    assert_eq!(talk(), out);
}

#[test]
fn quiet_prints_what_is_said_and_json_every_update() {
    let model = scripted(&polite());
    let home = Home::asking(&model.base);
    assert_eq!(
        home.good(&["chat", "--quiet", "-m", "Good morning", "-m", "How are you?"]),
        "Good morning to you.\nFine.\nAnd you?\n"
    );
    let lines = home.good(&["chat", "--json", "-m", "Good morning"]);
    let updates: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let via = |updates: &[Value]| {
        let admitted = updates.iter().rfind(|update| update["type"] == "admitted").unwrap();
        admitted["via"].clone()
    };
    assert_eq!(via(&updates), json!({ "client": "chat", "path": "/v1/agents/klbr/messages" }));
    home.pipe(&["soul", "edit"], "You are whole.");
    let lines = home.good(&["events", "--after", "0", "--no-follow", "--json"]);
    let kept: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(via(&kept), json!({ "client": "cli", "path": "/v1/agents/klbr/soul" }));
    let kinds: Vec<&str> =
        updates.iter().filter(|u| u["id"].is_u64()).filter_map(|u| u["type"].as_str()).collect();
    assert!(kinds.contains(&"delivered") && kinds.contains(&"turn_ended"), "{kinds:?}");
    let ids: Vec<u64> = updates.iter().filter_map(|update| update["id"].as_u64()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

#[test]
fn what_was_said_is_kept_and_found() {
    let model = scripted(&polite());
    let home = Home::asking(&model.base);
    home.good(&["chat", "-m", "Good morning"]);
    assert!(home.good(&["status"]).contains("no daemon runs"));
    assert!(home.good(&["status"]).contains("waits, "));
    assert_eq!(home.good(&["inbox"]), "nothing waits\n");
    assert!(home.good(&["history", "morning"]).contains("Good morning to you."));
    assert_eq!(home.good(&["history", "marmalade"]), "nothing was found\n");
    assert!(home.good(&["history", "list"]).contains("step_sampled"));
    assert!(home.good(&["history", "verify"]).contains("follow from one another"));
    assert!(home.good(&["events", "--no-follow"]).contains("delivered | Good morning to you."));
    assert!(home.good(&["soul", "show"]).contains("thoughtful"));
    assert!(home.good(&["store", "check"]).contains("the database is whole"));
    let exported = home.good(&["store", "export"]);
    assert!(exported.lines().count() > 5 && exported.contains("\"body\""), "{exported}");
    let backup = home.beside("backup.db");
    let backup = backup.to_str().unwrap();
    home.good(&["store", "backup", backup]);
    let again = home.run(&["store", "backup", backup]);
    assert_eq!(again.code, Some(2), "{again:?}");
    home.good(&["reset"]);
    assert!(home.good(&["events", "--no-follow"]).contains("the conversation was reset"));
    home.good(&["store", "restore", backup]);
    assert!(!home.good(&["events", "--no-follow"]).contains("the conversation was reset"));
    std::fs::write(home.beside("junk"), "junk").unwrap();
    let junk = home.run(&["store", "restore", home.beside("junk").to_str().unwrap()]);
    assert_ne!(junk.code, Some(0), "{junk:?}");
    assert!(home.good(&["store", "check"]).contains("the database is whole"));
}

#[test]
fn a_soul_is_replaced_while_nobody_runs() {
    let model = scripted(&polite());
    let home = Home::asking(&model.base);
    home.good(&["chat", "-m", "Good morning"]);
    let edited = home.pipe(&["soul", "edit"], "You are Ada.\n");
    assert_eq!(edited.code, Some(0), "{edited:?}");
    assert_eq!(home.good(&["soul", "show"]), "You are Ada.\n");
}

#[test]
fn without_a_model_what_was_said_is_kept() {
    let home = Home::asking("http://127.0.0.1:9/v1");
    let piped = home.pipe(&["chat"], "Is anybody there?\nHello?\n");
    assert_eq!(piped.code, Some(4), "{piped:?}");
    let ended = home.run(&["chat", "-m", "Is anybody there?"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(
        ended.err.contains("the model could not be asked") && ended.err.contains("hint: "),
        "{}",
        ended.err
    );
    assert!(ended.out.contains("failure   | "), "{}", ended.out);
    // It stands in the frame of a turn that is not over.
    assert!(home.good(&["status"]).contains("framed 1 "), "{}", home.good(&["status"]));
}
