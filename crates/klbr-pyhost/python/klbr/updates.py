# Generated from the Rust types by `python crates/klbr-py/scripts/generate_updates.py`. Do not edit.
"""What happens to an agent: a class for each kind of update.

An update with an `id` is durable and comes in order; one without is a live piece of a reply, which a durable one replaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

Epoch = int
"""One activation of policy and instructions."""

EventId = int
"""One admitted event."""

FrameId = int
"""One frame."""

Generation = int
"""One made prefix: a system prompt and a tool list."""

Seq = int
"""The position of a record in its agent's history; the first is 1."""

TurnId = int
"""One turn."""

BreakCause = Literal["first", "compaction", "reset", "instructions", "model", "effort", "tools", "refused"]
"""Why a prefix is made: the closed list of `C-PFX-1`."""


class Cause(TypedDict):
    """Why an epoch came."""

    cause: Literal["first", "activated", "soul", "rolled_back", "failed"]
    to: NotRequired[Epoch]
    epoch: NotRequired[Epoch]
    reason: NotRequired[str]


class Decider(TypedDict):
    """Who changed an item's status (`B-ATT-2`)."""

    by: Literal["model", "receipt", "ageing", "policy", "operator"]
    action: NotRequired[str]


class End(TypedDict):
    """How an effect ended. A receipt cannot exist without an intent: only the core makes one into a record."""

    end: Literal["confirmed", "failed", "unknown"]
    why: NotRequired[FailureKind]

FailureKind = Literal["invalid", "denied", "cancelled", "timed_out", "stale", "not_run", "refused"]
"""Why an effect failed."""

NudgeKind = Literal["delivery", "silence", "idle", "wrap_up", "continue"]
"""A message that the harness itself makes, marked as such."""

Priority = Literal["ambient", "directed", "operator", "control"]
"""How urgent an event is. There is no default: every admission names one."""

Response = Literal["none", "replied", "messaged", "dismissed", "noted"]
"""What was done about an item; its `action` on the wire."""

SourceKind = Literal["operator", "channel", "timer", "job", "team", "system"]
"""What sort of place an event comes from. Only `Operator` is trusted."""

Status = Literal["pending", "seen", "acted", "ignored"]
"""What has become of an item."""

TurnCause = Literal["events", "wait_timed_out", "idle"]
"""Why a turn began."""


class TurnEnd(TypedDict):
    """How a turn ended."""

    how: Literal["yielded", "waits", "nothing_delivered", "preempted", "limit_reached", "refused"]
    by: NotRequired[str]


class Via(TypedDict):
    """By what an event was admitted, as its host tells it (`C-TRUST`). Never shown to a model."""

    client: str
    path: str


class WaitEnd(TypedDict):
    """How a wait ended."""

    how: Literal["timed_out", "woken", "commanded"]
    by: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Update:
    """One thing that happened."""

    type: ClassVar[str]
    """The kind, as the daemon's API names it."""
    id: int | None
    """The record that says it, to resume after."""
    at: int
    """When it happened, in UTC milliseconds."""


@dataclass(frozen=True, slots=True)
class ThinkDelta(Update):
    """A piece of reasoning, live."""

    type: ClassVar[str] = "think_delta"
    text: str
    """The piece."""


@dataclass(frozen=True, slots=True)
class ScratchDelta(Update):
    """A piece of scratch, live."""

    type: ClassVar[str] = "scratch_delta"
    text: str
    """The piece."""


@dataclass(frozen=True, slots=True)
class CallDelta(Update):
    """The model has begun to ask for an action, live."""

    type: ClassVar[str] = "call_delta"
    name: str
    """The action's name."""


@dataclass(frozen=True, slots=True)
class Admitted(Update):
    """An event was admitted."""

    type: ClassVar[str] = "admitted"
    event: EventId
    """The event."""
    source: SourceKind
    """The kind of its source."""
    instance: str
    """The source's instance name."""
    priority: Priority
    """How urgent it is."""
    external_id: str
    """What names it at its source."""
    via: Via | None
    """By what it came, where its host tells that."""


@dataclass(frozen=True, slots=True)
class Marked(Update):
    """Somebody decided about an attention item."""

    type: ClassVar[str] = "marked"
    item: EventId
    """The event that made the item."""
    status: Status
    """What has become of it."""
    action: Response
    """What was done about it."""
    decider: Decider
    """Who decided."""
    note: str | None
    """Why."""


