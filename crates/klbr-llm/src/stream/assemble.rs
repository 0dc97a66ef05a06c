//! A reply out of its chunks.
//!
//! Owns which fragment belongs to which call, and what of the text is reasoning. Refuses to judge the
//! reply: whether a call's arguments are whole is the core's question.

use klbr_core::model::{Delta, Finish, RawCall, Sampled, Usage};
use serde::de::IgnoredAny;

use super::banner;
use super::chunk::{Arguments, Chunk, Fragment};
use super::think::{Part, Splitter};

/// Builds one reply, and tells what each chunk added to it.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    reasoning: String,
    text: String,
    calls: Vec<Slot>,
    finish: Option<Finish>,
    /// Whether a piece of a call came after the finish reason.
    has_late_calls: bool,
    usage: Option<Usage>,
    splitter: Splitter,
    text_banner: banner::Filter,
    reasoning_banner: banner::Filter,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
}

impl Assembler {
    /// Takes a chunk and gives what may be shown of it.
    pub(super) fn handle(&mut self, chunk: Chunk, deltas: &mut Vec<Delta>) {
        let thought = self.reasoning_banner.handle(&chunk.reasoning);
        self.think(thought, deltas);
        let text = self.text_banner.handle(&chunk.text);
        let parts = self.splitter.handle(&text);
        self.handle_parts(parts, deltas);
        self.has_late_calls |= self.finish.is_some() && !chunk.calls.is_empty();
        for (position, fragment) in chunk.calls.into_iter().enumerate() {
            self.handle_fragment(position, fragment, deltas);
        }
        self.finish = chunk.finish.or(self.finish.take());
        self.usage = chunk.usage.or(self.usage);
    }

    /// Whether the provider has said why the reply ends; calls and usage may still follow.
    pub(super) fn has_finish(&self) -> bool {
        self.finish.is_some()
    }

    /// The provider's own word for a failed reply, if it ended with one.
    pub(super) fn failed(&self) -> bool {
        matches!(&self.finish, Some(Finish::Other(reason)) if reason == "error")
    }

    /// Whether the reply is whole even if nothing follows: it has an end, and no call that came after it
    /// is cut.
    pub(super) fn is_settled(&self) -> bool {
        let is_cut = |slot: &Slot| !slot.arguments.is_empty() && !is_whole(&slot.arguments);
        self.finish.is_some() && !(self.has_late_calls && self.calls.iter().any(is_cut))
    }

    /// Whether anything of the model's has arrived.
    pub(super) fn has_content(&self) -> bool {
        !(self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty())
    }

    /// Takes the end and gives the reply, with what was still held back of its text.
    pub(super) fn finish(mut self, deltas: &mut Vec<Delta>) -> Sampled {
        let thought = self.reasoning_banner.handle_end();
        self.think(thought, deltas);
        let text = self.text_banner.handle_end();
        let mut parts = self.splitter.handle(&text);
        parts.extend(self.splitter.handle_end());
        self.handle_parts(parts, deltas);
        let calls = self.calls.into_iter().filter(Slot::says_something).map(Slot::into_call).collect();
        Sampled {
            text: self.text,
            reasoning: (!self.reasoning.is_empty()).then_some(self.reasoning),
            calls,
            finish: self.finish.unwrap_or(Finish::Unsaid),
            usage: self.usage,
        }
    }

    fn think(&mut self, thought: String, deltas: &mut Vec<Delta>) {
        if !thought.is_empty() {
            self.reasoning.push_str(&thought);
            deltas.push(Delta::Think(thought));
        }
    }

    fn handle_parts(&mut self, parts: Vec<Part>, deltas: &mut Vec<Delta>) {
        for part in parts {
            match part {
                Part::Think(thought) => self.think(thought, deltas),
                Part::Text(text) => {
                    self.text.push_str(&text);
                    deltas.push(Delta::Scratch(text));
                }
                Part::WasThink => self.reasoning.push_str(&std::mem::take(&mut self.text)),
            }
        }
    }

    fn handle_fragment(&mut self, position: usize, fragment: Fragment, deltas: &mut Vec<Delta>) {
        let found = self.slot_of(position, &fragment).unwrap_or_else(|| {
            self.calls.push(Slot { index: fragment.index, ..Slot::default() });
            self.calls.len() - 1
        });
        let slot = &mut self.calls[found];
        if slot.repeats(&fragment) {
            return;
        }
        if slot.id.is_none() {
            slot.id = fragment.id;
        }
        let unnamed = slot.name.is_empty();
        // A name may come in pieces, and some servers repeat it with every fragment.
        if let Some(name) = fragment.name
            && slot.arguments.is_empty()
            && slot.name != name
        {
            slot.name.push_str(&name);
        }
        match fragment.arguments {
            Arguments::None => {}
            Arguments::Piece(piece) => slot.arguments.push_str(&piece),
            Arguments::Whole(whole) => slot.arguments = whole,
        }
        if unnamed && !slot.name.is_empty() {
            deltas.push(Delta::CallStarted { name: slot.name.clone() });
        }
    }

    /// The call that a fragment continues; `None` when it begins one.
    fn slot_of(&self, position: usize, fragment: &Fragment) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        let found = match (fragment.index, &fragment.id) {
            (Some(index), _) => self.calls.iter().rposition(|slot| slot.index == Some(index)),
            (None, Some(id)) => {
                let named = fragment.name.is_some();
                let same = self.calls.iter().rposition(|slot| slot.id.as_ref() == Some(id));
                same.or_else(|| last.filter(|_| !named))
            }
            // The items of one array are calls of their own.
            (None, None) => last.filter(|_| position == 0 || fragment.name.is_none()),
        }?;
        (!self.calls[found].is_followed_by(fragment)).then_some(found)
    }
}

