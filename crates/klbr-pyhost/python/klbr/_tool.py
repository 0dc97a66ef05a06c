"""Tools: async functions that a model may call, their schemas taken from the type hints."""

from __future__ import annotations

import datetime
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

from . import _schema
from .errors import ConfigError, ToolError, UnknownOutcome
from .hooks import milliseconds

__all__ = ["Effect", "Tool", "tool"]

P = ParamSpec("P")
R = TypeVar("R")

Effect = Literal["pure", "idempotent", "reversible", "irreversible"]
"""What repeating a call costs; only the first two are ever repeated without being asked for."""

Duration = str | int | float | datetime.timedelta
"""A text such as "300ms" or "10m", a number of seconds, or a timedelta."""


class Tool(Generic[P, R]):
    """An async function that a model may call. Called from Python, it is the function."""

    def __init__(
        self,
        function: Callable[P, Awaitable[R]],
        *,
        name: str | None = None,
        description: str | None = None,
        effect: Effect = "irreversible",
        cancellable: bool = True,
        deadline: Duration = "2m",
        resource: str | None = None,
        skip: int = 0,
    ) -> None:
        self.function: Callable[..., Awaitable[R]] = function
        self.name: str = name or function.__name__
        self.description: str = description or inspect.getdoc(function) or ""
        self.effect = effect
        self.cancellable = cancellable
        self.resource = resource
        if not inspect.iscoroutinefunction(function):
            raise ConfigError(f"{self.name} is not an async function")
        if not self.description:
            raise ConfigError(f"{self.name} has no docstring: a model has to be told what it does")
        try:
            self.deadline_ms = milliseconds(deadline)
            self._fields = _schema.fields_of(function, skip)
            self.parameters = _schema.object_schema(function, self._fields)
        except (TypeError, ValueError, NameError) as problem:
            raise ConfigError(f"{self.name}: {problem}") from problem
        if resource is not None and resource not in self.parameters["properties"]:
            raise ConfigError(f"{self.name}: its resource {resource!r} is none of its parameters")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    def spec(self) -> dict[str, Any]:
        """The tool as the native half takes it."""
        told = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {
            "tool": told,
            "class": self.effect,
            "cancellable": self.cancellable,
            "resource": self.resource,
            "deadline_ms": self.deadline_ms,
        }

    def read(self, arguments: str) -> dict[str, Any]:
        """The keyword arguments that a call's JSON means. Raises ValueError, which names the place."""
        return _schema.read_fields(json.loads(arguments), self._fields)

    async def run(self, arguments: str, action: str) -> str:
        """Runs a call; answers with its outcome as JSON."""
        del action
        return await settled(self, arguments, lambda given: self.function(**given), shown)


@overload
def tool(function: Callable[P, Awaitable[R]], /) -> Tool[P, R]: ...


@overload
def tool(
    function: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "irreversible",
    cancellable: bool = True,
    deadline: Duration = "2m",
    resource: str | None = None,
) -> Callable[[Callable[P, Awaitable[R]]], Tool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool of an async function: its name, its docstring and its type hints are what the model is told.

    `effect` says what repeating a call costs, `resource` names the parameter that says what a call touches, so that two
    calls on one thing run in order, and a call that takes longer than `deadline` is cancelled.
    """
    if function is not None:
        return Tool(function, **options)
    return lambda function: Tool(function, **options)


async def settled(
    declared: Tool[Any, Any],
    arguments: str,
    run: Callable[[dict[str, Any]], Awaitable[Any]],
    shape: Callable[[Any], dict[str, Any]],
) -> str:
    """Runs a call and tells how it ended, whatever it raises."""
    try:
        given = declared.read(arguments)
    except ValueError as problem:
        text = f"Not run: the arguments of {declared.name} are invalid: {problem}."
        return json.dumps({"end": {"end": "failed", "why": "invalid"}, "observation": text})
    try:
        outcome = shape(await run(given))
    except UnknownOutcome as problem:
        outcome = {"end": {"end": "unknown"}, "observation": str(problem) or "Whether it happened is not known."}
    except ToolError as problem:
        outcome = {"end": {"end": "failed", "why": "refused"}, "observation": str(problem)}
    except Exception as problem:
        text = f"{type(problem).__name__}: {problem}"
        outcome = {"end": {"end": "failed", "why": "refused"}, "observation": text}
    return json.dumps(outcome)


def shown(value: Any) -> dict[str, Any]:
    """An outcome that is confirmed: a text as it is, anything else as JSON."""
    if value is None:
        text = "Done."
    elif isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False, default=_plain)
    return {"end": {"end": "confirmed"}, "observation": text}


def _plain(value: Any) -> Any:
    import dataclasses
    import enum

    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, enum.Enum):
        return value.value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)
