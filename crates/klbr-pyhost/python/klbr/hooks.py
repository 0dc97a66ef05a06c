"""What a hook is written with: decorators, the questions' types, the answers.

    from klbr import hooks

    @hooks.slot("delivery.review", deadline="300ms")
    async def review(send: hooks.DeliveryReview, host: hooks.Host) -> hooks.Verdict:
        return hooks.hold("not at night") if await host.is_night() else hooks.allow()

A hook takes the question and, if it has a second parameter, the host. It may be a coroutine function. All hooks run on
one thread: one that blocks makes the others wait, and is replaced with its process when it misses its deadline.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ._types import *  # noqa: F403
from ._types import Allow, Deny, Hold, Verdict, __all__ as _types_all

__all__ = [
    "Hook",
    "Host",
    "HostError",
    "allow",
    "arguments",
    "deny",
    "hold",
    "observer",
    "slot",
    "transform",
    *_types_all,
]

from ._link import HostError

_F = TypeVar("_F", bound=Callable[..., Any])

MARK = "__klbr_hook__"


@dataclass(frozen=True)
class Hook:
    """What a decorator says of its function."""

    kind: str
    name: str
    deadline_ms: int | None = None
    stage: int = 0
    order: int = 0


class Host(Protocol):
    """The host, as a hook sees it while it is asked: bounded reads and, for observers, commands.

    Each read that the host offers is a coroutine function of this object. Reads raise HostError.
    """

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]: ...

    def admit(self, text: str, *, priority: str = "ambient") -> None:
        """Observers only: admits an event, as a job of the observer's name."""

    def mark(self, item: str, status: str, note: str = "") -> None:
        """Observers only: marks an attention item."""

    def remember(self, text: str, *, tags: list[str] | None = None) -> None:
        """Observers only: adds a memory."""

    def schedule(self, text: str, *, after: str | datetime.timedelta) -> None:
        """Observers only: admits an event later."""


def slot(name: str, *, deadline: str | datetime.timedelta | None = None) -> Callable[[_F], _F]:
    """Marks the function that answers a slot."""
    return _mark(Hook("slot", name, milliseconds(deadline)))


def transform(
    name: str, *, stage: int = 0, order: int = 0, deadline: str | datetime.timedelta | None = None
) -> Callable[[_F], _F]:
    """Marks a rewrite. It takes its family's question, and answers with the new text, with a mapping of the fields that
    change (for `delivery.format` also `{"arguments": {...}}`), or None."""
    return _mark(Hook("transform", name, milliseconds(deadline), stage, order))


def observer(name: str, *, deadline: str | datetime.timedelta | None = None) -> Callable[[_F], _F]:
    """Marks a listener to committed records, such as `{"seq": 7, "at": ..., "body": {"kind": "turn_ended", ...}}`.

    It may hear a record more than once; what it commands is committed with its cursor, and counts once.
    """
    return _mark(Hook("observer", name, milliseconds(deadline)))


def _mark(hook: Hook) -> Callable[[_F], _F]:
    def decorate(function: _F) -> _F:
        setattr(function, MARK, hook)
        return function

    return decorate


def allow() -> Verdict:
    """It may run."""
    return Allow()


def deny(reason: str) -> Verdict:
    """It must not run."""
    return Deny(reason)


def hold(reason: str) -> Verdict:
    """The operator decides."""
    return Hold(reason)


def arguments(review: Any) -> dict[str, Any]:
    """The arguments of the action that a review is about."""
    parsed = json.loads(review.arguments)
    return parsed if isinstance(parsed, dict) else {}


_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


def milliseconds(duration: str | int | float | datetime.timedelta | None) -> int | None:
    """A duration such as "300ms", "2.5s", "10m" in milliseconds; a number counts as seconds.

    Raises ValueError for what is no duration.
    """
    if duration is None:
        return None
    if isinstance(duration, datetime.timedelta):
        return round(duration.total_seconds() * 1000)
    if isinstance(duration, (int, float)) and not isinstance(duration, bool):
        return round(duration * 1000)
    text = str(duration).strip()
    for unit in ("ms", "s", "m", "h"):
        number = text.removesuffix(unit)
        if number != text:
            try:
                return round(float(number) * _UNITS[unit])
            except (ValueError, OverflowError):
                break
    raise ValueError(f"{duration!r} is no duration such as '300ms', '2.5s', '10m' or '1h'")