impl Slot {
    /// Whether a fragment that seems to continue this call begins another one.
    ///
    /// A call begins with its name. Servers that give every call the same index, or none, are told apart
    /// by a new id; else by a name that comes when the arguments are already whole, or by another name.
    fn is_followed_by(&self, fragment: &Fragment) -> bool {
        let Some(name) = &fragment.name else { return false };
        if self.name.is_empty() {
            return false;
        }
        match (&self.id, &fragment.id) {
            (Some(own), Some(id)) if own != id => true,
            _ if self.repeats(fragment) => false,
            _ if !self.arguments.is_empty() => *name != self.name || is_whole(&self.arguments),
            // Without an index, a name that brings arguments is no second half of this one.
            _ => {
                let alone = fragment.index.is_none() && fragment.arguments != Arguments::None;
                alone && *name != self.name
            }
        }
    }

    /// Whether a fragment says the whole call once more, as some servers do at its end.
    fn repeats(&self, fragment: &Fragment) -> bool {
        let (Arguments::Piece(arguments) | Arguments::Whole(arguments)) = &fragment.arguments else {
            return false;
        };
        self.id.is_some()
            && self.id == fragment.id
            && fragment.name.as_ref() == Some(&self.name)
            && *arguments == self.arguments
            && is_whole(arguments)
    }

    fn says_something(&self) -> bool {
        !(self.name.is_empty() && self.arguments.is_empty())
    }

    fn into_call(self) -> RawCall {
        RawCall { id: self.id, name: self.name, arguments: self.arguments }
    }
}

fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(arguments).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::chunk::read;
    use super::super::object::Object;
    use super::*;

    /// Assembles chunks whose deltas hold these values of `tool_calls`; gives `id name arguments` a call.
    fn calls(deltas: &[&str]) -> Vec<String> {
        let mut assembler = Assembler::default();
        let mut shown = Vec::new();
        for calls in deltas {
            let json = format!(r#"{{"choices":[{{"delta":{{"tool_calls":{calls}}}}}]}}"#);
            assembler.handle(read(&Object::read(&json).expect("an object")), &mut shown);
        }
        let sampled = assembler.finish(&mut shown);
        assert_eq!(sampled.calls.len(), shown.len(), "each call is announced once");
        let line =
            |call: RawCall| format!("{} {} {}", call.id.unwrap_or("-".into()), call.name, call.arguments);
        sampled.calls.into_iter().map(line).collect()
    }

    #[test]
    fn fragments_with_an_index_interleave() {
        let both = calls(&[
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
            r#"[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\""}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"x\":"}},{"index":1,"function":{"arguments":":2}"}}]"#,
            r#"[{"index":0,"function":{"arguments":"1}"}}]"#,
        ]);
        assert_eq!(both, [r#"a f {"x":1}"#, r#"b g {"y":2}"#]);
    }

    #[test]
    fn fragments_without_an_index_continue_the_last_call() {
        let both = calls(&[
            r#"[{"id":"a","function":{"name":"f","arguments":""}}]"#,
            r#"[{"function":{"arguments":"{\"x\":"}}]"#,
            r#"[{"function":{"arguments":"1}"}}]"#,
            r#"[{"id":"b","function":{"name":"f","arguments":"{}"}}]"#,
        ]);
        assert_eq!(both, [r#"a f {"x":1}"#, "b f {}"]);
    }

    #[test]
    fn calls_that_share_an_index_are_told_apart() {
        let by_id = calls(&[
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]"#,
            r#"[{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]"#,
        ]);
        assert_eq!(by_id, ["a f {}", "b f {}"]);
        let by_whole_arguments = calls(&[
            r#"[{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}]"#,
            r#"[{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}]"#,
        ]);
        assert_eq!(by_whole_arguments, ["- f {}", "- f {}"]);
    }

    #[test]
    fn whole_calls_without_ids_or_indexes_are_told_apart() {
        let in_one_chunk =
            calls(&[r#"[{"function":{"name":"f"}},{"function":{"name":"g","arguments":{"x":1}}}]"#]);
        assert_eq!(in_one_chunk, ["- f ", r#"- g {"x":1}"#]);
        let in_two = calls(&[
            r#"[{"function":{"name":"f","arguments":"{}"}}]"#,
            r#"[{"function":{"name":"g"}}]"#,
            r#"[{"function":{"arguments":"{}"}}]"#,
        ]);
        assert_eq!(in_two, ["- f {}", "- g {}"]);
    }

    #[test]
    fn a_fresh_id_with_every_fragment_is_no_new_call() {
        let one = calls(&[
            r#"[{"index":0,"id":"a1","function":{"name":"f","arguments":"{"}}]"#,
            r#"[{"index":0,"id":"a2","function":{"name":null,"arguments":"}"}}]"#,
        ]);
        assert_eq!(one, ["a1 f {}"]);
    }

    #[test]
    fn names_in_pieces_or_repeated_are_one_name() {
        let pieces = calls(&[
            r#"[{"index":0,"id":"a","function":{"name":"get_"}}]"#,
            r#"[{"index":0,"function":{"name":"it"}}]"#,
            r#"[{"index":0,"function":{"arguments":"{}"}}]"#,
        ]);
        assert_eq!(pieces, ["a get_it {}"]);
        let repeated = calls(&[
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]"#,
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]"#,
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]"#,
        ]);
        assert_eq!(repeated, ["a f {}"]);
    }

    #[test]
    fn what_says_nothing_is_no_call() {
        assert!(calls(&["[{}]", "null", r#"[{"index":0,"function":{}}]"#]).is_empty());
    }
}
