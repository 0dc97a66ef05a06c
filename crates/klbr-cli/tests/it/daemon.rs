//! Verbs beside a daemon.

use expect_test::expect;
use serde_json::{Value, json};

use crate::model::{says, scripted};
use crate::program::{Home, await_that};

#[test]
fn a_daemon_is_talked_to_looked_at_and_stopped() {
    let model = scripted(&json!([
        says("Good morning", "A greeting.", "", "Good morning to you."),
        says("look back", "I look.", "", "I have looked."),
        { "answer": { "body": { "reply": { "parts": [ { "endless": { "say": "sheep ", "gap_ms": 5, "to": "text" } } ] } } } },
    ]));
    let home = Home::asking(&model.base);
    let mut daemon = home.daemon();
    let second = home.run(&["run"]);
    assert_eq!(second.code, Some(3), "{second:?}");
    assert!(second.err.contains("process"), "{second:?}");

    assert_eq!(home.good(&["chat", "--quiet", "-m", "Good morning"]), "Good morning to you.\n");
    assert!(home.good(&["status"]).contains("waits, "));
    assert!(home.good(&["models"]).contains("scripted"));
    assert!(home.good(&["history", "morning"]).contains("Good morning to you."));
    assert!(
        home.good(&["events", "--after", "0", "--no-follow"]).contains("delivered | Good morning to you.")
    );
    assert!(home.good(&["history", "list", "--limit", "3"]).lines().count() == 3);
    assert!(home.good(&["history", "verify"]).contains("follow from one another"));
    let far = home.run(&["events", "--after", "999999"]);
    assert_eq!(far.code, Some(2), "{far:?}");
    let unknown = home.run(&["status", "--agent", "bob"]);
    assert_ne!(unknown.code, Some(0), "{unknown:?}");
    assert!(unknown.err.contains("bob") && unknown.err.contains("hint: "), "{unknown:?}");
    let none = home.run(&["effects", "deny", "9.9.9"]);
    assert_eq!(none.code, Some(2), "{none:?}");

    home.good(&["debug", "reflect", "look back"]);
    await_that("the reflection", || home.good(&["history", "looked"]).contains("I have looked."));

    // A chat that is cut off by another client's interrupt ends like any other.
    let mut talk = home.klbr(&["chat", "-m", "count sheep"]).spawn().unwrap();
    await_that("the stream", || home.good(&["status"]).contains("asks its model"));
    home.good(&["interrupt"]);
    assert!(talk.wait().unwrap().success());
    assert!(
        home.good(&["events", "--after", "0", "--no-follow"]).contains("the reply was dropped in the middle")
    );

    let status: Value = serde_json::from_str(&home.good(&["status", "--json"])).unwrap();
    let ledger = &status["agent"]["ledger"];
    assert_eq!(ledger["admitted"], json!(4), "{ledger}");
    assert!(home.good(&["stop"]).contains("has stopped"));
    assert!(daemon.0.wait().unwrap().success());
    let again = home.run(&["stop"]);
    assert_eq!(again.code, Some(4), "{again:?}");
}

/// A chat outlives the daemon that it is attached to: what was said is answered once, and told once.
#[test]
fn a_chat_goes_on_with_the_next_daemon() {
    let endless = json!({ "times": 1, "answer": { "body": { "reply": { "parts": [
        { "endless": { "say": "sheep ", "gap_ms": 5, "to": "text" } } ] } } } });
    let model = scripted(&json!([endless, says("Good morning", "A greeting.", "", "Good morning to you.")]));
    let home = Home::asking(&model.base);
    let mut first = home.daemon();
    let talk = home.klbr(&["chat", "-m", "Good morning"]).spawn().unwrap();
    await_that("the stream", || home.good(&["status"]).contains("asks its model"));
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let _second = home.daemon();
    let ended = talk.wait_with_output().unwrap();
    let out = String::from_utf8(ended.stdout).unwrap();
    expect![[r#"
        you       | Good morning
        note      | the process began anew; nothing was lost
        think     | A greeting.
        delivered | Good morning to you.
        wait      | at most 10m 00s, the next word
    "#]]
    .assert_eq(&out);
    assert!(ended.status.success());
}

#[test]
fn a_killed_daemon_leaves_a_home_that_every_verb_can_use() {
    let model = scripted(&json!([says("Good morning", "A greeting.", "", "Good morning to you.")]));
    let home = Home::asking(&model.base);
    let mut daemon = home.daemon();
    home.good(&["chat", "-m", "Good morning"]);
    daemon.0.kill().unwrap();
    daemon.0.wait().unwrap();
    assert!(home.good(&["status"]).contains("no daemon runs"));
    assert!(home.good(&["history", "verify"]).contains("follow from one another"));
    assert_eq!(home.good(&["chat", "--quiet", "-m", "Good morning again"]), "Good morning to you.\n");
}

#[test]
fn a_doctor_finds_what_is_wrong_and_what_is_right() {
    let model = scripted(&json!([{ "answer": { "body": { "reply": { "parts": [
        { "call": { "name": "answer", "arguments": { "text": "ready" } } } ] } } } }]));
    let home = Home::asking(&model.base);
    home.good(&["init"]);
    let well = home.run(&["doctor"]);
    assert_eq!(well.code, Some(0), "{well:?}");
    for good in ["the model calls them", "32768 tokens", "readable by you alone", "no daemon runs"] {
        assert!(well.out.contains(good), "{good}: {}", well.out);
    }
    use std::os::unix::fs::PermissionsExt as _;
    let token = home.path().join("token");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(home.path().join("klbr.db"), "not a database at all").unwrap();
    let ill = home.run(&["doctor"]);
    assert_eq!(ill.code, Some(3), "{ill:?}");
    assert_eq!(ill.out.matches("BAD ").count(), 2, "{}", ill.out);
    assert!(ill.out.contains("chmod 600"), "{}", ill.out);
    assert_eq!(std::fs::read(home.path().join("klbr.db")).unwrap(), b"not a database at all");
}
