"""Reading a store that an agent has written, and refusing what is none."""

from __future__ import annotations

import pathlib
import threading

import pytest

import klbr
from conftest import run, speaks, until
from klbr import updates


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """A store with one conversation in it."""

    async def body(path: pathlib.Path) -> None:
        async with klbr.Agent("ada", model=klbr.ScriptedModel(speaks("It is raining.")), store=path) as agent:
            await agent.say("How is the weather in Lisbon?")
            await until(agent, updates.Waiting)
            await agent.remember("Lisbon is by the sea.", tags=["conversation:d1"])
            # A search waits until everything can be found; one from outside finds what is there.
            await agent.search("Lisbon")

    run(body(tmp_path / "ada.db"))
    return tmp_path / "ada.db"


def test_everything_can_be_read(path: pathlib.Path) -> None:
    with klbr.Store.open(path) as store:
        assert store.agents() == ["ada"]
        records = list(store.records("ada"))
        assert [record["seq"] for record in records] == list(range(1, store.last("ada") + 1))
        assert list(store.records("ada", after=store.last("ada"))) == []
        said = [update.text for update in store.updates("ada") if isinstance(update, updates.Delivered)]
        assert said == ["It is raining."]
        ledger = store.ledger("ada")
        assert ledger["admitted"] == 1 == sum(n for term, n in ledger.items() if term != "admitted")
        [hit] = store.search("ada", "Lisbon")
        assert hit["source"] == "local" and "Lisbon" in hit["excerpt"]
        assert store.search("ada", "Lisbon", source="agent") == []
        [memory] = store.memories("ada", "sea")
        assert memory["tags"] == ["conversation:d1"]
        assert store.memories("ada", tags=["conversation:d2"]) == []
        assert store.result("ada", 999) is None
        assert store.last("nobody") == 0


def test_a_store_is_read_while_it_is_written(path: pathlib.Path) -> None:
    async def body() -> None:
        async with klbr.Agent("ada", model=klbr.ScriptedModel(speaks("Still.")), store=path) as agent:
            await agent.say("And now?")
            await until(agent, updates.Waiting)
            with klbr.Store.open(path) as store:
                said = [update.text for update in store.updates("ada") if isinstance(update, updates.Delivered)]
                assert said == ["It is raining.", "Still."]

    run(body())


def test_threads_read_at_once(path: pathlib.Path) -> None:
    with klbr.Store.open(path) as store:
        counts: list[int] = []
        threads = [
            threading.Thread(target=lambda: counts.append(len([list(store.records("ada")) for _ in range(20)][0])))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counts == [store.last("ada")] * 8


def test_what_is_no_store_is_refused(tmp_path: pathlib.Path, path: pathlib.Path) -> None:
    with pytest.raises(klbr.StoreError, match="missing.db"):
        klbr.Store.open(tmp_path / "missing.db")
    store = klbr.Store.open(path)
    with pytest.raises(klbr.ConfigError, match="name"):
        store.ledger("Not A Name")
    store.close()
    with pytest.raises(klbr.StoreError):
        store.agents()
