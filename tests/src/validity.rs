//! Whether a captured chat completion request is one that any provider would take.
//!
//! Owns the rules of a valid transcript: each call has its one result, right after it; ids are unique; roles are legal
//! and alternate where a dialect demands it; arguments are JSON; nothing ends with an assistant message. Refuses to
//! compare requests with each other: that is [`crate::prefix`].

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What a dialect demands beyond what every provider does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whether user and assistant take turns.
    pub alternation: Alternation,
    /// What a call's arguments are.
    pub arguments: Arguments,
    /// What a call's id looks like.
    pub call_ids: CallIds,
    /// Whether the model takes images.
    pub images: Images,
}

/// Whether user and assistant take turns, as the templates of Mistral and Gemma demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alternation {
    /// Several user messages may follow each other.
    #[default]
    Free,
    /// The first message is the user's; between two of them stands an assistant message without calls.
    Demanded,
}

/// What the text of a call's arguments has to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arguments {
    /// A JSON object.
    #[default]
    Object,
    /// Whatever the model wrote.
    Any,
}

/// What a call's id looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallIds {
    /// Any text that is not empty.
    #[default]
    Any,
    /// Nine letters or digits, as Mistral demands.
    NineAlphanumerics,
}

/// Whether the model takes images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Images {
    /// Text alone.
    #[default]
    Refused,
    /// Images in user messages.
    Taken,
}

/// One way in which a request is invalid. Indices are those of `messages`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The body is not a JSON object.
    #[error("the body is not a JSON object: {0}")]
    NotJson(String),
    /// A member that every request has is missing or has another shape.
    #[error("`{member}` is not {expected}")]
    Shape {
        /// The member's path.
        member: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// A role that no provider knows.
    #[error("message {at} has the role {role:?}")]
    Role {
        /// Index of the message.
        at: usize,
        /// Its role.
        role: String,
    },
    /// A system message that is not the first message.
    #[error("message {at} is a system message, and only the first may be one")]
    LateSystem {
        /// Index of the message.
        at: usize,
    },
    /// An assistant message with neither text nor calls.
    #[error("message {at} is an assistant message with neither text nor calls")]
    SaysNothing {
        /// Index of the message.
        at: usize,
    },
    /// An image for a model that takes none.
    #[error("message {at} carries an image, and the model takes none")]
    Image {
        /// Index of the message.
        at: usize,
    },
    /// An id that is empty or not in the dialect's form.
    #[error("message {at} has a call with the id {id:?}, which is not in the dialect's form")]
    CallId {
        /// Index of the assistant message.
        at: usize,
        /// The id.
        id: String,
    },
    /// An id that an earlier call has.
    #[error("message {at} repeats the call id {id:?}")]
    CallIdRepeated {
        /// Index of the assistant message.
        at: usize,
        /// The id.
        id: String,
    },
    /// Arguments that are not the text of a JSON object.
    #[error("message {at}: the arguments of call {id:?} are not a JSON object: {reason}")]
    ArgumentsNotObject {
        /// Index of the assistant message.
        at: usize,
        /// The call's id.
        id: String,
        /// What the parser says.
        reason: String,
    },
    /// A call whose result is not among the tool messages that follow its message at once.
    #[error("message {at}: call {id:?} has no result before message {before}")]
    ResultMissing {
        /// Index of the assistant message.
        at: usize,
        /// The call's id.
        id: String,
        /// Index of the first message that is no result; the count of messages at the end.
        before: usize,
    },
    /// A second result of the same call.
    #[error("message {at} is a second result of call {id:?}")]
    ResultRepeated {
        /// Index of the tool message.
        at: usize,
        /// The call's id.
        id: String,
    },
    /// A result that no call of the assistant message before it asked for.
    #[error("message {at} is a result of {id:?}, which the assistant message before it did not call")]
    ResultUnasked {
        /// Index of the tool message.
        at: usize,
        /// The id that it names.
        id: String,
    },
    /// Two messages in an order that an alternating dialect refuses.
    #[error("message {at} ({role}) cannot follow {after} where roles alternate")]
    NotAlternating {
        /// Index of the later message.
        at: usize,
        /// Its role.
        role: String,
        /// The role before it, or `nothing`.
        after: String,
    },
    /// The last message is an assistant message.
    #[error("the request ends with an assistant message")]
    EndsWithAssistant,
    /// Two tools of the same name.
    #[error("the tool list names {0:?} twice")]
    ToolRepeated(String),
}

