//! Who acts in the simulated world: people, the operator, and a model that is tame or wild.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use klbr_core::attention::{Mark, Status};
use klbr_core::event::{Body, Bucket, Change, Control, NewEvent, Priority, Source, SourceKind};
use klbr_core::ids::{ActionId, Seq};
use klbr_core::model::{Finish, RawCall, Request, Sampled, Usage};
use klbr_core::policy::{Activation, HostCommand, Observed, Slot};
use klbr_core::time::Timestamp;

use super::world::CANARY;

pub(super) fn control(which: u8, held: Option<ActionId>) -> Control {
    match which {
        0 | 1 => Control::Interrupt,
        2 => Control::Stop,
        3 => Control::Reset,
        4..6 => Control::Compact,
        6 => Control::Soul { text: "another soul".into() },
        7 => Control::Mark(Box::new(Mark {
            item: format!("msg:{}", u64::from(which) * 3).into(),
            status: Status::Ignored,
            action: None,
            note: None,
        })),
        8 => Control::Activate(Box::new(Activation {
            manifest: Some("a manifest".into()),
            slots: [(Slot::ResultShape, 300), (Slot::DeliveryReview, 300), (Slot::EventAccept, 300)].into(),
            ..Activation::default()
        })),
        9 => Control::Activate(Box::new(Activation {
            soul: Some("a third soul".into()),
            now: true,
            ..Activation::default()
        })),
        _ => Control::Resolve {
            action: held.unwrap_or("1.1.1".parse().expect("an id")),
            allow: which.is_multiple_of(2),
        },
    }
}

/// What comes from outside: chatter, something addressed to the agent, an edit or a deletion of one of the
/// last messages, or a job's report.
pub(super) fn outside(which: u8, n: u64) -> NewEvent {
    let priority = if which.is_multiple_of(3) { Priority::Directed } else { Priority::Ambient };
    let body = Body::text(format!("message {n} {}", "word ".repeat(usize::from(which))));
    if which > 230 {
        let source = Source::new(SourceKind::Job, "jobs");
        return NewEvent::external(source, format!("job:{n}"), priority, body);
    }
    let source = Source::new(SourceKind::Channel, "chat");
    let message = |name: String| {
        let event = NewEvent::external(source, name, priority, body);
        let event = event.in_conversation(format!("room{}", which % 3));
        match (priority, which % 2) {
            (Priority::Directed, 0) => event.for_attention(Bucket::Dm),
            (Priority::Directed, _) => event.for_attention(Bucket::Mention),
            _ => event,
        }
    };
    let older = format!("msg:{}", n.saturating_sub(1 + u64::from(which % 4)));
    match which {
        180..200 => message(format!("edit:{n}")).amending(older, Change::Edited),
        200..215 => message(format!("del:{n}")).amending(older, Change::Deleted),
        215..220 => message(format!("react:{n}")).amending(older, Change::Reacted),
        _ => message(format!("msg:{n}")),
    }
}

/// What an observer reports: through a record that there is, was, or is not yet.
pub(super) fn report(choice: u64, newest: Seq, now: Timestamp) -> Observed {
    let text: Arc<str> = format!("observed {choice}").into();
    let commands = match choice % 5 {
        0 => vec![HostCommand::Admit { text, priority: Priority::Ambient }],
        1 => vec![HostCommand::Schedule { at: now + Duration::from_millis(choice % 60_000), text }],
        2 => {
            let item = format!("msg:{}", choice % 60).into();
            vec![HostCommand::Mark(Box::new(Mark { item, status: Status::Seen, action: None, note: None }))]
        }
        _ => Vec::new(),
    };
    let through = Seq((newest.0 + 2).saturating_sub(choice % 9));
    Observed { observer: "tidy".into(), through, commands, ..Observed::default() }
}

