"""Writes `klbr/updates.py` from the schema of the Rust type. Run with the wheel installed; a test compares.

    python crates/klbr-py/scripts/generate_updates.py
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

TARGET = pathlib.Path(__file__).parents[2] / "klbr-pyhost" / "python" / "klbr" / "updates.py"

HEAD = '''# Generated from the Rust types by `python crates/klbr-py/scripts/generate_updates.py`. Do not edit.
"""What happens to an agent: a class for each kind of update.

An update with an `id` is durable and comes in order; one without is a live piece of a reply, which a durable one replaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

'''

BASE = '''

@dataclass(frozen=True, slots=True)
class Update:
    """One thing that happened."""

    type: ClassVar[str]
    """The kind, as the daemon's API names it."""
    id: int | None
    """The record that says it, to resume after."""
    at: int
    """When it happened, in UTC milliseconds."""
'''

FOOT = '''

def parse_update(told: dict[str, Any]) -> Update:
    """The update that plain data means."""
    kind = UPDATES[told["type"]]
    update: Update = kind(**{name: told.get(name) for name in kind.__match_args__})
    return update
'''

PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def hint(schema: Any) -> str:
    """A type hint; what the schema leaves open is Any."""
    if schema is True or not schema:
        return "Any"
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in schema:
        return " | ".join(hint(one) for one in schema["anyOf"])
    if isinstance(schema.get("type"), list):
        return " | ".join(PLAIN[one] for one in schema["type"])
    if schema.get("type") == "array":
        return f"list[{hint(schema['items'])}]"
    return PLAIN.get(schema.get("type", ""), "Any")


def definition(name: str, schema: dict[str, Any]) -> str:
    """A type that updates are made of."""
    doc = f'"""{schema.get("description", name)}"""\n'
    if "enum" in schema:
        return f"{name} = Literal{json.dumps(schema['enum'])}\n{doc}"
    variants = schema.get("oneOf")
    if "properties" in schema and variants is None:
        required = schema.get("required", [])
        kinds = {field: hint(kind) for field, kind in schema["properties"].items()}
        lines = [f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}\n" for field, kind in kinds.items()]
        return f"\nclass {name}(TypedDict):\n    {doc}\n{''.join(lines)}"
    if variants is None:
        return f"{name} = {hint(schema)}\n{doc}"
    if all("const" in one or "enum" in one for one in variants):
        words = [word for one in variants for word in one.get("enum", [one.get("const")])]
        return f"{name} = Literal{json.dumps(words)}\n{doc}"
    fields: dict[str, str] = {}
    tags: dict[str, list[str]] = {}
    for variant in variants:
        for field, kind in variant["properties"].items():
            if "const" in kind:
                tags.setdefault(field, []).append(kind["const"])
            else:
                fields[field] = hint(kind)
    lines = [f"    {field}: Literal{json.dumps(words)}\n" for field, words in tags.items()]
    lines += [f"    {field}: NotRequired[{kind}]\n" for field, kind in fields.items()]
    return f"\nclass {name}(TypedDict):\n    {doc}\n{''.join(lines)}"


def update(variant: dict[str, Any]) -> tuple[str, str, str]:
    """The kind of an update, its class's name and its class."""
    properties = dict(variant["properties"])
    kind = properties.pop("type")["const"]
    name = "".join(word.capitalize() for word in kind.split("_"))
    required = variant["required"]
    text = f'\n\n@dataclass(frozen=True, slots=True)\nclass {name}(Update):\n    """{variant["description"]}"""\n\n'
    text += f'    type: ClassVar[str] = "{kind}"\n'
    for field in sorted(properties, key=lambda field: (required + [field]).index(field)):
        kind_of = hint(properties[field])
        text += f"    {field}: {kind_of}\n"
        if note := properties[field].get("description"):
            text += f'    """{note}"""\n'
    return kind, name, text


def generate(schema: dict[str, Any]) -> str:
    """The module's text."""
    out = HEAD
    definitions = sorted(schema["$defs"].items(), key=lambda one: ("oneOf" in one[1] or "properties" in one[1], one[0]))
    out += "\n".join(definition(name, one) for name, one in definitions)
    out += BASE
    kinds = [update(variant) for variant in schema["oneOf"]]
    out += "".join(text for _, _, text in kinds)
    out += "\n\nUPDATES: dict[str, Any] = {\n"
    out += "".join(f'    "{kind}": {name},\n' for kind, name, _ in kinds)
    names = sorted([name for _, name, _ in kinds] + [name for name, _ in definitions] + ["Update", "parse_update"])
    out += "}\n\n__all__ = [\n" + "".join(f'    "{name}",\n' for name in names) + "]\n"
    return out + FOOT


if __name__ == "__main__":
    # The module's own path: the package imports what is about to be written.
    from klbr import _native

    TARGET.write_text(generate(_native.update_schema()))
    print(f"wrote {TARGET}")
