# Generated from the Rust types by `cargo run -p klbr-pyhost --bin generate-types`. Do not edit.
"""The questions that slots are asked, and the answers' types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Bucket = Literal["dm", "mention"]
"""Which kind of address made an attention item (`B-ATT-1`)."""

EventId = int
"""One admitted event."""

NudgeKind = Literal["delivery", "silence", "idle", "wrap_up", "continue"]
"""A message that the harness itself makes, marked as such."""

Priority = Literal["ambient", "directed", "operator", "control"]
"""How urgent an event is. There is no default: every admission names one."""

SourceKind = Literal["operator", "channel", "timer", "job", "team", "system"]
"""What sort of place an event comes from. Only `Operator` is trusted."""

TurnId = int
"""One turn."""


@dataclass(frozen=True, slots=True)
class Allow:
    """It may run."""


@dataclass(frozen=True, slots=True)
class Deny:
    """It must not run."""

    reason: str
    """Why, for the model and the operator."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The operator decides."""

    reason: str
    """Why, for the model and the operator."""

Verdict = Allow | Deny | Hold
"""A judgement over one action."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event that the next frame could show."""

    event: EventId
    """The event. What amends it is shown with it."""

    kind: SourceKind
    """The kind of its source."""

    instance: str
    """The source's instance name."""

    priority: Priority
    """How urgent it is."""

    waited_ms: int
    """How long it has waited, in milliseconds."""

    bytes: int
    """The size of its text in bytes."""

    conversation: str | None = None
    """The alias of its conversation."""


@dataclass(frozen=True, slots=True)
class Review:
    """An action that is judged, frozen: what is decided on is what runs."""

    action: str
    """The action."""

    name: str
    """Its name in the registry."""

    arguments: str
    """Its arguments as a JSON object."""

    hash: str
    """SHA-256 over name and arguments, in hex."""


@dataclass(frozen=True, slots=True)
class EventPriority:
    """How urgent an admitted event is, before it is shown. Never asked of Operator or Control."""

    event: EventId
    """The event."""

    kind: SourceKind
    """The kind of its source."""

    instance: str
    """The source's instance name."""

    priority: Priority
    """What its adapter said."""


@dataclass(frozen=True, slots=True)
class EventAccept:
    """Whether an admitted event is kept at all. Never asked of Operator or Control."""

    event: EventId
    """The event."""

    kind: SourceKind
    """The kind of its source."""

    instance: str
    """The source's instance name."""

    external_id: str
    """The happening's name at its source."""

    priority: Priority
    """What its adapter said."""

    bytes: int
    """The size of its text in bytes."""

    conversation: str | None = None
    """The channel's own id of the place where it was said."""


@dataclass(frozen=True, slots=True)
class AttentionWake:
    """Whether a batch of ambient events wakes the agent."""

    waiting: int
    """How many ambient events wait."""

    configured: bool
    """Whether one of them comes from a place whose chatter wakes the agent."""


@dataclass(frozen=True, slots=True)
class AttentionBatchDelay:
    """How long ambient events are gathered before that question."""

    waiting: int
    """How many ambient events wait."""

    configured_ms: int
    """The configured delay in milliseconds."""


@dataclass(frozen=True, slots=True)
class AttentionAge:
    """Whether an attention item that was shown long enough stops waiting for a decision."""

    item: str
    """The message's name at its source, such as `msg:123`."""

    instance: str
    """The source's instance name."""

    bucket: Bucket
    """How it addresses the agent."""

    shown_ms: int
    """How long ago it was first shown, in milliseconds."""


@dataclass(frozen=True, slots=True)
class FrameRender:
    """How a frame reads."""

    text: str
    """The frame's blocks, as the built-in rendering has them."""


@dataclass(frozen=True, slots=True)
class ContextBlocks:
    """What a new prefix says."""

    text: str
    """The system prompt: the soul, how to live here, and what is pinned."""


@dataclass(frozen=True, slots=True)
class ContextSelect:
    """Which of the events that the next frame could show it shows; the rest waits."""

    events: list[Candidate]
    """What the built-in choice takes, in the order in which it is shown."""


@dataclass(frozen=True, slots=True)
class TurnIdle:
    """When an agent that yielded without a wait is woken."""

    yields: int
    """How many turns in a row ended without a wait and without anything happening since."""


