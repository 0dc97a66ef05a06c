"""Models of one's own: what they are asked, and what they answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .errors import ModelError

if TYPE_CHECKING:
    from ._native import Pieces

__all__ = ["Call", "Model", "Reply", "Request", "ScriptedModel", "Think", "Usage"]


@dataclass(frozen=True, slots=True)
class Request:
    """One sampling of a model."""

    model: str
    system: str
    """The system prompt, byte for byte as the request before had it unless a break was declared."""
    tools: str
    """The tools: a JSON array of name, description and parameters, as stable as the system prompt."""
    messages: list[dict[str, Any]]
    """What follows, oldest first: `role` is user, assistant or tool."""
    effort: str | None
    max_output_tokens: int | None
    tool_choice: Literal["auto", "required"]


@dataclass(frozen=True, slots=True)
class Call:
    """An action that a reply asks for. Its arguments are an object, or the JSON text of one."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as a provider counted them."""

    input: int
    output: int
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply. Its text is private: only a delivery among its calls speaks to anyone."""

    text: str = ""
    calls: Sequence[Call] = ()
    reasoning: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Think:
    """A piece of reasoning, while a reply streams."""

    text: str


class Model(Protocol):
    """Something that can be sampled.

    `sample` is either a coroutine function that answers with a whole reply, or an async generator: it yields the pieces
    of the text as strings, those of the reasoning as Think, and may end with a Reply, which then says it all. It is
    cancelled when the turn is preempted. It raises ModelError when there is no reply.
    """

    def sample(self, request: Request, /) -> Awaitable[Reply | str] | AsyncIterator[str | Think | Reply]: ...


async def sample(model: Model, told: str, pieces: Pieces) -> str:
    """Samples a model as the native half asks for it; answers with JSON."""
    asked = json.loads(told)
    request = Request(
        model=asked["model"],
        system=asked["system"],
        tools=asked["tools"],
        messages=asked["messages"],
        effort=asked["parameters"].get("effort"),
        max_output_tokens=asked["parameters"].get("max_output_tokens"),
        tool_choice=asked["parameters"]["tool_choice"],
    )
    try:
        said = model.sample(request)
        reply = await _streamed(said, pieces) if isinstance(said, AsyncIterator) else await said
        if isinstance(reply, str):
            reply = Reply(reply)
        return json.dumps({"sampled": _written(reply)})
    except ModelError as problem:
        return json.dumps({"failed": {"message": str(problem), "transient": problem.transient}})
    except Exception as problem:
        text = f"{type(problem).__name__}: {problem}"
        return json.dumps({"failed": {"message": text, "transient": True}})


async def _streamed(said: AsyncIterator[str | Think | Reply], pieces: Pieces) -> Reply:
    text: list[str] = []
    thoughts: list[str] = []
    reply: Reply | None = None
    async for piece in said:
        if reply is not None:
            raise ModelError("the model yielded more after its reply", transient=False)
        if isinstance(piece, Reply):
            reply = piece
        elif isinstance(piece, Think):
            thoughts.append(piece.text)
            pieces.think(piece.text)
        else:
            text.append(piece)
            pieces.scratch(piece)
    return reply or Reply("".join(text), reasoning="".join(thoughts) or None)


def _written(reply: Reply) -> dict[str, Any]:
    calls = [
        {
            "id": call.id,
            "name": call.name,
            "arguments": call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments)),
        }
        for call in reply.calls
    ]
    usage = reply.usage
    return {
        "text": reply.text,
        "reasoning": reply.reasoning,
        "calls": calls,
        "finish": "tool_calls" if calls else "stop",
        "usage": usage and {"input": usage.input, "output": usage.output, "cached": usage.cached},
    }


class ScriptedModel:
    """A model that gives its replies in order and then none, for tests and examples. A string is a reply of text, a Call
    a reply of that call, and an exception is raised."""

    def __init__(self, *script: Reply | str | Call | Exception) -> None:
        self.script = list(script)
        self.requests: list[Request] = []

    async def sample(self, request: Request, /) -> Reply:
        """Gives the next reply; waits for ever when there is none."""
        self.requests.append(request)
        while not self.script:
            await asyncio.sleep(3600)
        said = self.script.pop(0)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Call):
            return Reply(calls=[said])
        return Reply(said) if isinstance(said, str) else said
