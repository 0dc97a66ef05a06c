"""Channels of one's own: places where an agent hears and speaks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._tool import Duration, Tool, settled, shown
from .errors import ConfigError
from .hooks import milliseconds

if TYPE_CHECKING:
    from ._agent import Agent

__all__ = ["Anchor", "Channel", "Delivery", "Sent"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a reply in a conversation would refer to."""

    conversation: str
    key: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """Something to be said: the channel's own delivery action, called by the model."""

    action: str
    """The action's id: the same for every attempt, so that a place that takes a nonce says it once."""
    attempt: int
    destination: str | None
    """The only conversation of what the model was shown, if it was one."""
    anchors: Sequence[Anchor]
    conversations: dict[str, str]
    """Every conversation of the channel that has an alias, by alias."""
    first_attempted: int
    """In UTC milliseconds."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What was said where, so that the agent knows which messages are answered."""

    conversation: str
    messages: Sequence[str]
    """The external ids of the messages that were made, such as `msg:7`."""
    reply_to: str | None = None
    item: str | None = None
    text: str = "Sent."


class Channel:
    """A place where an agent hears and speaks. A subclass names it and says how to deliver.

    The parameters of `deliver` after the delivery are what the model writes; its docstring is what the model is told. It
    answers with a Sent, a text or None when it was said, and raises ToolError when it was not, UnknownOutcome when that
    cannot be known. It runs to its end also when the turn is preempted.
    """

    instance: str
    """The channel's name, as the sources of its events have it."""
    action: str | None = None
    """The name of the action that speaks; the instance's name and `_send` when it is None."""
    mark: str | None = None
    """The name of the action by which the agent decides about people's messages, if it is to have one."""
    alias_prefix: str = "c"
    instructions: str | None = None
    batch_delay: Duration = "8s"
    wakes_on_ambient: bool = True
    deadline: Duration = "30s"

    async def deliver(self, delivery: Delivery, /, content: str) -> Sent | str | None:
        """Says something here."""
        raise NotImplementedError

    async def listen(self, agent: Agent) -> None:
        """Hears: runs beside the agent, and admits what is said. Cancelled when the agent stops."""


def spec(channel: Channel) -> tuple[str, Any, Any]:
    """A channel as the native half takes it: what it is, how it delivers, how it reconciles."""
    instance = getattr(channel, "instance", None)
    if not isinstance(instance, str) or not instance:
        raise ConfigError(f"{type(channel).__name__} has no instance name")
    speaks: Tool[Any, Any] = Tool(
        channel.deliver,
        name=channel.action or f"{instance}_send",
        effect="irreversible",
        cancellable=False,
        deadline=channel.deadline,
        skip=1,
    )
    told = {
        "instance": instance,
        "alias_prefix": channel.alias_prefix,
        "instructions": channel.instructions,
        "batch_delay_ms": milliseconds(channel.batch_delay),
        "wakes_on_ambient": channel.wakes_on_ambient,
        "delivery": speaks.spec(),
        "mark": channel.mark,
    }

    def runner(method: Any) -> Any:
        async def run(told: str) -> str:
            body = json.loads(told)
            delivery = _delivery(instance, body)

            def shape(value: Any) -> dict[str, Any]:
                return _sent(instance, value) if isinstance(value, Sent) else shown("Sent." if value is None else value)

            return await settled(speaks, body["arguments"], lambda given: method(delivery, **given), shape)

        return run

    reconcile = getattr(channel, "reconcile", None)
    return json.dumps(told), runner(channel.deliver), runner(reconcile) if reconcile else None


def _delivery(instance: str, body: dict[str, Any]) -> Delivery:
    destination = body["destination"]
    return Delivery(
        action=body["action"],
        attempt=body["attempt"],
        destination=destination["id"] if destination and destination["instance"] == instance else None,
        anchors=[
            Anchor(anchor["conversation"]["id"], anchor["external_id"])
            for anchor in body["anchors"]
            if anchor["conversation"]["instance"] == instance
        ],
        conversations={
            alias: place["id"] for place, alias in body["conversations"] if place["instance"] == instance
        },
        first_attempted=body["first_attempted"],
    )


def _sent(instance: str, sent: Sent) -> dict[str, Any]:
    place = {"instance": instance, "id": sent.conversation}
    told = {"conversation": place, "reply_to": sent.reply_to, "item": sent.item, "messages": list(sent.messages)}
    return {"end": {"end": "confirmed"}, "observation": sent.text, "sent": told}
