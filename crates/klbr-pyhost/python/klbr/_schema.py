"""JSON Schemas from type hints, and values read by them.

A hint may be one of str, int, float, bool, None, Any, list, dict, tuple, Literal, Enum, a union, a dataclass, a
TypedDict, or a class with pydantic's `model_json_schema` and `model_validate`. `Annotated[T, "text"]` describes.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_NONE: Any = type(None)


class NoSchema(TypeError):
    """A hint that has no JSON Schema here."""


class Unreadable(ValueError):
    """A value that its hint does not allow."""


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a type hint."""
    if hint is Any or hint is inspect.Parameter.empty:
        return {}
    if hint is None:
        hint = _NONE
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        schema = schema_of(args[0])
        texts = [one for one in args[1:] if isinstance(one, str)]
        return {**schema, "description": texts[0]} if texts else schema
    if origin in (Required, NotRequired):
        return schema_of(args[0])
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(one) for one in args]}
    if origin is tuple or hint is tuple:
        return _tuple_schema(args)
    if _is_sequence(hint, origin):
        return {"type": "array", "items": schema_of(args[0])} if args else {"type": "array"}
    if _is_mapping(hint, origin):
        if args and args[0] is not str:
            raise NoSchema(f"the keys of a JSON object are strings, not {_name(args[0])}")
        return {"type": "object", "additionalProperties": schema_of(args[1])} if args else {"type": "object"}
    if isinstance(hint, type):
        return _class_schema(hint)
    raise NoSchema(f"{_name(hint)} has no JSON Schema")


def _class_schema(hint: type) -> dict[str, Any]:
    if issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate"):
        schema: dict[str, Any] = hint.model_json_schema()
        return schema
    fields = _fields(hint)
    if fields is None:
        raise NoSchema(f"{_name(hint)} has no JSON Schema")
    properties = {name: schema_of(kind) for name, kind, _ in fields}
    required = [name for name, _, needed in fields if needed]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _tuple_schema(args: tuple[Any, ...]) -> dict[str, Any]:
    if not args:
        return {"type": "array"}
    if len(args) == 2 and args[1] is Ellipsis:
        return {"type": "array", "items": schema_of(args[0])}
    return {"type": "array", "prefixItems": [schema_of(one) for one in args], "minItems": len(args), "maxItems": len(args)}


def read(value: Any, hint: Any, where: str = "value") -> Any:
    """The value that JSON data means under a hint. Raises Unreadable, which names the place."""
    if hint is Any or hint is inspect.Parameter.empty:
        return value
    if hint is None:
        hint = _NONE
    if hint in _PLAIN:
        return _read_plain(value, hint, where)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Annotated, Required, NotRequired):
        return read(value, args[0], where)
    if origin is Literal:
        if any(value == one and type(value) is type(one) for one in args):
            return value
        raise Unreadable(f"{where} is one of {', '.join(map(repr, args))}, not {value!r}")
    if origin in (Union, types.UnionType):
        return _read_union(value, args, where)
    if origin is tuple or hint is tuple:
        return _read_tuple(value, args, where)
    if _is_sequence(hint, origin):
        _expect(value, list, "a list", where)
        return [read(one, args[0] if args else Any, f"{where}[{n}]") for n, one in enumerate(value)]
    if _is_mapping(hint, origin):
        _expect(value, dict, "an object", where)
        return {key: read(one, args[1] if args else Any, f"{where}.{key}") for key, one in value.items()}
    return _read_class(value, hint, where)


def _read_plain(value: Any, hint: Any, where: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, hint) and not (isinstance(value, bool) and hint is not bool):
        return value
    raise Unreadable(f"{where} is of type {_PLAIN[hint]}, not {value!r}")


def _read_union(value: Any, args: tuple[Any, ...], where: str) -> Any:
    # What fits as it is comes first: 1 is an int to `float | int`.
    if type(value) in args:
        return value
    problems = []
    for one in args:
        try:
            return read(value, one, where)
        except Unreadable as problem:
            problems.append(str(problem))
    raise Unreadable("; or ".join(problems))


