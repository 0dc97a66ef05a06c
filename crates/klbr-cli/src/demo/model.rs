//! The demo's model: no model at all, but a script that answers what the demo says.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream;
use klbr_core::block::{Content, Name, parse};
use klbr_core::model::{Delta, Failure, Finish, Message, RawCall, Request, Sampled};
use klbr_core::runtime::model::{Model, Piece, Reply};
use serde_json::json;

/// The name under which it is recorded.
pub(crate) const NAME: &str = "scripted-demo";

/// What the demo says, in order.
pub(super) const GREETING: &str = "Good morning! What do you do all day?";
pub(super) const COUNT: &str = "Please count to a million.";
pub(super) const STOP: &str = "Stop, that is enough. How far did you get?";
pub(super) const NUMBER: &str = "I think of the number 7. Keep it in mind.";

/// A model that follows the script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scripted {
    /// The pause between two pieces.
    pub(crate) pace: Duration,
}

/// What is replied: thoughts, plain text, and calls.
#[derive(Debug, Default)]
struct Turn {
    think: &'static str,
    scratch: String,
    calls: Vec<(&'static str, serde_json::Value)>,
}

#[async_trait]
impl Model for Scripted {
    async fn sample(&self, request: Request) -> Result<Reply, Failure> {
        let turn = reply(&request.messages);
        let sampled = Sampled {
            text: turn.scratch.clone(),
            reasoning: Some(turn.think.to_owned()),
            calls: turn.calls.iter().map(call).collect(),
            finish: if turn.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls },
            usage: None,
        };
        let words = |text: &str| text.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut pieces: Vec<Piece> =
            words(turn.think).into_iter().map(|w| Piece::Delta(Delta::Think(w))).collect();
        pieces.extend(words(&turn.scratch).into_iter().map(|w| Piece::Delta(Delta::Scratch(w))));
        let names = turn.calls.iter().map(|(name, _)| (*name).to_owned());
        pieces.extend(names.map(|name| Piece::Delta(Delta::CallStarted { name })));
        pieces.push(Piece::Finished(sampled));
        let pace = self.pace;
        let paced = stream::iter(pieces).then(move |piece| async move {
            tokio::time::sleep(pace).await;
            Ok(piece)
        });
        Ok(paced.boxed())
    }
}

fn call((name, arguments): &(&'static str, serde_json::Value)) -> RawCall {
    RawCall { id: None, name: (*name).to_owned(), arguments: arguments.to_string() }
}

fn say(content: &str) -> (&'static str, serde_json::Value) {
    ("local_send", json!({ "content": content }))
}

fn wait(reason: &str) -> (&'static str, serde_json::Value) {
    ("wait_and_continue", json!({ "duration": "10m", "reason": reason }))
}

/// The script: what is replied to the last message.
fn reply(messages: &[Message]) -> Turn {
    let Some(Message::User { text, .. }) = messages.last() else {
        return Turn { think: "Nothing came.", calls: vec![wait("something to do")], ..Turn::default() };
    };
    let (name, words) = newest(text);
    match (name, &*words) {
        (Some(Name::Operator), GREETING) => Turn {
            think: "A greeting and a question. I answer, and then I wait: anything said to me wakes me.",
            scratch: "Note to myself: this is scratch. Nobody is sent it.".to_owned(),
            calls: vec![
                say("Good morning! I listen, I think, and I wait until there is something to do."),
                wait("your next word"),
            ],
        },
        (Some(Name::Operator), COUNT) => Turn {
            think: "That will take a while.",
            scratch: (1..=20_000).fold(String::new(), |text, n| format!("{text}{n}, ")),
            calls: vec![say("Done."), wait("your next word")],
        },
        (Some(Name::Operator), STOP) => Turn {
            think: "I was cut off in the middle, and that was right.",
            scratch: "I would say that I did not get far.".to_owned(),
            calls: Vec::new(),
        },
        (Some(Name::Nudge), _) => Turn {
            think: "Right: what I write here is heard by nobody.",
            scratch: String::new(),
            calls: vec![say("Not far. I stopped the moment you spoke."), wait("your next word")],
        },
        (Some(Name::Operator), NUMBER) => Turn {
            think: "I take my time here, one word after the other, so that there is time for a kill in the middle.",
            scratch: "The number is 7.".to_owned(),
            calls: vec![say("7. I have it, whatever happens to my process."), wait("your next word")],
        },
        _ => Turn {
            think: "Not in my script.",
            calls: vec![say("I am scripted, and this is not in my script."), wait("your next word")],
            ..Turn::default()
        },
    }
}

/// The last block that asks for something, and its words.
fn newest(text: &Arc<str>) -> (Option<Name>, String) {
    let blocks = parse(text).unwrap_or_default();
    let newest = blocks.iter().rev().find(|block| matches!(block.name(), Name::Operator | Name::Nudge));
    let words = newest.map(|block| {
        let texts = block.contents().iter().filter_map(|content| match content {
            Content::Text(text) => Some(text.as_str()),
            Content::Block(_) => None,
        });
        texts.collect::<String>().trim().to_owned()
    });
    (newest.map(|block| block.name()), words.unwrap_or_default())
}
