"""Turns what a slot's owner returns into what the host understands. The host checks everything once more."""

from __future__ import annotations

import datetime
from typing import Any

from ._types import ANSWERS, Allow, Candidate, Deny, Hold, Plan


class WrongAnswer(TypeError):
    """The hook returned something that its slot cannot be answered with."""


def encode_answer(slot: str, value: Any) -> dict[str, Any]:
    """The answer as JSON. Raises WrongAnswer."""
    kind = ANSWERS[slot]
    return {"answer": kind, "value": _ENCODERS[kind](slot, value)}


def _wrong(slot: str, expected: str, value: Any) -> WrongAnswer:
    return WrongAnswer(f"{slot} is answered with {expected}, not with {type(value).__name__}")


def _priority(slot: str, value: Any) -> Any:
    if isinstance(value, str):
        return value
    raise _wrong(slot, "a priority's name", value)


def _yes(slot: str, value: Any) -> Any:
    if isinstance(value, bool):
        return value
    raise _wrong(slot, "a bool", value)


def _count(slot: str, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise _wrong(slot, "a whole number", value)


def _events(slot: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        events = [one.event if isinstance(one, Candidate) else one for one in value]
        if all(isinstance(one, int) and not isinstance(one, bool) for one in events):
            return events
    raise _wrong(slot, "a list of the events' ids, or of the candidates", value)


def _delay(slot: str, value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        return {"millis": round(value.total_seconds() * 1000)}
    raise _wrong(slot, "a datetime.timedelta", value)


def _text(slot: str, value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    raise _wrong(slot, "a str or None", value)


def _plan(slot: str, value: Any) -> Any:
    if isinstance(value, Plan):
        return {"model": value.model, "effort": value.effort}
    raise _wrong(slot, "a Plan", value)


def _verdict(slot: str, value: Any) -> Any:
    match value:
        case Allow():
            return {"verdict": "allow"}
        case Deny(reason):
            return {"verdict": "deny", "reason": str(reason)}
        case Hold(reason):
            return {"verdict": "hold", "reason": str(reason)}
        case _:
            raise _wrong(slot, "allow(), deny(reason) or hold(reason)", value)


_ENCODERS = {
    "priority": _priority,
    "yes": _yes,
    "count": _count,
    "delay": _delay,
    "events": _events,
    "text": _text,
    "plan": _plan,
    "verdict": _verdict,
}
