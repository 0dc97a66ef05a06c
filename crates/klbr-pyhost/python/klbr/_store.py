"""Reading a store: what agents were told, said and did."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from . import _native
from ._agent import search
from .updates import Update, parse_update

__all__ = ["Store"]

_PAGE = 256


class Store:
    """A store, opened to be read, also while a daemon writes it. Its methods block; other threads run on.

        with klbr.Store.open("ada.db") as store:
            for update in store.updates("ada"):
                print(update)
    """

    def __init__(self, native: _native.Store) -> None:
        self._native = native

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Opens a file, which has to be there. Raises StoreError when it is not, or is no store of this release."""
        return cls(_native.Store.open(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes it; every question after that raises StoreError."""
        self._native.close()

    def agents(self) -> list[str]:
        """The agents that are kept here, by name."""
        return self._native.agents()

    def records(self, agent: str, *, after: int = 0) -> Iterator[dict[str, Any]]:
        """Every record after a number, in order: what became durable, as the store keeps it."""
        while page := self._native.records(agent, after, _PAGE):
            yield from page
            after = page[-1]["seq"]

    def updates(self, agent: str, *, after: int = 0) -> Iterator[Update]:
        """Everything that an operator's client would have been told."""
        last: int | None = after
        while last is not None:
            page, last = self._native.updates(agent, last, _PAGE)
            yield from map(parse_update, page)

    def last(self, agent: str) -> int:
        """The number of an agent's newest record; 0 for one that is unknown."""
        return self._native.last(agent)

    def ledger(self, agent: str) -> dict[str, int]:
        """Where every event is: `admitted` is the sum of the rest."""
        return self._native.ledger(agent)

    def search(
        self, agent: str, text: str, *, limit: int = 20, offset: int = 0, source: str | None = None
    ) -> list[dict[str, Any]]:
        """Looks for text in everything that was said, heard and answered; best first."""
        return self._native.search(agent, search(text, limit, source, offset))

    def memories(
        self, agent: str, text: str = "", *, tags: Sequence[str] = (), limit: int = 100
    ) -> list[dict[str, Any]]:
        """What an agent remembers under all of the tags and, unless empty, fits the text; best first."""
        return self._native.memories(agent, text, list(tags), limit)

    def result(self, agent: str, number: int) -> str | None:
        """The whole text of a call's result, if it was ever given."""
        return self._native.result(agent, number)
