//! The screen as snapshots, drawn on a terminal in memory.

use expect_test::{Expect, expect};
use klbr_core::block::{Block as Shown, Name, render};
use klbr_core::update::Update;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use super::*;

fn view(updates: &[Value]) -> View {
    let mut view = View::default();
    for (n, update) in updates.iter().enumerate() {
        let mut update = update.clone();
        update["at"] = json!(n * 1000);
        if !update["type"].as_str().unwrap().ends_with("_delta") {
            update["id"] = json!(n + 1);
        }
        view.apply(&serde_json::from_value::<Update>(update).unwrap());
    }
    view
}

fn talk() -> View {
    let mut view = view(&[
        json!({"type": "shown", "frame": 1, "events": [1],
               "text": render(&[Shown::new(Name::Operator).text("こんにちは 👩\u{200d}💻! \u{1b}[31mred")])}),
        json!({"type": "turn_started", "turn": 1, "cause": "events", "model": "m"}),
        json!({"type": "replied", "step": "1.1", "think": "A greeting, in Japanese.", "scratch": "Answer in kind.",
               "calls": ["local_send"], "usage": null}),
        json!({"type": "delivered", "action": "1.1.1", "channel": "local",
               "text": "こんにちは! It is a pleasure to make your acquaintance."}),
        json!({"type": "held", "action": "1.1.2", "name": "discord_send", "arguments": "{\"content\":\"hello, everyone\"}",
               "reason": "sends are reviewed"}),
        json!({"type": "scratch_delta", "text": "and now …"}),
    ]);
    view.send("k".to_owned(), "are you there?".to_owned());
    view
}

fn drawn(screen: &mut Screen, view: &View, columns: u16, rows: u16, lost: Option<&str>) -> String {
    let mut editor = Editor::default();
    editor.insert("日本");
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    let scene = Scene {
        view,
        editor: &editor,
        title: "klbr · a model",
        lost,
        help: "enter send · esc interrupt",
        now: Timestamp(65_000),
    };
    terminal.draw(|frame| screen.draw(frame, &scene)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let mut text = String::new();
    for y in 0..rows {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..columns {
            let symbol = buffer[(x, y)].symbol();
            if skip == 0 {
                line.push_str(symbol);
                skip = width(symbol).max(1);
            }
            skip -= 1;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[track_caller]
fn check(columns: u16, rows: u16, expected: Expect) {
    expected.assert_eq(&drawn(&mut Screen::default(), &talk(), columns, rows, None));
}

#[test]
fn a_usual_terminal() {
    check(
        80,
        18,
        expect![[r#"
        klbr · a model





              you │ こんにちは 👩‍💻! ␛[31mred
            think ┊ A greeting, in Japanese.
          scratch ┊ Answer in kind.
        delivered ┃ こんにちは! It is a pleasure to make your acquaintance.
             held │ 1.1.2 discord_send {"content":"hello, everyone"}: sends are reviewed
          scratch ┊ and now …
        now: the model writes scratch …
        held: 1.1.2 discord_send {"content":"hello, everyo…  (ctrl-y allow, ctrl-n deny)
        » sending: are you there?
        ────────────────────────────────────────────────────────────────────────────────
        > 日本
        enter send · esc interrupt
    "#]],
    );
}

#[test]
fn a_narrow_terminal() {
    check(
        24,
        20,
        expect![[r#"
        klbr · a model
        ┊ scratch
        ┊ Answer in kind.
        ┃ delivered
        ┃ こんにちは! It is a
        ┃ pleasure to make your
        ┃ acquaintance.
        │ held
        │ 1.1.2 discord_send {"
        │ content":"hello,
        │ everyone"}: sends are
        │ reviewed
        ┊ scratch
        ┊ and now …
        now: the model writes s…
        held: 1.1.2 disco… ^y/^n
        » sending: are you ther…
        ────────────────────────
        > 日本
        enter send · esc interr…
    "#]],
    );
}

#[test]
fn a_terminal_without_room_draws_what_it_can() {
    for (columns, rows) in [(1, 1), (2, 3), (10, 4), (80, 5), (5, 50)] {
        drawn(&mut Screen::default(), &talk(), columns, rows, Some("gone"));
    }
}

#[test]
fn scrolling_stays_in_place_while_more_comes() {
    let updates = |count: usize| -> Vec<Value> {
        (0..count).map(|n| json!({"type": "delivered", "action": "1.1.1", "channel": "local", "text": format!("line {n}")}))
            .collect()
    };
    let mut screen = Screen::default();
    drawn(&mut screen, &view(&updates(30)), 60, 10, None);
    screen.scroll_pages(1);
    let before = drawn(&mut screen, &view(&updates(30)), 60, 10, None);
    let after = drawn(&mut screen, &view(&updates(33)), 60, 10, None);
    let body = |text: &str| text.lines().skip(1).take(6).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&before), body(&after));
    assert!(after.starts_with("klbr · a model"), "{after}");
    assert!(after.lines().next().unwrap().ends_with("8 rows below"), "{after}");
    screen.show_oldest();
    let top = drawn(&mut screen, &view(&updates(33)), 60, 10, None);
    assert!(top.contains("line 0\n"), "{top}");
    screen.show_newest();
    let end = drawn(&mut screen, &view(&updates(33)), 60, 10, Some("it went"));
    assert!(end.contains("line 32\n") && end.contains("not connected: it went"), "{end}");
}
