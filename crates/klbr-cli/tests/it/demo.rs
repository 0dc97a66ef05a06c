//! The demo keeps its word.

use crate::program::Home;

#[test]
fn the_demo_shows_a_whole_life() {
    let out = Home::new().good(&["demo", "--fast"]);
    for line in [
        "the model is SCRIPTED",
        "you       | Good morning!",
        "delivered | Good morning!",
        "wait      | woken by operator",
        "note      | the reply was dropped in the middle",
        "nudge     | ",
        "delivered | Not far.",
        "the daemon ended: exit status: 0",
        "killed with SIGKILL",
        "delivered | 7.",
        "delivered: 3, said twice: 0; killed once, and nothing was lost",
    ] {
        assert!(out.contains(line), "no {line:?} in:\n{out}");
    }
    assert!(out.contains("ledger: admitted 4 = "), "{out}");
}
