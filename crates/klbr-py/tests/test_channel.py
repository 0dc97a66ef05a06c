"""A channel of one's own: it hears, it speaks, and the agent knows what it has answered."""

from __future__ import annotations

import asyncio

import pytest

import klbr
from conftest import WAIT, run, until
from klbr import updates


class Room(klbr.Channel):
    """A room in memory."""

    instance = "room"
    mark = "room_mark"
    alias_prefix = "r"
    instructions = "Be kind."

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []
        self.heard = asyncio.Event()

    async def deliver(self, delivery: klbr.Delivery, /, content: str) -> klbr.Sent:
        """Says something in the room."""
        if not content:
            raise klbr.ToolError("Not sent: it is empty.")
        assert delivery.destination is not None and delivery.conversations == {"r1": delivery.destination}
        self.said.append((delivery.action, content))
        [anchor] = delivery.anchors
        return klbr.Sent(delivery.destination, messages=["msg:2"], reply_to=anchor.key)

    async def listen(self, agent: klbr.Agent) -> None:
        await agent.admit(
            "ada: are you there?",
            source="room",
            key="msg:1",
            priority="directed",
            conversation="kitchen",
            author=klbr.Author("7", "Grace"),
            attention="mention",
        )
        self.heard.set()


def test_it_hears_and_speaks() -> None:
    async def body() -> None:
        room = Room()
        model = klbr.ScriptedModel(klbr.Reply(calls=[klbr.Call("room_send", {"content": "I am here."}), WAIT]))
        async with klbr.Agent("ada", model=model, channels=[room]) as agent:
            seen = await until(agent, updates.Waiting)
            [item] = await agent.attention()
        [said] = [update for update in seen if isinstance(update, updates.Delivered)]
        assert (said.channel, said.text) == ("room", "I am here.")
        assert [text for _, text in room.said] == ["I am here."]
        assert (item["item"], item["status"], item["bucket"]) == ("msg:1", "acted", "mention")
        shown = model.requests[0].messages[0]["text"]
        assert "Grace" in shown and "are you there?" in shown and "Be kind." in shown
        assert '"room_mark"' in model.requests[0].tools

    run(body())


def test_a_refused_delivery_says_why() -> None:
    async def body() -> None:
        model = klbr.ScriptedModel(klbr.Call("room_send", {"content": ""}), klbr.Reply(calls=[WAIT]))
        async with klbr.Agent("ada", model=model, channels=[Room()]) as agent:
            seen = await until(agent, updates.ActionEnded)
        [ended] = [update for update in seen if isinstance(update, updates.ActionEnded)]
        assert ended.result == "Not sent: it is empty."

    run(body())


def test_what_listening_raises_is_raised_at_the_end() -> None:
    class Deaf(Room):
        async def listen(self, agent: klbr.Agent) -> None:
            self.heard.set()
            raise ConnectionError("no line")

    async def body() -> None:
        room = Deaf()
        with pytest.raises(ConnectionError, match="no line"):
            async with klbr.Agent("ada", model=klbr.ScriptedModel(), channels=[room]):
                await room.heard.wait()

    run(body())


def test_a_channel_without_a_name_is_refused() -> None:
    class Nameless(klbr.Channel):
        async def deliver(self, delivery: klbr.Delivery, /, content: str) -> None:
            """Speaks."""

    async def body() -> None:
        async with klbr.Agent("ada", model=klbr.ScriptedModel(), channels=[Nameless()]):
            pass

    with pytest.raises(klbr.ConfigError, match="Nameless"):
        run(body())


def test_edits_are_events_that_name_the_older_one() -> None:
    async def body() -> None:
        model = klbr.ScriptedModel(klbr.Reply(calls=[WAIT]))
        async with klbr.Agent("ada", model=model) as agent:
            place = {"source": "room", "conversation": "kitchen", "author": "Grace"}
            await agent.admit("chatter", key="msg:1", priority="ambient", **place)  # type: ignore[arg-type]
            await agent.admit(
                "better chatter", key="edit:1", priority="ambient", amends=("msg:1", "edited"), **place  # type: ignore[arg-type]
            )
            await agent.admit("ada?", key="msg:2", priority="directed", **place)  # type: ignore[arg-type]
            await until(agent, updates.Waiting)
        shown = model.requests[0].messages[0]["text"]
        assert "better chatter" in shown and ">chatter" not in shown

    run(body())
