//! What changes something: messages, commands, events. Each is answered once it is durable.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{Path, State};
use klbr_core::attention::Mark;
use klbr_core::event::{Amends, Body as EventBody, Control, NewEvent, Source, SourceKind};
use klbr_core::ids::ActionId;
use klbr_core::runtime::AgentHandle;
use klbr_core::runtime::local::LOCAL;

use super::Shared;
use super::error::ApiError;
use super::extract::{Body, Caller, Living};
use crate::api::{Accepted, Amended, ExternalEvent, Message, Resolution, Soul};
use crate::metrics::Metrics;

pub(super) type Admitted = Result<Json<Accepted>, ApiError>;

pub(super) async fn message(
    State(shared): State<Arc<Shared>>,
    Living(agent): Living,
    caller: Caller,
    Body(Message { text }): Body<Message>,
) -> Admitted {
    say(&agent, &shared.hosted.metrics, caller, &text).await.map(Json)
}

/// Says something to the agent as its operator.
pub(super) async fn say(
    agent: &AgentHandle,
    metrics: &Metrics,
    caller: Caller,
    text: &str,
) -> Result<Accepted, ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::bad_request("empty_message", "the text is empty").hint("say something"));
    }
    let event = NewEvent::operator(caller.key.as_str(), text);
    admit(agent, metrics, caller, event).await
}

/// Gives a command. A command and a message may have one key: they are told apart by the verb.
pub(super) async fn command(
    agent: &AgentHandle,
    metrics: &Metrics,
    caller: Caller,
    control: Control,
) -> Result<Accepted, ApiError> {
    let event = NewEvent::control(format!("{}:{}", control.verb(), caller.key), control);
    admit(agent, metrics, caller, event).await
}

async fn admit(
    agent: &AgentHandle,
    metrics: &Metrics,
    caller: Caller,
    event: NewEvent,
) -> Result<Accepted, ApiError> {
    let arrived = Instant::now();
    let admission = agent.admit(event.by(caller.via)).await?;
    metrics.admitted(arrived.elapsed());
    Ok(Accepted { event: admission.event, repeated: admission.repeated, key: caller.key })
}

macro_rules! commands {
    ($($name:ident => $control:ident,)*) => {
        $(pub(super) async fn $name(
            State(shared): State<Arc<Shared>>,
            Living(agent): Living,
            caller: Caller,
        ) -> Admitted {
            command(&agent, &shared.hosted.metrics, caller, Control::$control).await.map(Json)
        })*
    };
}

commands! {
    interrupt => Interrupt,
    stop => Stop,
    reset => Reset,
    compact => Compact,
}

pub(super) async fn soul(
    State(shared): State<Arc<Shared>>,
    Living(agent): Living,
    caller: Caller,
    Body(Soul { text }): Body<Soul>,
) -> Admitted {
    if text.trim().is_empty() {
        return Err(ApiError::bad_request("empty_soul", "the text is empty").hint("send the whole new soul"));
    }
    let control = Control::Soul { text: text.into() };
    command(&agent, &shared.hosted.metrics, caller, control).await.map(Json)
}

pub(super) async fn resolve(
    State(shared): State<Arc<Shared>>,
    Living(agent): Living,
    Path((_, action)): Path<(String, String)>,
    caller: Caller,
    Body(Resolution { allow }): Body<Resolution>,
) -> Admitted {
    let action: ActionId =
        action.parse().map_err(|error| ApiError::bad_request("invalid_action", format!("{error}")))?;
    let held = agent.status().await?.open_effects.into_iter().filter(|effect| effect.held);
    let held: Vec<String> = held.map(|effect| effect.action.to_string()).collect();
    if !held.contains(&action.to_string()) {
        let error = ApiError::new(
            axum::http::StatusCode::CONFLICT,
            "not_held",
            format!("the action {action} does not wait for a decision"),
        );
        return Err(error.hint(match held.is_empty() {
            true => "no action does".to_owned(),
            false => format!("these do: {}", held.join(", ")),
        }));
    }
    command(&agent, &shared.hosted.metrics, caller, Control::Resolve { action, allow }).await.map(Json)
}

pub(super) async fn mark(
    State(shared): State<Arc<Shared>>,
    Living(agent): Living,
    caller: Caller,
    Body(mark): Body<Mark>,
) -> Admitted {
    let item = super::read::find(&agent, &mark.item).await?.item;
    command(&agent, &shared.hosted.metrics, caller, Control::Mark(Box::new(Mark { item, ..mark })))
        .await
        .map(Json)
}

pub(super) async fn external(
    State(shared): State<Arc<Shared>>,
    Living(agent): Living,
    caller: Caller,
    Body(event): Body<ExternalEvent>,
) -> Admitted {
    let source = event.source;
    if source.kind == SourceKind::Operator || source.instance == LOCAL {
        return Err(ApiError::bad_request(
            "invalid_source",
            "the operator's words come as messages, not as events",
        )
        .hint(format!("name another kind than operator, and another instance than {LOCAL}")));
    }
    let Caller { key, via } = caller;
    let caller = Caller { key: event.external_id.unwrap_or(key), via };
    let body = EventBody { author: event.author, text: event.text.into(), attributes: event.attributes };
    let mut admitted = NewEvent::external(
        Source::new(source.kind, source.instance),
        caller.key.as_str(),
        event.priority,
        body,
    );
    if let Some(conversation) = event.conversation {
        admitted = admitted.in_conversation(conversation);
    }
    admitted.attention = event.attention;
    admitted.amends = event.amends.map(|Amended { of, change }| Amends { of, change });
    admit(&agent, &shared.hosted.metrics, caller, admitted).await.map(Json)
}
