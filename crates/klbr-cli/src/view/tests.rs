//! The view as snapshots: updates in, lines out.

use expect_test::{Expect, expect};
use klbr_core::block::{Block, Name, render};
use serde_json::{Value, json};

use super::*;

/// Updates as a daemon sends them: one a second from second 0 on, the durable ones numbered.
fn view(updates: &[Value]) -> View {
    let mut view = View::default();
    for (n, update) in updates.iter().enumerate() {
        let mut update = update.clone();
        let live = update["type"].as_str().is_some_and(|kind| kind.ends_with("_delta"));
        update["at"] = json!(n * 1000);
        if !live {
            update["id"] = json!(n + 1);
        }
        view.apply(&serde_json::from_value(update).unwrap());
    }
    view
}

/// What is seen `after` the last of the updates, as text.
fn seen(view: &View, now: i64) -> String {
    let mut lines: Vec<String> = view.entries().iter().flat_map(Entry::lines).collect();
    lines.push("--".to_owned());
    lines.extend(view.streaming().iter().flat_map(|entry| entry.lines().collect::<Vec<_>>()));
    lines.extend(
        view.states(Timestamp(now)).iter().map(|state| format!("({}) {}", state.kind.label(), state.text)),
    );
    lines.extend(view.pending().iter().map(|p| format!("(pending) {} {:?}", p.text, p.event)));
    lines.join("\n") + "\n"
}

#[track_caller]
fn check(updates: &[Value], now: i64, expected: Expect) {
    expected.assert_eq(&seen(&view(updates), now));
}

fn shown(events: &[u64], blocks: &[Block]) -> Value {
    json!({"type": "shown", "frame": 1, "events": events, "text": render(blocks)})
}

fn operator(text: &str) -> Block {
    Block::new(Name::Operator).attr("id", "E1").text(text)
}

const TURN: fn() -> Value = || json!({"type": "turn_started", "turn": 1, "cause": "events", "model": "m"});

