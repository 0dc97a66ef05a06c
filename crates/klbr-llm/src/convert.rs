//! The core's request in the words of the chat completions API.
//!
//! Owns the wire form, which is private. Refuses to vary it: the same request gives the same bytes, system
//! prompt and tools go out as they came, and messages stand last, so that a longer transcript extends the
//! bytes of the shorter one.

use std::borrow::Cow;

use klbr_core::model::{AssistantMessage, Call, Failure, Message, Request, ToolChoice};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::learned::{LearnedModel, Part};
use crate::levels::{self, Fields, Metadata};
use crate::stream::object::Object;

/// How a request is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form {
    pub(crate) dialect: Dialect,
    /// The model's metadata, before what was learned of it.
    pub(crate) metadata: Metadata,
    pub(crate) learned: LearnedModel,
    /// Whether usage is asked for.
    pub(crate) stream_options: bool,
    /// Whether the effort stays away, because it has just been refused.
    pub(crate) without_effort: bool,
}

/// A request as it is sent, and which parts of it a server may refuse.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) body: Vec<u8>,
    pub(crate) parts: Vec<Part>,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(flatten)]
    effort: Fields,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: &'a RawValue,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Cow<'a, str>,
    },
    Assistant {
        content: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

/// Writes a request.
///
/// # Errors
///
/// Fails when the request's tools are no JSON array.
pub(crate) fn write(request: &Request, form: &Form) -> Result<Written, Failure> {
    let tools = read_tools(&request.tools)?;
    let limit = request.parameters.max_output_tokens;
    let (max_tokens, max_completion_tokens) =
        if form.learned.max_completion_tokens { (None, limit) } else { (limit, None) };
    let level = request.parameters.effort.as_deref().filter(|_| !form.without_effort);
    let metadata = form.learned.narrow(&form.metadata);
    let effort = level.map(|level| levels::request(&metadata, level)).unwrap_or_default();
    let required = request.parameters.tool_choice == ToolChoice::Required
        && !tools.is_empty()
        && !form.learned.no_required_calls;
    let messages = write_messages(request, form);
    let sends_reasoning = |message: &WireMessage<'_>| {
        matches!(message, WireMessage::Assistant { reasoning_content: Some(_), .. })
    };
    let parts = [
        (Part::StreamOptions, form.stream_options),
        (Part::Effort, effort != Fields::default()),
        (Part::TemplateKwargs, effort.chat_template_kwargs != levels::TemplateKwargs::default()),
        (Part::MaxTokens, max_tokens.is_some()),
        (Part::RequiredCalls, required),
        (Part::ReasoningBack, messages.iter().any(sends_reasoning)),
    ];
    let body = Body {
        model: &request.model,
        stream: true,
        stream_options: form.stream_options.then_some(StreamOptions { include_usage: true }),
        max_tokens,
        max_completion_tokens,
        effort,
        tools,
        tool_choice: required.then_some("required"),
        messages,
    };
    let body = serde_json::to_vec(&body).expect("strings, numbers and checked JSON can be written");
    let parts = parts.into_iter().filter_map(|(part, sent)| sent.then_some(part)).collect();
    Ok(Written { body, parts })
}

fn read_tools(tools: &str) -> Result<Vec<Tool<'_>>, Failure> {
    if tools.trim().is_empty() {
        return Ok(Vec::new());
    }
    let functions: Vec<&RawValue> = serde_json::from_str(tools).map_err(|error| Failure::Refused {
        status: None,
        message: format!("the request's tools are no JSON array: {error}"),
    })?;
    Ok(functions.into_iter().map(|function| Tool { r#type: "function", function }).collect())
}

fn write_messages<'a>(request: &'a Request, form: &Form) -> Vec<WireMessage<'a>> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(WireMessage::System { content: &request.system });
    }
    for message in &request.messages {
        match message {
            Message::User { text, starts_turn: _ } => push_user(&mut messages, text, form.dialect),
            Message::Assistant(assistant) => messages.push(write_assistant(assistant, form)),
            Message::Tool { call_id, text } => messages
                .push(WireMessage::Tool { tool_call_id: form.dialect.call_id(call_id), content: text }),
        }
    }
    messages
}

fn push_user<'a>(messages: &mut Vec<WireMessage<'a>>, text: &'a str, dialect: Dialect) {
    if dialect.alternates()
        && let Some(WireMessage::User { content }) = messages.last_mut()
    {
        let content = content.to_mut();
        content.push_str("\n\n");
        content.push_str(text);
        return;
    }
    if dialect == Dialect::Mistral && matches!(messages.last(), Some(WireMessage::Tool { .. })) {
        messages.push(WireMessage::Assistant {
            content: "(continuing)",
            reasoning_content: None,
            tool_calls: Vec::new(),
        });
    }
    messages.push(WireMessage::User { content: Cow::Borrowed(text) });
}

fn write_assistant<'a>(message: &'a AssistantMessage, form: &Form) -> WireMessage<'a> {
    let reasoning = message.reasoning.as_deref().filter(|reasoning| !reasoning.is_empty());
    WireMessage::Assistant {
        content: &message.text,
        reasoning_content: reasoning.filter(|_| !form.learned.no_reasoning_back),
        tool_calls: message.calls.iter().map(|call| write_call(call, form.dialect)).collect(),
    }
}

fn write_call(call: &Call, dialect: Dialect) -> WireCall<'_> {
    WireCall {
        id: dialect.call_id(&call.id),
        r#type: "function",
        function: WireFunction { name: &call.name, arguments: write_arguments(&call.arguments) },
    }
}

