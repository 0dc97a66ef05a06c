"""Social behaviour: what may be done and said, how it is worded, what a nudge says."""

from __future__ import annotations

from klbr import hooks

SILENCED_NUDGES: frozenset[hooks.NudgeKind] = frozenset()
"""Nudges that are not made."""


@hooks.slot("turn.nudge", deadline="100ms")
def nudge(nudge: hooks.TurnNudge) -> str | None:
    """The built-in words."""
    return None if nudge.kind in SILENCED_NUDGES else nudge.text


@hooks.slot("turn.limits", deadline="100ms")
def limits(turn: hooks.TurnLimits) -> int:
    """As configured."""
    return turn.limit


@hooks.slot("result.shape", deadline="100ms")
def shape(result: hooks.ResultShape) -> str:
    """As the action told it."""
    return result.text


@hooks.slot("action.review", deadline="300ms")
def review_action(action: hooks.ActionReview) -> hooks.Verdict:
    """Everything that the host's rules let through."""
    return hooks.allow()


@hooks.slot("delivery.review", deadline="300ms")
def review_delivery(send: hooks.DeliveryReview) -> hooks.Verdict:
    """Everything that the host's rules let through."""
    return hooks.allow()


@hooks.slot("delivery.format", deadline="100ms")
def format_delivery(send: hooks.DeliveryFormat) -> str | None:
    """As the model worded it."""
    return send.arguments


@hooks.slot("delivery.target", deadline="100ms")
def target(frame: hooks.DeliveryTarget) -> str | None:
    """The only conversation that the frame shows."""
    return frame.target
