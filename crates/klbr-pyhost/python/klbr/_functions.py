"""Functions made from a list of what the host offers: name, documentation, JSON schema."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

Caller = Callable[[str, dict[str, Any]], Awaitable[Any]]

_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": None,
}


def _annotation(schema: Any) -> Any:
    kind = schema.get("type") if isinstance(schema, dict) else None
    names = kind if isinstance(kind, list) else [kind]
    types = [_TYPES[name] for name in names if name in _TYPES]
    if not types:
        return Any
    annotation = types[0]
    for other in types[1:]:
        annotation = annotation | other if annotation is not None else other | None
    return annotation


def _signature(schema: dict[str, Any]) -> inspect.Signature:
    properties: dict[str, Any] = schema.get("properties", {})
    required = [name for name in schema.get("required", []) if name in properties]
    ordered = required + [name for name in properties if name not in required]
    parameters = []
    for name in ordered:
        if not name.isidentifier():
            continue
        default = inspect.Parameter.empty if name in required else properties[name].get("default")
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=default,
                annotation=_annotation(properties[name]),
            )
        )
    return inspect.Signature(parameters, return_annotation=Any)


def make_function(name: str, doc: str, schema: dict[str, Any], call: Caller) -> Callable[..., Awaitable[Any]]:
    """A coroutine function that checks its arguments' names and asks the host."""
    signature = _signature(schema)

    async def function(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        return await call(name, dict(bound.arguments))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def make_namespace(registry: list[dict[str, Any]], call: Caller) -> dict[str, Any]:
    """The functions by name; `family_verb` also stands as `family.verb`, and so does a dotted name."""
    names: dict[str, Any] = {}
    for entry in registry:
        name: str = entry["name"]
        function = make_function(name, entry.get("doc", ""), entry.get("parameters") or {}, call)
        if name.isidentifier():
            names[name] = function
        family, _, verb = name.partition("." if "." in name else "_")
        if verb.isidentifier() and family.isidentifier():
            space = names.get(family)
            if space is None:
                space = names[family] = SimpleNamespace()
            if isinstance(space, SimpleNamespace):
                setattr(space, verb, function)
    return names