/// Checks a captured body; an empty list means that it is valid.
pub fn violations(body: &[u8], rules: Rules) -> Vec<Violation> {
    let request = match serde_json::from_slice::<Map<String, Value>>(body) {
        Ok(request) => request,
        Err(error) => return vec![Violation::NotJson(error.to_string())],
    };
    let mut check = Check { rules, found: Vec::new(), ids: BTreeSet::new() };
    if !request.get("model").is_some_and(Value::is_string) {
        check.shape("model", "a string");
    }
    check.tools(request.get("tools"));
    match request.get("messages").and_then(Value::as_array) {
        Some(messages) if !messages.is_empty() => check.messages(messages),
        _ => check.shape("messages", "an array with at least one message"),
    }
    check.found
}

/// Checks a captured body.
///
/// # Errors
/// All violations in one text, one a line.
pub fn check(body: &[u8], rules: Rules) -> Result<(), String> {
    let found = violations(body, rules);
    if found.is_empty() {
        return Ok(());
    }
    Err(found.iter().map(Violation::to_string).collect::<Vec<_>>().join("\n"))
}

struct Check {
    rules: Rules,
    found: Vec<Violation>,
    ids: BTreeSet<String>,
}

/// The calls of the last assistant message that still wait for a result.
#[derive(Default)]
struct Open {
    at: usize,
    unanswered: Vec<String>,
    answered: Vec<String>,
}

impl Check {
    fn shape(&mut self, member: impl Into<String>, expected: &'static str) {
        self.found.push(Violation::Shape { member: member.into(), expected });
    }

    fn tools(&mut self, tools: Option<&Value>) {
        let Some(tools) = tools else { return };
        let Some(tools) = tools.as_array().filter(|tools| !tools.is_empty()) else {
            return self.shape("tools", "an array with at least one tool");
        };
        let mut names = BTreeSet::new();
        for (index, tool) in tools.iter().enumerate() {
            match tool.pointer("/function/name").and_then(Value::as_str).filter(|name| !name.is_empty()) {
                None => self.shape(format!("tools[{index}].function.name"), "a name"),
                Some(name) if !names.insert(name) => self.found.push(Violation::ToolRepeated(name.into())),
                Some(_) => {}
            }
        }
    }

    fn messages(&mut self, messages: &[Value]) {
        let mut open = Open::default();
        for (at, message) in messages.iter().enumerate() {
            let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
            if role != "tool" {
                self.close(&mut open, at);
            }
            match role {
                "system" | "developer" if at == 0 => self.content(at, message),
                "system" | "developer" => self.found.push(Violation::LateSystem { at }),
                "user" => self.content(at, message),
                "assistant" => open = self.assistant(at, message),
                "tool" => self.result(at, message, &mut open),
                other => self.found.push(Violation::Role { at, role: other.into() }),
            }
        }
        self.close(&mut open, messages.len());
        if messages.last().is_some_and(|message| message["role"] == "assistant") {
            self.found.push(Violation::EndsWithAssistant);
        }
        if self.rules.alternation == Alternation::Demanded {
            self.alternation(messages);
        }
    }

    fn content(&mut self, at: usize, message: &Value) {
        match &message["content"] {
            Value::String(_) => {}
            Value::Array(parts) if !parts.is_empty() => {
                for (index, part) in parts.iter().enumerate() {
                    match part["type"].as_str() {
                        Some("text") if part["text"].is_string() => {}
                        Some("image_url" | "input_image") if self.rules.images == Images::Taken => {}
                        Some("image_url" | "input_image") => self.found.push(Violation::Image { at }),
                        _ => self.shape(format!("messages[{at}].content[{index}]"), "a part that is known"),
                    }
                }
            }
            _ => self.shape(format!("messages[{at}].content"), "text or parts"),
        }
    }

    fn assistant(&mut self, at: usize, message: &Value) -> Open {
        let mut open = Open { at, ..Open::default() };
        let calls = message.get("tool_calls");
        let has_text = message["content"].as_str().is_some_and(|text| !text.is_empty());
        match calls {
            None if !has_text => self.found.push(Violation::SaysNothing { at }),
            None => self.content(at, message),
            Some(_) if !message["content"].is_null() => self.content(at, message),
            Some(_) => {}
        }
        let Some(calls) = calls else { return open };
        let Some(calls) = calls.as_array().filter(|calls| !calls.is_empty()) else {
            self.shape(format!("messages[{at}].tool_calls"), "an array with at least one call");
            return open;
        };
        for (index, call) in calls.iter().enumerate() {
            if let Some(id) = self.call(at, index, call) {
                open.unanswered.push(id);
            }
        }
        open
    }