def _read_tuple(value: Any, args: tuple[Any, ...], where: str) -> Any:
    _expect(value, list, "a list", where)
    if not args:
        return tuple(value)
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(read(one, args[0], f"{where}[{n}]") for n, one in enumerate(value))
    if len(value) != len(args):
        raise Unreadable(f"{where} has {len(args)} items, not {len(value)}")
    return tuple(read(one, kind, f"{where}[{n}]") for n, (one, kind) in enumerate(zip(value, args, strict=True)))


def _read_class(value: Any, hint: Any, where: str) -> Any:
    if issubclass(hint, enum.Enum):
        try:
            return hint(value)
        except ValueError as problem:
            choices = ", ".join(repr(member.value) for member in hint)
            raise Unreadable(f"{where} is one of {choices}, not {value!r}") from problem
    if hasattr(hint, "model_validate"):
        try:
            return hint.model_validate(value)
        except ValueError as problem:
            raise Unreadable(f"{where}: {problem}") from problem
    _expect(value, dict, "an object", where)
    given = read_fields(value, _fields(hint) or [], f"{where}.")
    return given if typing.is_typeddict(hint) else hint(**given)


Field = tuple[str, Any, bool]
"""A name, a hint, and whether it has to be there."""


def read_fields(value: Mapping[str, Any], fields: Sequence[Field], before: str = "") -> dict[str, Any]:
    """The values of an object's fields; what is unknown or missing is refused by name."""
    known = {name for name, _, _ in fields}
    if unknown := [name for name in value if name not in known]:
        raise Unreadable(f"there is no {before}{unknown[0]}")
    if missing := [name for name, _, needed in fields if needed and name not in value]:
        raise Unreadable(f"{before}{missing[0]} is missing")
    return {name: read(value[name], hint, f"{before}{name}") for name, hint, _ in fields if name in value}


def fields_of(function: Callable[..., Any], skip: int = 0) -> list[Field]:
    """The parameters of a function, the first `skip` left out."""
    hints = typing.get_type_hints(function, include_extras=True)
    fields = []
    for parameter in list(inspect.signature(function).parameters.values())[skip:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise NoSchema(f"{_name(function)}: {parameter} cannot be named in a call")
        hint = hints.get(parameter.name, inspect.Parameter.empty)
        if hint is inspect.Parameter.empty:
            raise NoSchema(f"{_name(function)}: {parameter.name} has no type hint")
        fields.append((parameter.name, hint, parameter.default is inspect.Parameter.empty))
    return fields


def object_schema(function: Callable[..., Any], fields: Sequence[Field]) -> dict[str, Any]:
    """The JSON Schema of a function's arguments, defaults included."""
    parameters = inspect.signature(function).parameters
    properties = {}
    for name, hint, needed in fields:
        schema = schema_of(hint)
        default = parameters[name].default
        if not needed and isinstance(default, (str, int, float, bool)):
            schema = {**schema, "default": default}
        properties[name] = schema
    required = [name for name, _, needed in fields if needed]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _fields(hint: Any) -> list[Field] | None:
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        return [(name, kind, name in hint.__required_keys__) for name, kind in hints.items()]
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        absent = dataclasses.MISSING
        return [
            (field.name, hints[field.name], field.default is absent and field.default_factory is absent)
            for field in dataclasses.fields(hint)
            if field.init
        ]
    return None


def _is_sequence(hint: Any, origin: Any) -> bool:
    kind = origin or hint
    return isinstance(kind, type) and issubclass(kind, Sequence) and not issubclass(kind, (str, bytes, tuple))


def _is_mapping(hint: Any, origin: Any) -> bool:
    kind = origin or hint
    return isinstance(kind, type) and not typing.is_typeddict(kind) and issubclass(kind, Mapping)


def _expect(value: Any, kind: type, text: str, where: str) -> None:
    if not isinstance(value, kind):
        raise Unreadable(f"{where} is {text}, not {value!r}")


def _name(thing: Any) -> str:
    return getattr(thing, "__qualname__", None) or repr(thing)