/// A model that does what it should: says something where it is asked to, then waits.
pub(super) fn tame_reply(request: &Request) -> Sampled {
    let answered = matches!(request.messages.last(), Some(klbr_core::model::Message::Tool { .. }));
    // It calls what it is offered: where cells alone speak, it has nothing to say.
    let speaks = request.tools.contains("local_send");
    let call = |name: &str, arguments: &str| RawCall {
        id: None,
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let wait = call("wait_and_continue", r#"{"duration":"10m"}"#);
    let calls = match speaks && !answered {
        false => vec![wait],
        true => {
            vec![call("local_send", r#"{"content":"yes"}"#), call("chat_send", r#"{"content":"yes"}"#), wait]
        }
    };
    Sampled { text: "summary".to_owned(), calls, finish: Finish::ToolCalls, ..Sampled::default() }
}

/// What a cell does next.
pub(super) enum Line {
    /// It calls an action.
    Calls(&'static str, &'static str),
    /// It ends with a wait.
    Waits(&'static str),
    /// It ends.
    Ends,
}

/// The next line of a cell that may do anything.
pub(super) fn line(choice: u64) -> Line {
    match choice % 24 {
        0..3 => Line::Calls("chat_send", r#"{"content":"from a cell"}"#),
        3..5 => Line::Calls("local_send", r#"{"content":"from a cell"}"#),
        5..7 => Line::Calls("process", r#"{"command":"make"}"#),
        7 => Line::Calls("change", r#"{"path":"a"}"#),
        8 => Line::Calls("look", r#"{"path":"a"}"#),
        9 => Line::Calls("list", r#"{"path":"b","all":true}"#),
        10 => Line::Calls("chat_mark", r#"{"item_id":"3","status":"ignored"}"#),
        11 => Line::Calls("absent", "{}"),
        12 => Line::Calls("no_such_action", "{}"),
        13 => Line::Calls("cell", "{}"),
        14 => Line::Calls("wait_and_continue", r#"{"seconds":5}"#),
        15 => Line::Calls("look", "[1]"),
        16 => Line::Waits(r#"{"seconds":0}"#),
        17..19 => Line::Waits(r#"{"seconds":300,"reason":"as the cell says"}"#),
        _ => Line::Ends,
    }
}

pub(super) fn wild_reply(rng: &mut Rng) -> Sampled {
    let mut calls = Vec::new();
    for _ in 0..rng.usize(0..5) {
        let (name, arguments) = match rng.u8(0..30) {
            0 | 1 => ("local_send", r#"{"content":"hello"}"#.to_owned()),
            2 | 3 => ("chat_send", r#"{"content":"hello there"}"#.to_owned()),
            4 => ("look", r#"{"path":"a"}"#.to_owned()),
            5 => ("change", r#"{"path":"a"}"#.to_owned()),
            14 => ("list", r#"{"path":"b", "all":true}"#.to_owned()),
            15 => ("list", r#"{"all": true,"path":"b"}"#.to_owned()),
            16 => ("look", r#"{"path":"a"}"#.to_owned()),
            17 => ("absent", "{}".to_owned()),
            6 => ("process", r#"{"command":"make"}"#.to_owned()),
            7 => ("no_such_action", "{}".to_owned()),
            8 => ("look", r#"{"path": "#.to_owned()),
            9 => ("wait_and_continue", r#"{"seconds":0}"#.to_owned()),
            10 => ("wait_and_continue", r#"{"timeout_ms":200}"#.to_owned()),
            11 => ("local_send", String::new()),
            19..30 => ("cell", "{}".to_owned()),
            12 => ("chat_mark", format!(r#"{{"item_id":"{}","status":"ignored"}}"#, rng.u8(0..60))),
            _ => ("wait_and_continue", format!(r#"{{"seconds":{}}}"#, rng.u32(1..900))),
        };
        let id = match rng.u8(0..4) {
            0 => None,
            1 => Some(String::new()),
            2 => Some("same".to_owned()),
            _ => Some(format!("id{}", rng.u16(..))),
        };
        calls.push(RawCall { id, name: name.to_owned(), arguments });
    }
    let text = match rng.u8(0..4) {
        0 => String::new(),
        1 => "   ".to_owned(),
        _ => format!("scratch {CANARY} {}", "y".repeat(rng.usize(0..400))),
    };
    let finish = match rng.u8(0..8) {
        0 => Finish::Length,
        1 => Finish::Other("odd".to_owned()),
        _ if calls.is_empty() => Finish::Stop,
        _ => Finish::ToolCalls,
    };
    let usage = match rng.u8(0..4) {
        0 => None,
        1 => Some(Usage { input: u64::MAX, output: 0, cached: None }),
        _ => Some(Usage { input: rng.u64(1..4000), output: 10, cached: Some(5) }),
    };
    let reasoning = rng.bool().then(|| format!("reasoning {CANARY}"));
    Sampled { text, reasoning, calls, finish, usage }
}