    /// Checks one call; the id that its result has to name, if it has one.
    fn call(&mut self, at: usize, index: usize, call: &Value) -> Option<String> {
        let member = |name: &str| format!("messages[{at}].tool_calls[{index}].{name}");
        if call["type"] != "function" {
            self.shape(member("type"), "\"function\"");
        }
        if call["function"]["name"].as_str().is_none_or(str::is_empty) {
            self.shape(member("function.name"), "a name");
        }
        let Some(id) = call["id"].as_str() else {
            self.shape(member("id"), "a string");
            return None;
        };
        let well_formed = match self.rules.call_ids {
            CallIds::Any => !id.is_empty(),
            CallIds::NineAlphanumerics => {
                id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
            }
        };
        if !well_formed {
            self.found.push(Violation::CallId { at, id: id.into() });
        }
        if !self.ids.insert(id.into()) {
            self.found.push(Violation::CallIdRepeated { at, id: id.into() });
        }
        match (&call["function"]["arguments"], self.rules.arguments) {
            (Value::String(text), Arguments::Object) => {
                if let Err(error) = serde_json::from_str::<Map<String, Value>>(text) {
                    let reason = error.to_string();
                    self.found.push(Violation::ArgumentsNotObject { at, id: id.into(), reason });
                }
            }
            (Value::String(_), Arguments::Any) => {}
            _ => self.shape(member("function.arguments"), "a string"),
        }
        Some(id.into())
    }

    fn result(&mut self, at: usize, message: &Value, open: &mut Open) {
        self.content(at, message);
        let Some(id) = message["tool_call_id"].as_str() else {
            return self.shape(format!("messages[{at}].tool_call_id"), "a string");
        };
        if let Some(position) = open.unanswered.iter().position(|waiting| waiting == id) {
            open.answered.push(open.unanswered.remove(position));
        } else if open.answered.iter().any(|answered| answered == id) {
            self.found.push(Violation::ResultRepeated { at, id: id.into() });
        } else {
            self.found.push(Violation::ResultUnasked { at, id: id.into() });
        }
    }

    fn close(&mut self, open: &mut Open, before: usize) {
        let Open { at, unanswered, .. } = std::mem::take(open);
        self.found.extend(unanswered.into_iter().map(|id| Violation::ResultMissing { at, id, before }));
    }

