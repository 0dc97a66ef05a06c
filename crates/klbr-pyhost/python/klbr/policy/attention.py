"""Attention: how urgent an event is, what wakes the agent, how long chatter is gathered."""

from __future__ import annotations

from datetime import timedelta

from klbr import hooks

IDLE_FIRST = timedelta(seconds=30)
"""The pause before the second idle turn in a row; the first comes at once. Each further pause is twice as long."""

IDLE_LONGEST = timedelta(minutes=10)
"""The longest pause between idle turns."""


@hooks.slot("event.priority", deadline="100ms")
def priority(event: hooks.EventPriority) -> hooks.Priority:
    """What the adapter said."""
    return event.priority


@hooks.slot("event.accept", deadline="100ms")
def accept(event: hooks.EventAccept) -> bool:
    """Everything is kept."""
    return True


@hooks.slot("attention.wake", deadline="100ms")
def wake(batch: hooks.AttentionWake) -> bool:
    """Chatter wakes the agent where the configuration says so."""
    return batch.waiting > 0 and batch.configured


@hooks.slot("attention.batch_delay", deadline="100ms")
def batch_delay(batch: hooks.AttentionBatchDelay) -> timedelta:
    """As configured."""
    return timedelta(milliseconds=batch.configured_ms)


@hooks.slot("attention.age", deadline="100ms")
def age(item: hooks.AttentionAge) -> bool:
    """What was shown long enough no longer waits for a decision."""
    return True


@hooks.slot("frame.render", deadline="100ms")
def render(frame: hooks.FrameRender) -> str:
    """As it is built in."""
    return frame.text


@hooks.slot("turn.idle", deadline="100ms")
def idle(turn: hooks.TurnIdle) -> timedelta:
    """At once, then after pauses that double."""
    if turn.yields <= 1:
        return timedelta(0)
    doublings: int = 1 << min(turn.yields - 2, 10)
    return min(IDLE_FIRST * doublings, IDLE_LONGEST)