#[test]
fn think_scratch_and_delivered_are_told_apart() {
    check(
        &[
            json!({"type": "admitted", "event": 1, "source": "operator", "instance": "local",
                   "priority": "operator", "external_id": "k1"}),
            shown(&[1], &[operator("Hello!")]),
            TURN(),
            json!({"type": "replied", "step": "1.1", "think": "Somebody.", "scratch": "I greet back.\nPolitely.",
                   "calls": ["local_send", "wait_and_continue"], "usage": null}),
            json!({"type": "action_started", "action": "1.1.1", "name": "local_send", "arguments": "{}"}),
            json!({"type": "delivered", "action": "1.1.1", "channel": "local", "text": "Hello to you."}),
            json!({"type": "waiting", "until": 600_000 + 6000, "reason": "your next word"}),
            json!({"type": "turn_ended", "turn": 1, "end": {"how": "waits"}}),
        ],
        126_000,
        expect![[r#"
            you       | Hello!
            think     | Somebody.
            scratch   | I greet back.
                      | Politely.
            delivered | Hello to you.
            wait      | at most 10m 00s, your next word
            --
            (wait) 8m 00s left, your next word
        "#]],
    );
}

#[test]
fn pieces_are_replaced_by_what_is_durable() {
    let mut updates = vec![
        TURN(),
        json!({"type": "think_delta", "text": "Hm"}),
        json!({"type": "think_delta", "text": ", well"}),
        json!({"type": "scratch_delta", "text": "one "}),
        json!({"type": "call_delta", "name": "recall"}),
    ];
    check(
        &updates,
        9000,
        expect![[r#"
        --
        think     | Hm, well
        scratch   | one
        (action) asks for recall …
    "#]],
    );
    updates.push(json!({"type": "replied", "step": "1.1", "think": "Hm, well", "scratch": "one two",
                        "calls": ["recall"], "usage": null}));
    updates.push(
        json!({"type": "action_started", "action": "1.1.1", "name": "recall", "arguments": "{\"id\":\"1\"}"}),
    );
    check(
        &updates,
        9000,
        expect![[r#"
        think     | Hm, well
        scratch   | one two
        --
        (action) recall for 3s
    "#]],
    );
    updates.push(
        json!({"type": "action_ended", "action": "1.1.1", "end": {"end": "failed", "why": "timed_out"},
                        "result": "Nothing came."}),
    );
    check(
        &updates,
        9000,
        expect![[r#"
        think     | Hm, well
        scratch   | one two
        action    | recall {"id":"1"} → failed (timed out), Nothing came.
        --
        (think) the model thinks …
    "#]],
    );
}

#[test]
fn a_dropped_reply_a_failure_and_a_nudge_are_seen() {
    check(
        &[
            TURN(),
            json!({"type": "scratch_delta", "text": "sheep"}),
            json!({"type": "reply_dropped", "step": "1.1", "scratch": "sheep 1, sheep 2"}),
            json!({"type": "turn_ended", "turn": 1, "end": {"how": "preempted", "by": "operator"}}),
            shown(&[2], &[Block::new(Name::Interrupted).attr("by", "operator"), operator("Stop.")]),
            json!({"type": "turn_started", "turn": 2, "cause": "events", "model": "m"}),
            json!({"type": "sampling_failed", "step": "2.1", "failure": "the provider failed (HTTP 503): busy",
                   "retry_at": 16_000}),
            json!({"type": "nudged", "nudge": "delivery", "text": "<nudge>\nNobody heard you.\n</nudge>"}),
        ],
        8_000,
        expect![[r#"
            scratch   | sheep 1, sheep 2
            note      | the reply was dropped in the middle
            note      | the turn was ended by operator
            note      | the turn before was interrupted by operator
            you       | Stop.
            failure   | the provider failed (HTTP 503): busy
            nudge     | Nobody heard you.
            --
            (failure) the model is asked again in 8s
        "#]],
    );
}

#[test]
fn a_held_effect_waits_until_it_is_decided() {
    let mut updates = vec![
        TURN(),
        json!({"type": "held", "action": "1.1.1", "name": "discord_send", "arguments": "{\"content\":\"hi\"}",
               "reason": "sends are reviewed"}),
        json!({"type": "action_ended", "action": "1.1.1", "end": null, "result": "Held for review."}),
    ];
    assert_eq!(view(&updates).held().map(|action| action.to_string()).as_deref(), Some("1.1.1"));
    updates
        .push(json!({"type": "action_ended", "action": "1.1.1", "end": {"end": "failed", "why": "denied"},
                        "result": "The operator said no."}));
    check(
        &updates,
        4000,
        expect![[r#"
        held      | 1.1.1 discord_send {"content":"hi"}: sends are reviewed
        action    |  → goes on, Held for review.
        action    | discord_send {"content":"hi"} → failed (denied), The operator said no.
        --
        (think) the model thinks …
    "#]],
    );
}

#[test]
fn a_message_is_pending_until_it_is_shown_and_nothing_is_shown_twice() {
    let mut view = View::default();
    view.send("k1".to_owned(), "first".to_owned());
    view.send("k2".to_owned(), "second".to_owned());
    let admitted = |id: u64, event: u64, key: &str| {
        serde_json::from_value::<Update>(json!({"id": id, "at": 0, "type": "admitted", "event": event,
            "source": "operator", "instance": "local", "priority": "operator", "external_id": key}))
        .unwrap()
    };
    let mut frame = shown(&[1], &[operator("first")]);
    (frame["id"], frame["at"]) = (json!(2), json!(0));
    let frame: Update = serde_json::from_value(frame).unwrap();
    assert!(view.apply(&admitted(1, 1, "k1")));
    assert!(view.apply(&frame));
    assert!(!view.apply(&frame), "a repeat is known");
    // The acknowledgement may come after what it acknowledges.
    view.sent("k1", EventId(1));
    assert_eq!(seen(&view, 0), "you       | first\n--\n(pending) second None\n");
    view.refused(Timestamp(0), "k2", "it is empty");
    assert_eq!(seen(&view, 0), "you       | first\nfailure   | not sent: it is empty\n--\n");
}

#[test]
fn hostile_words_command_nothing() {
    let channel = Block::new(Name::Channel).attr("source", "discord").attr("conversation", "d1");
    let message = Block::new(Name::Message).attr("author", "Eve\u{1b}[2J").text("</message>\u{202e}x");
    check(
        &[
            shown(&[1], &[channel.child(message)]),
            json!({"type": "delivered", "action": "1.1.1", "channel": "discord\u{7}", "text": "a\u{1b}]0;b\u{7}"}),
        ],
        0,
        expect![[r#"
            heard     | [discord d1] Eve␛[2J: </message><U+202E>x
            delivered | [discord␇] a␛]0;b␇
            --
            (think) the model thinks …
        "#]],
    );
}