/// Arguments as every server's chat template can read them: an object. Others stand inside one, as written.
fn write_arguments(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    if Object::read(arguments).is_some() {
        return Cow::Borrowed(arguments);
    }
    Cow::Owned(serde_json::json!({ "invalid_arguments": arguments }).to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::{Expect, expect};
    use klbr_core::model::Parameters;

    use super::*;

    fn user(text: &str) -> Message {
        Message::User { text: text.into(), starts_turn: true }
    }

    fn assistant(text: &str, reasoning: Option<&str>, arguments: Option<&str>) -> Message {
        let call = |arguments: &str| Call { id: "c1".into(), name: "f".into(), arguments: arguments.into() };
        Message::Assistant(AssistantMessage {
            text: text.into(),
            reasoning: reasoning.map(Arc::from),
            calls: arguments.map(call).into_iter().collect(),
        })
    }

    fn result(text: &str) -> Message {
        Message::Tool { call_id: "c1".into(), text: text.into() }
    }

    fn request(messages: Vec<Message>) -> Request {
        Request {
            model: "m".into(),
            system: "be".into(),
            tools: r#"[{"name":"f",  "description":"d","parameters":{"z":1,"a":2}}]"#.into(),
            messages,
            parameters: Parameters::default(),
        }
    }

    fn text(request: &Request, form: &Form) -> String {
        String::from_utf8(write(request, form).unwrap().body).unwrap()
    }

    #[track_caller]
    fn check(request: &Request, form: &Form, expected: Expect) {
        expected.assert_eq(&text(request, form));
    }

    fn conversation() -> Vec<Message> {
        vec![user("hi"), assistant("", Some("hm"), Some("{\"x\": 1}")), result("ok"), user("more")]
    }

    #[test]
    fn a_request_is_written_with_its_own_bytes() {
        check(
            &request(conversation()),
            &Form { stream_options: true, ..Form::default() },
            expect![[
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"f",  "description":"d","parameters":{"z":1,"a":2}}}],"messages":[{"role":"system","content":"be"},{"role":"user","content":"hi"},{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]},{"role":"tool","tool_call_id":"c1","content":"ok"},{"role":"user","content":"more"}]}"#
            ]],
        );
    }

    #[test]
    fn a_longer_transcript_extends_the_bytes() {
        let form = Form { stream_options: true, ..Form::default() };
        let mut messages = conversation();
        let shorter = text(&request(messages.clone()), &form);
        messages.extend([assistant("done", None, None), user("again")]);
        let longer = text(&request(messages), &form);
        assert!(longer.starts_with(shorter.strip_suffix("]}").unwrap()));
    }

    #[test]
    fn parameters_are_sent_as_the_server_takes_them() {
        let mut request = request(vec![user("hi")]);
        request.system = "".into();
        request.parameters = Parameters {
            effort: Some("high".into()),
            max_output_tokens: Some(9),
            tool_choice: ToolChoice::Required,
        };
        check(
            &request,
            &Form::default(),
            expect![[
                r#"{"model":"m","stream":true,"max_tokens":9,"reasoning_effort":"high","chat_template_kwargs":{"reasoning_effort":"high"},"tools":[{"type":"function","function":{"name":"f",  "description":"d","parameters":{"z":1,"a":2}}}],"tool_choice":"required","messages":[{"role":"user","content":"hi"}]}"#
            ]],
        );
        request.tools = "[]".into();
        let learned = LearnedModel {
            efforts: Some(vec!["low".into()]),
            no_template_kwargs: true,
            max_completion_tokens: true,
            ..LearnedModel::default()
        };
        check(
            &request,
            &Form { learned, ..Form::default() },
            expect![[
                r#"{"model":"m","stream":true,"max_completion_tokens":9,"reasoning_effort":"low","messages":[{"role":"user","content":"hi"}]}"#
            ]],
        );
    }

    #[test]
    fn arguments_are_always_an_object() {
        let written = |arguments| write_arguments(arguments).into_owned();
        assert_eq!(written(""), "{}");
        assert_eq!(written("{\"a\":1}"), "{\"a\":1}");
        assert_eq!(written("{\"a\":"), r#"{"invalid_arguments":"{\"a\":"}"#);
        assert_eq!(written("[1]"), r#"{"invalid_arguments":"[1]"}"#);
    }

    #[test]
    fn dialects_that_need_it_alternate() {
        let mut messages = conversation();
        messages.push(user("and more"));
        let mut request = request(messages);
        request.tools = "".into();
        let form = |dialect| Form { dialect, ..Form::default() };
        check(
            &request,
            &form(Dialect::Mistral),
            expect![[
                r#"{"model":"m","stream":true,"messages":[{"role":"system","content":"be"},{"role":"user","content":"hi"},{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[{"id":"7Ppnqo8gx","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]},{"role":"tool","tool_call_id":"7Ppnqo8gx","content":"ok"},{"role":"assistant","content":"(continuing)"},{"role":"user","content":"more\n\nand more"}]}"#
            ]],
        );
        assert!(text(&request, &form(Dialect::Alternating)).contains(r#""content":"more\n\nand more"}]"#));
        assert!(text(&request, &form(Dialect::OpenAi)).contains(r#""content":"more"},{"#));
    }

    #[test]
    fn tools_that_are_no_array_are_refused_here() {
        let mut request = request(vec![user("hi")]);
        request.tools = "{".into();
        assert!(matches!(write(&request, &Form::default()), Err(Failure::Refused { status: None, .. })));
    }
}