    fn alternation(&mut self, messages: &[Value]) {
        let mut before = "nothing";
        for (at, message) in messages.iter().enumerate() {
            let role = match message["role"].as_str().unwrap_or_default() {
                "assistant" if message.get("tool_calls").is_some() => "assistant with calls",
                role => role,
            };
            let legal = match role {
                "user" => matches!(before, "nothing" | "assistant"),
                "assistant" | "assistant with calls" => matches!(before, "user" | "tool"),
                "tool" => matches!(before, "assistant with calls" | "tool"),
                _ => continue,
            };
            if !legal {
                self.found.push(Violation::NotAlternating { at, role: role.into(), after: before.into() });
            }
            before = role;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(id: &str, arguments: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}})
    }

    fn asks(calls: &[Value]) -> Value {
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "ok"})
    }

    fn user() -> Value {
        json!({"role": "user", "content": "u"})
    }

    fn says() -> Value {
        json!({"role": "assistant", "content": "a"})
    }

    fn found(messages: Vec<Value>, rules: Rules) -> Vec<String> {
        let body = json!({"model": "m", "messages": messages}).to_string();
        violations(body.as_bytes(), rules).iter().map(Violation::to_string).collect()
    }

    #[track_caller]
    fn refused(messages: Vec<Value>, reason: &str) {
        assert_eq!(found(messages, Rules::default()), [reason]);
    }

    #[test]
    fn a_whole_conversation_is_valid() {
        let system = json!({"role": "system", "content": "s"});
        let calls = asks(&[call("a", "{}"), call("b", "{\"x\":1}")]);
        let messages = vec![
            system,
            user(),
            calls,
            result("b"),
            result("a"),
            says(),
            user(),
            asks(&[call("c", "{}")]),
            result("c"),
        ];
        let strict = Rules { alternation: Alternation::Demanded, ..Rules::default() };
        assert!(found(messages, strict).is_empty());
    }

    #[test]
    fn a_call_without_a_result_is_refused() {
        refused(
            vec![user(), asks(&[call("a", "{}")]), user()],
            "message 1: call \"a\" has no result before message 2",
        );
        let end = asks(&[call("a", "{}"), call("b", "{}")]);
        refused(vec![user(), end, result("a")], "message 1: call \"b\" has no result before message 3");
    }

    #[test]
    fn a_second_result_is_refused() {
        refused(
            vec![user(), asks(&[call("a", "{}")]), result("a"), result("a")],
            "message 3 is a second result of call \"a\"",
        );
    }

    #[test]
    fn a_result_of_nothing_is_refused() {
        let reason = "message 1 is a result of \"a\", which the assistant message before it did not call";
        refused(vec![user(), result("a")], reason);
    }

    #[test]
    fn a_result_that_does_not_follow_its_message_at_once_is_missing_and_unasked() {
        assert_eq!(
            found(vec![user(), asks(&[call("a", "{}")]), user(), result("a")], Rules::default()),
            [
                "message 1: call \"a\" has no result before message 2",
                "message 3 is a result of \"a\", which the assistant message before it did not call"
            ]
        );
    }

    #[test]
    fn ids_are_unique_not_empty_and_in_the_dialects_form() {
        let twice =
            vec![user(), asks(&[call("a", "{}")]), result("a"), asks(&[call("a", "{}")]), result("a")];
        refused(twice, "message 3 repeats the call id \"a\"");
        let reason = "message 1 has a call with the id \"\", which is not in the dialect's form";
        refused(vec![user(), asks(&[call("", "{}")]), result("")], reason);
        let nine = Rules { call_ids: CallIds::NineAlphanumerics, ..Rules::default() };
        let with = |id| found(vec![user(), asks(&[call(id, "{}")]), result(id)], nine).len();
        assert_eq!((with("abcDEF123"), with("call_abcd")), (0, 1));
    }

    #[test]
    fn roles_are_legal_and_the_system_message_is_first() {
        refused(vec![json!({"role": "narrator", "content": "x"})], "message 0 has the role \"narrator\"");
        refused(
            vec![user(), json!({"role": "system", "content": "x"}), user()],
            "message 1 is a system message, and only the first may be one",
        );
    }

    #[test]
    fn roles_alternate_only_where_demanded() {
        let strict = Rules { alternation: Alternation::Demanded, ..Rules::default() };
        assert!(found(vec![user(), user()], Rules::default()).is_empty());
        assert_eq!(
            found(vec![user(), user()], strict),
            ["message 1 (user) cannot follow user where roles alternate"]
        );
        let after_tool = vec![user(), asks(&[call("a", "{}")]), result("a"), user()];
        assert_eq!(found(after_tool, strict), ["message 3 (user) cannot follow tool where roles alternate"]);
        assert_eq!(
            found(vec![says(), user()], strict),
            ["message 0 (assistant) cannot follow nothing where roles alternate"]
        );
    }

    #[test]
    fn nothing_ends_with_an_assistant_message_or_says_nothing() {
        refused(vec![user(), says()], "the request ends with an assistant message");
        refused(
            vec![user(), json!({"role": "assistant", "content": ""}), user()],
            "message 1 is an assistant message with neither text nor calls",
        );
    }

    #[test]
    fn arguments_are_a_json_object_in_a_string() {
        let broken = vec![user(), asks(&[call("a", "{\"x\":")]), result("a")];
        let reason = "message 1: the arguments of call \"a\" are not a JSON object: EOF while parsing a value at line 1 column 5";
        assert_eq!(found(broken.clone(), Rules::default()), [reason]);
        assert!(found(broken, Rules { arguments: Arguments::Any, ..Rules::default() }).is_empty());
        let mut object = call("a", "");
        object["function"]["arguments"] = json!({});
        refused(
            vec![user(), asks(&[object]), result("a")],
            "`messages[1].tool_calls[0].function.arguments` is not a string",
        );
    }

    #[test]
    fn shapes_are_refused_by_their_path() {
        refused(vec![], "`messages` is not an array with at least one message");
        refused(vec![json!({"role": "user"})], "`messages[0].content` is not text or parts");
        refused(
            vec![user(), asks(&[]), user()],
            "`messages[1].tool_calls` is not an array with at least one call",
        );
        let image =
            json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]});
        refused(vec![image.clone()], "message 0 carries an image, and the model takes none");
        assert!(found(vec![image], Rules { images: Images::Taken, ..Rules::default() }).is_empty());
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert_eq!(
            check(b"[]", Rules::default()).unwrap_err(),
            "the body is not a JSON object: invalid type: sequence, expected a map at line 1 column 0"
        );
        let tool = json!({"type": "function", "function": {"name": "f"}});
        let body = json!({"messages": [user()], "tools": [tool, tool]}).to_string();
        assert_eq!(
            check(body.as_bytes(), Rules::default()).unwrap_err(),
            "`model` is not a string\nthe tool list names \"f\" twice"
        );
    }
}