@dataclass(frozen=True, slots=True)
class Consumed(Update):
    """A command of the operator's was carried out."""

    type: ClassVar[str] = "consumed"
    event: EventId
    """Its event."""


@dataclass(frozen=True, slots=True)
class Shown(Update):
    """Events were shown to the model."""

    type: ClassVar[str] = "shown"
    frame: FrameId
    """The frame."""
    events: list[EventId]
    """The events."""
    text: str
    """The message as the model reads it."""


@dataclass(frozen=True, slots=True)
class TurnStarted(Update):
    """A turn began."""

    type: ClassVar[str] = "turn_started"
    turn: TurnId
    """The turn."""
    cause: TurnCause
    """Why."""
    model: str
    """The model it uses."""


@dataclass(frozen=True, slots=True)
class Nudged(Update):
    """The harness put in a message of its own."""

    type: ClassVar[str] = "nudged"
    nudge: NudgeKind
    """Which one."""
    text: str
    """What the model reads."""


@dataclass(frozen=True, slots=True)
class Replied(Update):
    """The model replied: private thought, private scratch, and the actions it asks for."""

    type: ClassVar[str] = "replied"
    step: str
    """The step."""
    scratch: str
    """The plain text."""
    calls: list[str]
    """The actions' names in order."""
    think: str | None
    """The reasoning."""
    usage: Any
    """What the provider counted."""


@dataclass(frozen=True, slots=True)
class ReplyDropped(Update):
    """A reply was dropped in the middle."""

    type: ClassVar[str] = "reply_dropped"
    step: str
    """The step."""
    scratch: str
    """Its text so far."""


@dataclass(frozen=True, slots=True)
class SamplingFailed(Update):
    """The model could not be asked."""

    type: ClassVar[str] = "sampling_failed"
    step: str
    """The step."""
    failure: str
    """What went wrong, for people."""
    retry_at: int | None
    """When it is tried again."""


@dataclass(frozen=True, slots=True)
class ActionStarted(Update):
    """An action is about to run."""

    type: ClassVar[str] = "action_started"
    action: str
    """The action."""
    name: str
    """Its name."""
    arguments: str
    """Its arguments, JSON."""


@dataclass(frozen=True, slots=True)
class Held(Update):
    """An action waits for the operator."""

    type: ClassVar[str] = "held"
    action: str
    """The action."""
    name: str
    """Its name."""
    arguments: str
    """Its arguments, JSON."""
    reason: str
    """Why."""


@dataclass(frozen=True, slots=True)
class ActionEnded(Update):
    """An action ended; nothing was said to anyone by it."""

    type: ClassVar[str] = "action_ended"
    action: str
    """The action."""
    result: str
    """The whole result; what the model reads of it may be shorter."""
    end: End | None
    """How; absent while only its call is answered."""


@dataclass(frozen=True, slots=True)
class Delivered(Update):
    """Something was said to someone."""

    type: ClassVar[str] = "delivered"
    action: str
    """The action that said it."""
    channel: str
    """The channel's instance name; `local` for the operator."""
    text: str
    """What was said, as the delivery's arguments have it; their `content` if they have one."""


@dataclass(frozen=True, slots=True)
class Waiting(Update):
    """The agent waits."""

    type: ClassVar[str] = "waiting"
    until: int
    """Until when at most."""
    reason: str | None
    """What for."""


@dataclass(frozen=True, slots=True)
class WaitEnded(Update):
    """A wait ended."""

    type: ClassVar[str] = "wait_ended"
    end: WaitEnd
    """How."""


@dataclass(frozen=True, slots=True)
class TurnEnded(Update):
    """A turn ended."""

    type: ClassVar[str] = "turn_ended"
    turn: TurnId
    """The turn."""
    end: TurnEnd
    """How."""


@dataclass(frozen=True, slots=True)
class PrefixMade(Update):
    """A new prefix is in force."""

    type: ClassVar[str] = "prefix_made"
    generation: Generation
    """Its number."""
    cause: BreakCause
    """Why."""


@dataclass(frozen=True, slots=True)
class PrefixBroken(Update):
    """A request did not extend the one before it, and nothing had declared that: a warning."""

    type: ClassVar[str] = "prefix_broken"
    model: str
    """The model whose lane it is."""
    offset: int
    """The first byte that differs, in the requests as the core writes them."""