@dataclass(frozen=True, slots=True)
class TurnNudge:
    """What a nudge says, or that it is not made."""

    kind: NudgeKind
    """Which one."""

    text: str
    """What the built-in nudge would say."""


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How many steps a turn that has reached its limit may have."""

    turn: TurnId
    """The turn."""

    steps: int
    """The steps that it has had."""

    limit: int
    """The limit that it has reached."""


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """Which model and effort a turn uses."""

    turn: TurnId
    """The turn."""

    model: str
    """The configured model."""

    effort: str | None = None
    """The configured effort."""


@dataclass(frozen=True, slots=True)
class ActionReview(Review):
    """Whether an action that speaks to nobody may run. Required when bound."""


@dataclass(frozen=True, slots=True)
class DeliveryReview(Review):
    """Whether a delivery may be made. Required when bound."""


@dataclass(frozen=True, slots=True)
class DeliveryFormat(Review):
    """How a delivery is worded: its arguments, rewritten."""


@dataclass(frozen=True, slots=True)
class DeliveryTarget:
    """Where a delivery of a turn goes that names no destination."""

    conversations: list[str]
    """The aliases of the conversations that the frame shows."""

    target: str | None = None
    """The built-in target: the only one of them, if there is but one."""


@dataclass(frozen=True, slots=True)
class ResultShape:
    """How an action's result is worded when it is inserted. The whole text is kept beside it."""

    action: str
    """The action."""

    name: str
    """Its name in the registry."""

    text: str
    """What its executor told."""


@dataclass(frozen=True, slots=True)
class CompactWhen:
    """Whether the conversation is summarised now."""

    used: int
    """The estimated tokens of the next request."""

    threshold: int
    """The tokens at which the built-in policy says yes."""


@dataclass(frozen=True, slots=True)
class CompactPrompt:
    """What the request for a summary says."""

    text: str
    """What the built-in request says."""


@dataclass(frozen=True, slots=True)
class CompactKeep:
    """How many of the newest turns stay word for word behind a summary."""

    messages: int
    """The messages that a summary could stand for."""

    turns: int
    """The newest turns among them that could stay."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A delay."""

    millis: int
    """In milliseconds."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A model and an effort."""

    model: str
    """The model's name at its provider."""

    effort: str | None = None
    """The effort level."""

Question = (
    EventPriority
    | EventAccept
    | AttentionWake
    | AttentionBatchDelay
    | AttentionAge
    | FrameRender
    | ContextBlocks
    | ContextSelect
    | TurnIdle
    | TurnNudge
    | TurnLimits
    | ModelPlan
    | ActionReview
    | DeliveryReview
    | DeliveryFormat
    | DeliveryTarget
    | ResultShape
    | CompactWhen
    | CompactPrompt
    | CompactKeep
)

QUESTIONS: dict[str, Any] = {
    "event.priority": EventPriority,
    "event.accept": EventAccept,
    "attention.wake": AttentionWake,
    "attention.batch_delay": AttentionBatchDelay,
    "attention.age": AttentionAge,
    "frame.render": FrameRender,
    "context.blocks": ContextBlocks,
    "context.select": ContextSelect,
    "turn.idle": TurnIdle,
    "turn.nudge": TurnNudge,
    "turn.limits": TurnLimits,
    "model.plan": ModelPlan,
    "action.review": ActionReview,
    "delivery.review": DeliveryReview,
    "delivery.format": DeliveryFormat,
    "delivery.target": DeliveryTarget,
    "result.shape": ResultShape,
    "compact.when": CompactWhen,
    "compact.prompt": CompactPrompt,
    "compact.keep": CompactKeep,
}

ITEMS: dict[str, dict[str, Any]] = {
    "context.select": {"events": Candidate},
}

ANSWERS = {
    "event.priority": "priority",
    "event.accept": "yes",
    "attention.wake": "yes",
    "attention.batch_delay": "delay",
    "attention.age": "yes",
    "frame.render": "text",
    "turn.idle": "delay",
    "turn.nudge": "text",
    "turn.limits": "count",
    "context.blocks": "text",
    "context.select": "events",
    "model.plan": "plan",
    "action.review": "verdict",
    "delivery.review": "verdict",
    "delivery.format": "text",
    "delivery.target": "text",
    "result.shape": "text",
    "compact.when": "yes",
    "compact.prompt": "text",
    "compact.keep": "count",
}

__all__ = [
    "ActionReview",
    "Allow",
    "AttentionAge",
    "AttentionBatchDelay",
    "AttentionWake",
    "Bucket",
    "Candidate",
    "CompactKeep",
    "CompactPrompt",
    "CompactWhen",
    "ContextBlocks",
    "ContextSelect",
    "Delay",
    "DeliveryFormat",
    "DeliveryReview",
    "DeliveryTarget",
    "Deny",
    "EventAccept",
    "EventId",
    "EventPriority",
    "FrameRender",
    "Hold",
    "ModelPlan",
    "NudgeKind",
    "Plan",
    "Priority",
    "Question",
    "ResultShape",
    "Review",
    "SourceKind",
    "TurnId",
    "TurnIdle",
    "TurnLimits",
    "TurnNudge",
    "Verdict",
]


def parse_question(body: dict[str, Any]) -> Question:
    """The question that the host sent."""
    kind = QUESTIONS[body["slot"]]
    values = {name: body[name] for name in kind.__match_args__ if name in body}
    for name, item in ITEMS.get(body["slot"], {}).items():
        values[name] = [item(**value) for value in values[name]]
    question: Question = kind(**values)
    return question
