"""An agent in a Python process: what it says, what it remembers, how it is stopped, what it refuses."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

import klbr
from conftest import WAIT, ModelServer, run, speaks, until
from klbr import updates


def test_it_answers_its_operator_through_a_delivery() -> None:
    async def body() -> None:
        model = klbr.ScriptedModel(klbr.Reply("thinking aloud", speaks("Good morning.").calls))
        async with klbr.Agent("ada", model=model) as agent:
            admission = await agent.say("Hello!", key="greeting")
            repeat = await agent.say("Hello!", key="greeting")
            assert (admission.repeated, repeat) == (False, klbr.Admission(admission.event, repeated=True))
            seen = await until(agent, updates.Waiting)
        [said] = [update for update in seen if isinstance(update, updates.Delivered)]
        assert (said.text, said.channel, said.type) == ("Good morning.", "local", "delivered")
        [replied] = [update for update in seen if isinstance(update, updates.Replied)]
        assert replied.scratch == "thinking aloud" and replied.calls == ["local_send", "wait_and_continue"]
        durable = [update.id for update in seen if update.id is not None]
        assert durable == sorted(durable)
        [request] = model.requests
        assert "Hello!" in request.messages[0]["text"] and '"local_send"' in request.tools

    run(body())


def test_it_goes_on_from_its_store(tmp_path: pathlib.Path) -> None:
    async def body() -> None:
        path = tmp_path / "ada.db"
        async with klbr.Agent("ada", model=klbr.ScriptedModel(speaks("one")), store=path) as agent:
            await agent.say("first", key="1")
            await until(agent, updates.Waiting)
        second = klbr.ScriptedModel(speaks("two"))
        async with klbr.Agent("ada", model=second, store=path) as agent:
            assert (await agent.say("first", key="1")).repeated
            await agent.say("second", key="2")
            seen = await until(agent, updates.Waiting)
            assert [update.text for update in seen if isinstance(update, updates.Delivered)] == ["two"]
            everything = [update async for update in _some(agent.updates(0), 20)]
            assert [update.text for update in everything if isinstance(update, updates.Delivered)] == ["one", "two"]
            ledger = await agent.ledger()
            assert ledger["admitted"] == 2 == sum(n for term, n in ledger.items() if term != "admitted")
        assert "first" in second.requests[0].messages[0]["text"]

    run(body())


async def _some(stream: AsyncIterator[updates.Update], at_most: int) -> AsyncIterator[updates.Update]:
    while at_most > 0:
        try:
            yield await asyncio.wait_for(anext(stream), 0.5)
        except (TimeoutError, StopAsyncIteration):
            return
        at_most -= 1


def test_a_server_is_named_by_its_address(model_server: ModelServer) -> None:
    async def body() -> None:
        async with klbr.Agent("ada", model="tiny", base_url=model_server.url, api_key="k") as agent:
            await agent.say("Hello!")
            seen = await until(agent, updates.Waiting)
        assert [update.text for update in seen if isinstance(update, updates.Delivered)] == ["Hello from the server."]
        assert model_server.requests[0]["model"] == "tiny"

    run(body())


def test_a_server_is_named_by_the_environment(model_server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with klbr.Agent("ada", model="tiny") as agent:
            await agent.say("Hello!")
            await until(agent, updates.Delivered)

    monkeypatch.setenv("KLBR_BASE_URL", model_server.url)
    run(body())
    monkeypatch.delenv("KLBR_BASE_URL")
    with pytest.raises(klbr.ConfigError, match="KLBR_BASE_URL"):
        run(body())


def test_a_model_streams_its_pieces() -> None:
    class Streaming:
        async def sample(self, request: klbr.Request) -> AsyncIterator[str | klbr.Think | klbr.Reply]:
            yield klbr.Think("hm")
            yield "one "
            await asyncio.sleep(0)
            yield "two"
            yield klbr.Reply("one two", [WAIT], reasoning="hm", usage=klbr.Usage(10, 2))

    async def body() -> None:
        async with klbr.Agent("ada", model=Streaming()) as agent:
            stream = agent.updates()
            await agent.say("Hello!")
            seen = []
            async for update in stream:
                seen.append(update)
                if isinstance(update, updates.Replied):
                    break
        [replied] = [update for update in seen if isinstance(update, updates.Replied)]
        assert (replied.scratch, replied.think) == ("one two", "hm")

    run(body())


def test_live_pieces_reach_a_client_that_listens() -> None:
    heard = asyncio.Event()

    class Slow:
        async def sample(self, request: klbr.Request) -> AsyncIterator[str | klbr.Think]:
            await heard.wait()
            yield klbr.Think("why")
            yield "because"
            await asyncio.sleep(3600)

    async def body() -> None:
        async with klbr.Agent("ada", model=Slow()) as agent:
            await agent.say("Hello!")
            live = []
            async for update in agent.updates():
                if isinstance(update, updates.TurnStarted):
                    # What is durable was told, so that from here on it is listened to.
                    heard.set()
                if update.id is None:
                    live.append(update)
                if isinstance(update, updates.ScratchDelta):
                    break
        assert [(type(one), getattr(one, "text", "")) for one in live] == [
            (updates.ThinkDelta, "why"),
            (updates.ScratchDelta, "because"),
        ]

    run(body())


def test_an_interrupt_cancels_a_sampling() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    class Stuck:
        async def sample(self, request: klbr.Request) -> str:
            begun.set()
            try:
                await asyncio.sleep(3600)
            finally:
                cancelled.set()
            return ""

    async def body() -> None:
        async with klbr.Agent("ada", model=Stuck()) as agent:
            await agent.say("Hello!")
            await begun.wait()
            await agent.stop()
            await cancelled.wait()
            await until(agent, updates.Consumed)

    run(body())


def test_what_a_model_raises_is_sorted() -> None:
    async def body() -> None:
        model = klbr.ScriptedModel(klbr.ModelError("busy"), ValueError("oops"), speaks("at last"))
        async with klbr.Agent("ada", model=model) as agent:
            await agent.say("Hello!")
            seen = await until(agent, updates.Waiting)
        failures = [update.failure for update in seen if isinstance(update, updates.SamplingFailed)]
        assert len(failures) == 2 and "busy" in failures[0] and "ValueError: oops" in failures[1]

    run(body())


def test_a_cancelled_wait_loses_no_update() -> None:
    async def body() -> None:
        model = klbr.ScriptedModel(speaks("one"))
        async with klbr.Agent("ada", model=model) as agent:
            native = await agent._here().updates(0)
            seen: list[dict[str, Any]] = []
            for _ in range(50):
                waiting = asyncio.ensure_future(native.ready())
                await asyncio.sleep(0)
                waiting.cancel()
            await agent.say("Hello!")
            while not any(one["type"] == "waiting" for one in seen):
                waiting = asyncio.ensure_future(native.ready())
                await asyncio.wait([waiting], timeout=0.001)
                waiting.cancel()
                while (told := native.take()) is not None:
                    seen.append(told)
        durable = [one["id"] for one in seen if one.get("id") is not None]
        kinds = [one["type"] for one in seen]
        assert durable == sorted(set(durable)) and kinds.count("delivered") == 1 and kinds.count("replied") == 1

    run(body())


def test_it_looks_back_and_remembers() -> None:
    async def body() -> None:
        async with klbr.Agent("ada", model=klbr.ScriptedModel(speaks("The cat is called Ada."))) as agent:
            await agent.say("What is the cat called?")
            await until(agent, updates.Waiting)
            hits = await agent.search("cat")
            assert {hit["source"] for hit in hits} == {"local", "agent"}
            memory = await agent.remember("The cat is Ada.", tags=["source:local"], pinned=True)
            assert (memory["text"], memory["pinned"]) == ("The cat is Ada.", True)
            status = await agent.status()
            assert status["activity"]["activity"] == "waiting"
            assert await agent.waiting() == [] and await agent.attention() == []

    run(body())


def test_what_cannot_be_is_refused_with_its_reason() -> None:
    async def body() -> None:
        with pytest.raises(klbr.ConfigError, match="beginning with a letter"):
            async with klbr.Agent("Not A Name", model=klbr.ScriptedModel()):
                pass
        agent = klbr.Agent("ada", model=klbr.ScriptedModel())
        with pytest.raises(klbr.StoppedError, match="async with"):
            await agent.say("too early")
        async with agent:
            with pytest.raises(klbr.AdmitError, match="external id"):
                await agent.admit("x", source="lines", key="", priority="ambient")
            with pytest.raises(klbr.ConfigError, match="before it starts"):
                agent.tool(name="late")
        with pytest.raises(klbr.StoppedError):
            await agent.say("too late")
        with pytest.raises(klbr.StoreError):
            async with klbr.Agent("ada", model=klbr.ScriptedModel(), store="/nowhere/at/all.db"):
                pass

    run(body())
    assert issubclass(klbr.ConfigError, klbr.KlbrError) and issubclass(klbr.ConfigError, ValueError)