@dataclass(frozen=True, slots=True)
class Activated(Update):
    """A policy was put in force."""

    type: ClassVar[str] = "activated"
    epoch: Epoch
    """The epoch from here on."""
    cause: Cause
    """Why it came."""
    manifest: str | None
    """What names the policy; none when no slot has an owner any more."""


@dataclass(frozen=True, slots=True)
class SoulChanged(Update):
    """The soul was replaced."""

    type: ClassVar[str] = "soul_changed"
    epoch: Epoch
    """The epoch from here on."""


@dataclass(frozen=True, slots=True)
class Reset(Update):
    """The transcript was emptied."""

    type: ClassVar[str] = "reset"


@dataclass(frozen=True, slots=True)
class Compacting(Update):
    """A summary is being asked for."""

    type: ClassVar[str] = "compacting"


@dataclass(frozen=True, slots=True)
class Compacted(Update):
    """The front of the transcript was swapped for a summary."""

    type: ClassVar[str] = "compacted"
    covers: int
    """How many messages it stands for."""
    summary: str
    """The summary."""


@dataclass(frozen=True, slots=True)
class CompactionFailed(Update):
    """No summary came of it."""

    type: ClassVar[str] = "compaction_failed"
    why: str
    """Why."""


@dataclass(frozen=True, slots=True)
class DeadLettered(Update):
    """The provider refused a message for good."""

    type: ClassVar[str] = "dead_lettered"
    failure: str
    """What it said."""


@dataclass(frozen=True, slots=True)
class Recovered(Update):
    """The process began anew."""

    type: ClassVar[str] = "recovered"


@dataclass(frozen=True, slots=True)
class ClockHeld(Update):
    """The clock was set back."""

    type: ClassVar[str] = "clock_held"


UPDATES: dict[str, Any] = {
    "think_delta": ThinkDelta,
    "scratch_delta": ScratchDelta,
    "call_delta": CallDelta,
    "admitted": Admitted,
    "marked": Marked,
    "consumed": Consumed,
    "shown": Shown,
    "turn_started": TurnStarted,
    "nudged": Nudged,
    "replied": Replied,
    "reply_dropped": ReplyDropped,
    "sampling_failed": SamplingFailed,
    "action_started": ActionStarted,
    "held": Held,
    "action_ended": ActionEnded,
    "delivered": Delivered,
    "waiting": Waiting,
    "wait_ended": WaitEnded,
    "turn_ended": TurnEnded,
    "prefix_made": PrefixMade,
    "prefix_broken": PrefixBroken,
    "activated": Activated,
    "soul_changed": SoulChanged,
    "reset": Reset,
    "compacting": Compacting,
    "compacted": Compacted,
    "compaction_failed": CompactionFailed,
    "dead_lettered": DeadLettered,
    "recovered": Recovered,
    "clock_held": ClockHeld,
}

__all__ = [
    "ActionEnded",
    "ActionStarted",
    "Activated",
    "Admitted",
    "BreakCause",
    "CallDelta",
    "Cause",
    "ClockHeld",
    "Compacted",
    "Compacting",
    "CompactionFailed",
    "Consumed",
    "DeadLettered",
    "Decider",
    "Delivered",
    "End",
    "Epoch",
    "EventId",
    "FailureKind",
    "FrameId",
    "Generation",
    "Held",
    "Marked",
    "NudgeKind",
    "Nudged",
    "PrefixBroken",
    "PrefixMade",
    "Priority",
    "Recovered",
    "Replied",
    "ReplyDropped",
    "Reset",
    "Response",
    "SamplingFailed",
    "ScratchDelta",
    "Seq",
    "Shown",
    "SoulChanged",
    "SourceKind",
    "Status",
    "ThinkDelta",
    "TurnCause",
    "TurnEnd",
    "TurnEnded",
    "TurnId",
    "TurnStarted",
    "Update",
    "Via",
    "WaitEnd",
    "WaitEnded",
    "Waiting",
    "parse_update",
]


def parse_update(told: dict[str, Any]) -> Update:
    """The update that plain data means."""
    kind = UPDATES[told["type"]]
    update: Update = kind(**{name: told.get(name) for name in kind.__match_args__})
    return update
