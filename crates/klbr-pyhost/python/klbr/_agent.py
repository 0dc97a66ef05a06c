"""An agent inside of a Python process."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar, overload

from . import _channel, _model, _native
from ._channel import Channel
from ._model import Model
from ._tool import Duration, Effect, Tool, tool
from .errors import ConfigError, StoppedError
from .updates import Update, parse_update

__all__ = ["Admission", "Agent", "Author"]

P = ParamSpec("P")
R = TypeVar("R")

_SERVER = ("KLBR_BASE_URL", "KLBR_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_KEY")


@dataclass(frozen=True, slots=True)
class Admission:
    """An event's place, once it is durable."""

    event: int
    """Its number; the first one's, for a repeat."""
    repeated: bool


@dataclass(frozen=True, slots=True)
class Author:
    """Who said something, as the channel names them."""

    id: str
    name: str


class Agent:
    """An agent that lives for as long as its `async with` block.

        async with klbr.Agent("ada", model="qwen3", base_url="http://127.0.0.1:8080", store="ada.db") as agent:
            await agent.say("Hello!")

    `model` is a model's name at an OpenAI-compatible server, or a Model of one's own. The server is `base_url`; else what
    the environment says (KLBR_BASE_URL, KLBR_API_KEY, OPENAI_BASE_URL, OPENAI_API_KEY). `store` is a file, which the agent
    goes on from; without one it is kept in memory. Everything else has the defaults of the daemon.
    """

    def __init__(
        self,
        name: str,
        *,
        model: str | Model,
        store: str | os.PathLike[str] | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        tools: Sequence[Tool[..., Any]] = (),
        channels: Sequence[Channel] = (),
        soul: str | None = None,
        effort: str | None = None,
        tool_choice: Literal["auto", "required"] | None = None,
        context_tokens: int | None = None,
        max_output_tokens: int | None = None,
        steps: int | None = None,
    ) -> None:
        self.name = name
        self._model = model
        self._server = {"base_url": base_url, "api_key": api_key}
        self._tools = list(tools)
        self._channels = list(channels)
        self._settings = {
            "name": name,
            "model": model if isinstance(model, str) else type(model).__name__,
            "store": None if store is None else os.fspath(store),
            "soul": soul,
            "effort": effort,
            "tool_choice": tool_choice,
            "context_tokens": context_tokens,
            "max_output_tokens": max_output_tokens,
            "steps": steps,
        }
        self._running: _native.Agent | None = None
        self._listening: list[asyncio.Task[None]] = []

    @overload
    def tool(self, function: Callable[P, Awaitable[R]], /) -> Tool[P, R]: ...

    @overload
    def tool(
        self,
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

    def tool(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Gives it a tool, as `klbr.tool` makes one. Before it starts: what a model was told of never changes."""
        if self._running is not None:
            raise ConfigError("an agent is given its tools before it starts")

        def add(function: Callable[..., Any]) -> Tool[..., Any]:
            made: Tool[..., Any] = tool(**options)(function)
            self._tools.append(made)
            return made

        return add if function is None else add(function)

    async def __aenter__(self) -> Self:
        if self._running is not None:
            raise ConfigError("the agent has been started already")
        model = None if isinstance(self._model, str) else functools.partial(_model.sample, self._model)
        self._running = await _native.start(
            json.dumps(self._settings),
            [(json.dumps(one.spec()), one.run) for one in self._tools],
            [_channel.spec(channel) for channel in self._channels],
            model,
            self._lookup(),
        )
        self._listening = [
            asyncio.create_task(channel.listen(self), name=f"klbr:{channel.instance}") for channel in self._channels
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        running = self._here()
        for task in self._listening:
            task.cancel()
        try:
            ends = await asyncio.gather(*self._listening, return_exceptions=True)
        finally:
            self._listening = []
            await running.shutdown()
        faults = [end for end in ends if isinstance(end, Exception)]
        if faults and error is None:
            raise faults[0]

    async def say(self, text: str, *, key: str | None = None) -> Admission:
        """Says something to it as its operator; when this returns, it is durable. The same key is the same message."""
        return Admission(*await self._here().say(key or uuid.uuid4().hex, text))

    async def admit(
        self,
        text: str,
        *,
        source: str,
        key: str,
        priority: Literal["ambient", "directed"],
        conversation: str | None = None,
        author: Author | str | None = None,
        attributes: Mapping[str, str] | None = None,
        attention: Literal["dm", "mention"] | None = None,
        kind: Literal["channel", "timer", "job", "team", "system"] = "channel",
        amends: tuple[str, Literal["edited", "deleted", "reacted"]] | None = None,
    ) -> Admission:
        """Tells it of something that happened; when this returns, it is durable.

        `source` is the channel's instance name and `key` names the happening there, such as `msg:7`: the same key is the
        same event. `attention` makes an item that the agent is to decide about.
        """
        if isinstance(author, str):
            author = Author(author, author)
        event = {
            "kind": kind,
            "instance": source,
            "external_id": key,
            "priority": priority,
            "text": text,
            "conversation": conversation,
            "author": author and {"id": author.id, "name": author.name},
            "attributes": list((attributes or {}).items()),
            "attention": attention,
            "amends": amends,
        }
        return Admission(*await self._here().admit(json.dumps(event)))

    def updates(self, after: int | None = None) -> AsyncIterator[Update]:
        """Everything that happens, from the record after `after` on, and from this start on when it is None.

        Durable updates have an id, come in order and are never missed; live pieces come only while one listens. Ends when
        the agent has stopped.
        """
        return self._updates(self._here(), after)

    @staticmethod
    async def _updates(running: _native.Agent, after: int | None) -> AsyncIterator[Update]:
        updates = await running.updates(after)
        while await updates.ready():
            while (told := updates.take()) is not None:
                yield parse_update(told)

    async def interrupt(self) -> None:
        """Ends the running turn; what waits is then shown as usual."""
        await self._control({"verb": "interrupt"})

    async def stop(self) -> None:
        """Ends the running turn; the agent stays quiet until something new arrives."""
        await self._control({"verb": "stop"})

    async def reset(self) -> None:
        """Empties the transcript; history stays searchable."""
        await self._control({"verb": "reset"})

    async def compact(self) -> None:
        """Summarises the conversation now."""
        await self._control({"verb": "compact"})

    async def set_soul(self, text: str) -> None:
        """Replaces the soul, from the next turn on."""
        await self._control({"verb": "soul", "text": text})

    async def resolve(self, action: str, *, allow: bool) -> None:
        """Decides about an effect that is held."""
        await self._control({"verb": "resolve", "action": action, "allow": allow})

    async def status(self) -> dict[str, Any]:
        """How it is doing, as the daemon's API tells it."""
        return await self._here().status()

    async def ledger(self) -> dict[str, int]:
        """Where every event is: `admitted` is the sum of the rest."""
        return await self._here().ledger()

    async def waiting(self, limit: int = 100) -> list[dict[str, Any]]:
        """The events that wait, most urgent first."""
        return await self._here().waiting(limit)

    async def attention(self, limit: int = 100) -> list[dict[str, Any]]:
        """What was addressed to it: undecided items first, each kind newest first."""
        return await self._here().attention(limit)

    async def search(self, text: str, *, limit: int = 20, source: str | None = None) -> list[dict[str, Any]]:
        """Looks for text in everything that was said, heard and answered; best first."""
        return await self._here().search(search(text, limit, source))

    async def remember(self, text: str, *, tags: Sequence[str] = (), pinned: bool = False) -> dict[str, Any]:
        """Adds a memory. Pinned ones stand in every prompt that is made from here on."""
        now = time.time_ns() // 1_000_000
        return await self._here().remember(uuid.uuid4().hex, text, list(tags), pinned, now)

    async def _control(self, command: dict[str, Any]) -> None:
        await self._here().control(uuid.uuid4().hex, json.dumps(command))

    def _here(self) -> _native.Agent:
        if self._running is None:
            raise StoppedError("the agent has not been started: use `async with`")
        return self._running

    def _lookup(self) -> dict[str, str]:
        given, key = self._server["base_url"], self._server["api_key"]
        if given is None and key is None:
            return {name: os.environ[name] for name in _SERVER if name in os.environ}
        return {name: value for name, value in (("KLBR_BASE_URL", given), ("KLBR_API_KEY", key)) if value is not None}


def search(text: str, limit: int, source: str | None, offset: int = 0) -> str:
    """A search as the native half takes it."""
    asked = {"text": text, "since": None, "until": None, "source": source, "conversation": None}
    return json.dumps({**asked, "limit": limit, "offset": offset})
