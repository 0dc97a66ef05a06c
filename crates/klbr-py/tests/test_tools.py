"""Tools: schemas from type hints, arguments read by them, and how a call may end."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
from typing import Annotated, Any, Literal, TypedDict

import pytest

import klbr
from conftest import WAIT, run, until
from klbr import updates


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Options(TypedDict, total=False):
    fast: bool


def test_a_schema_is_what_the_hints_say() -> None:
    @klbr.tool(effect="pure")
    async def draw(
        at: Annotated[Point, "where it begins"],
        colours: list[Colour],
        style: Literal["solid", "dotted"] = "solid",
        name: str | None = None,
        options: Options | None = None,
    ) -> str:
        """Draws a line."""
        return ""

    assert (draw.name, draw.description) == ("draw", "Draws a line.")
    assert draw.parameters == {
        "type": "object",
        "properties": {
            "at": {
                "type": "object",
                "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
                "required": ["x"],
                "additionalProperties": False,
                "description": "where it begins",
            },
            "colours": {"type": "array", "items": {"enum": ["red", "blue"]}},
            "style": {"enum": ["solid", "dotted"], "default": "solid"},
            "name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "options": {
                "anyOf": [
                    {"type": "object", "properties": {"fast": {"type": "boolean"}}, "additionalProperties": False},
                    {"type": "null"},
                ]
            },
        },
        "required": ["at", "colours"],
        "additionalProperties": False,
    }
    given = draw.read(json.dumps({"at": {"x": 1}, "colours": ["blue"], "options": {"fast": True}}))
    assert given == {"at": Point(1.0), "colours": [Colour.BLUE], "options": {"fast": True}}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "at is missing"),
        ({"at": {"x": 1}, "more": 2}, "there is no more"),
        ({"at": {"y": 1}}, "at.x is missing"),
        ({"at": {"x": "1"}}, "at.x is of type number, not '1'"),
        ({"at": {"x": True}}, "at.x is of type number, not True"),
        ({"at": {"x": 1}, "colours": ["green"]}, r"colours\[0\] is one of 'red', 'blue', not 'green'"),
        ({"at": []}, "at is an object"),
    ],
)
def test_arguments_are_refused_by_their_place(arguments: dict[str, Any], problem: str) -> None:
    @klbr.tool
    async def draw(at: Point, colours: list[Colour] | None = None) -> str:
        """Draws."""
        return ""

    with pytest.raises(ValueError, match=problem):
        draw.read(json.dumps(arguments))


def test_a_function_that_makes_no_tool_is_refused() -> None:
    async def silent(a: int) -> None: ...

    async def untyped(a) -> None:  # type: ignore[no-untyped-def]
        """Has no hint."""

    async def odd(a: object) -> None:
        """Has a hint without a schema."""

    def plain(a: int) -> None:
        """Is not async."""

    functions: list[tuple[Any, str]] = [
        (silent, "docstring"),
        (untyped, "a has no type hint"),
        (odd, "object has no JSON Schema"),
        (plain, "not an async function"),
    ]
    for function, problem in functions:
        with pytest.raises(klbr.ConfigError, match=problem):
            klbr.tool(function)
    with pytest.raises(klbr.ConfigError, match="resource"):
        klbr.tool(resource="path", description="x")(silent)


def call_once(tool: klbr.Tool[..., Any], arguments: Any) -> updates.ActionEnded:
    """What becomes of one call by a model."""

    async def body() -> updates.ActionEnded:
        model = klbr.ScriptedModel(klbr.Call(tool.name, arguments), klbr.Reply(calls=[WAIT]))
        async with klbr.Agent("ada", model=model, tools=[tool]) as agent:
            await agent.say("go")
            seen = await until(agent, updates.Waiting)
        [ended] = [update for update in seen if isinstance(update, updates.ActionEnded)]
        return ended

    return run(body())


def test_a_call_ends_as_its_function_does() -> None:
    @klbr.tool(effect="pure")
    async def divide(a: float, b: float) -> dict[str, float]:
        """Divides."""
        return {"quotient": a / b}

    @klbr.tool
    async def refuse(why: str) -> None:
        """Refuses."""
        raise klbr.ToolError(f"No: {why}.")

    @klbr.tool
    async def lose() -> None:
        """Loses track."""
        raise klbr.UnknownOutcome("The line went dead.")

    @klbr.tool(deadline="50ms")
    async def dawdle() -> None:
        """Takes its time."""
        await asyncio.sleep(3600)

    done = call_once(divide, {"a": 1, "b": 4})
    assert (done.end, done.result) == ({"end": "confirmed"}, '{"quotient": 0.25}')
    failed = call_once(divide, {"a": 1, "b": 0})
    assert failed.end == {"end": "failed", "why": "refused"} and "ZeroDivisionError" in failed.result
    invalid = call_once(divide, {"a": 1})
    assert invalid.end == {"end": "failed", "why": "invalid"} and "b is missing" in invalid.result
    refused = call_once(refuse, {"why": "not today"})
    assert (refused.end, refused.result) == ({"end": "failed", "why": "refused"}, "No: not today.")
    lost = call_once(lose, {})
    assert (lost.end, lost.result) == ({"end": "unknown"}, "The line went dead.")
    assert call_once(dawdle, {}).end == {"end": "failed", "why": "timed_out"}


def test_an_interrupt_cancels_a_running_call() -> None:
    async def body() -> None:
        begun, cancelled = asyncio.Event(), asyncio.Event()
        agent = klbr.Agent("ada", model=klbr.ScriptedModel(klbr.Call("sleep"), klbr.Reply(calls=[WAIT])))

        @agent.tool
        async def sleep() -> None:
            """Sleeps."""
            begun.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                cancelled.set()
                raise

        async with agent:
            await agent.say("go")
            await begun.wait()
            await agent.interrupt()
            await cancelled.wait()

    run(body())


def test_calls_of_one_step_run_at_once() -> None:
    async def body() -> None:
        met = asyncio.Barrier(2)

        @klbr.tool(effect="pure")
        async def meet() -> str:
            """Waits for the other one."""
            await met.wait()
            return "met"

        calls = [klbr.Call("meet"), klbr.Call("meet")]
        model = klbr.ScriptedModel(klbr.Reply(calls=calls), klbr.Reply(calls=[WAIT]))
        async with klbr.Agent("ada", model=model, tools=[meet]) as agent:
            await agent.say("go")
            seen = await until(agent, updates.Waiting)
        assert [update.result for update in seen if isinstance(update, updates.ActionEnded)] == ["met", "met"]

    run(body())


def test_a_tool_is_still_a_function() -> None:
    @klbr.tool
    async def double(n: int) -> int:
        """Doubles."""
        return 2 * n

    async def body() -> int:
        return await double(21)

    assert run(body()) == 42


def test_two_tools_of_one_name_are_refused() -> None:
    @klbr.tool(name="recall")
    async def mine(n: int) -> int:
        """Shadows a tool that every agent has."""
        return n

    async def body() -> None:
        async with klbr.Agent("ada", model=klbr.ScriptedModel(), tools=[mine]):
            pass

    with pytest.raises(klbr.ConfigError, match="recall"):
        run(body())
