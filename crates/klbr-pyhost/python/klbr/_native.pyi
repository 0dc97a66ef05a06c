"""The native half of klbr."""

import os
import pathlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, final

__all__ = [
    "Agent",
    "Answer",
    "Change",
    "Context",
    "Diagnostic",
    "Edit",
    "Extraction",
    "Hit",
    "Index",
    "Inserted",
    "Pieces",
    "Planned",
    "Range",
    "Store",
    "Symbol",
    "Tokenizer",
    "Updates",
    "apply",
    "chunk",
    "content_hash",
    "diagnostics",
    "escape",
    "halves",
    "languages",
    "outline",
    "plan",
    "prompt_name",
    "resolve",
    "start",
    "symbols",
    "unescape",
    "update_schema",
    "__version__",
]

__version__: str

# Agents: used by klbr._agent, klbr._channel and klbr._model, which say it in Python's words.

def start(
    settings: str,
    tools: Sequence[tuple[str, Callable[[str, str], Awaitable[str]]]],
    channels: Sequence[
        tuple[str, Callable[[str], Awaitable[str]], Callable[[str], Awaitable[str]] | None]
    ],
    model: Callable[[str, Pieces], Awaitable[str]] | None,
    server: Mapping[str, str],
) -> Awaitable[Agent]:
    """Starts an agent on the running event loop; the coroutine answers with it.

    `settings` is JSON. `model` is a coroutine function, or None for a server, which `server` tells of by the names of
    klbr's settings.
    """

def update_schema() -> dict[str, Any]:
    """The JSON Schema of an update, which the package's types are generated from."""

@final
class Agent:
    """A running agent."""

    def admit(self, event: str) -> Awaitable[tuple[int, bool]]:
        """Admits an event that is told in JSON; answers with its number and whether it is a repeat."""
    def say(self, key: str, text: str) -> Awaitable[tuple[int, bool]]:
        """Says something as the operator."""
    def control(self, key: str, control: str) -> Awaitable[tuple[int, bool]]:
        """Gives a management command that is told in JSON."""
    def updates(self, after: int | None) -> Awaitable[Updates]:
        """Everything after a record; after what was there before this process, when it is None."""
    def status(self) -> Awaitable[dict[str, Any]]:
        """How it is doing."""
    def ledger(self) -> Awaitable[dict[str, int]]:
        """Where every event is."""
    def waiting(self, limit: int) -> Awaitable[list[dict[str, Any]]]:
        """The events that wait."""
    def attention(self, limit: int) -> Awaitable[list[dict[str, Any]]]:
        """What was addressed to it."""
    def search(self, search: str) -> Awaitable[list[dict[str, Any]]]:
        """Looks for text in its history; the search is told in JSON."""
    def remember(
        self, key: str, text: str, tags: Sequence[str], pinned: bool, at: int
    ) -> Awaitable[dict[str, Any]]:
        """Remembers a text; `key` makes a repeat known."""
    def shutdown(self) -> Awaitable[None]:
        """Stops it in order."""

@final
class Updates:
    """What happens to an agent, update by update.

    One that was fetched stays until it is taken, so that a cancelled wait loses none.
    """

    def ready(self) -> Awaitable[bool]:
        """Waits until there is an update to take; answers False when the agent has stopped and all was told."""
    def take(self) -> dict[str, Any] | None:
        """The oldest update that was not taken yet, if one is here."""

@final
class Pieces:
    """Where a model's task puts the pieces of its reply."""

    def think(self, text: str) -> None:
        """A piece of reasoning."""
    def scratch(self, text: str) -> None:
        """A piece of plain text."""
    def call(self, name: str) -> None:
        """A call has begun."""

@final
class Store:
    """A store that is read."""

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Store:
        """Opens the file, which has to be there."""
    def close(self) -> None:
        """Closes it; every question after that is refused."""
    def agents(self) -> list[str]:
        """The agents that are kept here, by name."""
    def last(self, agent: str) -> int:
        """The number of an agent's newest record."""
    def records(self, agent: str, after: int, limit: int) -> list[dict[str, Any]]:
        """The records after `after`, at most `limit`."""
    def updates(self, agent: str, after: int, limit: int) -> tuple[list[dict[str, Any]], int | None]:
        """What clients were told by the records after `after`, and the number of the last one that was looked at."""
    def ledger(self, agent: str) -> dict[str, int]:
        """Where every event of an agent is."""
    def search(self, agent: str, search: str) -> list[dict[str, Any]]:
        """Looks for text in an agent's history; the search is told in JSON."""
    def memories(self, agent: str, text: str, tags: Sequence[str], limit: int) -> list[dict[str, Any]]:
        """What an agent remembers, best first."""
    def result(self, agent: str, id: int) -> str | None:
        """The whole text of a call's result by its number, if it was ever given."""

# Text in pieces.

@final
class Tokenizer:
    """Tokens as a model's own tokenizer has them."""

    @staticmethod
    def from_json(data: bytes) -> Tokenizer:
        """Reads the bytes of a `tokenizer.json`."""
    def count(self, text: str) -> int:
        """How many tokens a text has."""

def chunk(text: str, *, size: int = 480, overlap: int = 64, tokens: str | Tokenizer = "estimate") -> list[str]:
    """Cuts a text into pieces of at most `size` tokens; a piece repeats up to `overlap` tokens of the one before.

    `tokens` says where tokens stand: "words", "estimate" (one for every two bytes) or a Tokenizer.
    """

def halves(piece: str, /) -> tuple[str, str] | None:
    """Splits a piece in two at the best place about its middle; None when it has fewer than two characters."""

# What a model reads.

@final
class Context:
    """Results as a model reads them: numbered, capped, and named instead of repeated.

    Limits are given by name: max_lines, max_chars, head_lines, head_chars, tail_lines, tail_chars, window_lines,
    window_chars, table_rows.
    """

    def __new__(cls, **limits: int) -> Context: ...
    @property
    def last(self) -> str | None:
        """The id of the newest result."""
    def read(
        self,
        path: str,
        content: bytes,
        *,
        file: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> Inserted:
        """A read of a file: its lines, or the name of the earlier result that shows them already."""
    def change(
        self,
        path: str,
        before: bytes | None,
        after: bytes | None,
        *,
        file: str | None = None,
        note: str | None = None,
    ) -> Inserted:
        """The change of a file, as a diff."""
    def output(self, text: str, *, tool: str = "", arguments: str = "") -> Inserted:
        """The answer of any other call. Answers of list, glob, grep and search are said once."""
    def recall(
        self, target: str, stored: str | None, *, offset: int | None = None, limit: int | None = None
    ) -> Inserted:
        """An earlier result again; `stored` is what was kept of it."""
    def unseen(self, file: str, content: bytes | None) -> str | None:
        """Why a file must not be changed now: it was never read, or is not as it was read. None when it may."""
    def table(self, through: str) -> str | None:
        """The table of reads that follows a summary of everything up to a result."""
    def compacted(self, through: str) -> None:
        """Forgets the results up to this one, which a summary replaced."""

@final
class Inserted:
    """A result as it is inserted."""

    @property
    def id(self) -> str:
        """Its id, such as `#0001`."""
    @property
    def text(self) -> str:
        """What the model reads."""
    @property
    def stored(self) -> str:
        """The result in full."""

def escape(text: str, /) -> str:
    """People's text as it stands in a block: nothing in it can be read as one."""

def unescape(text: str, /) -> str:
    """The inverse of `escape`."""

def resolve(base: str, path: str) -> str:
    """A path as it is meant, by its text alone: absolute, without `.` and `..`."""

def prompt_name(root: str, home: str | None, file: str) -> str:
    """A file as a prompt names it: relative to the project's root, else to the home, else absolute."""

# Code intelligence.

def symbols(
    source: str | bytes, *, path: str | os.PathLike[str] | None = None, language: str | None = None
) -> Extraction:
    """Every definition and mention of a text."""

def outline(
    source: str | bytes, *, path: str | os.PathLike[str] | None = None, language: str | None = None
) -> str:
    """The definitions of a text as lines for a reader."""

def diagnostics(
    source: str | bytes, *, path: str | os.PathLike[str] | None = None, language: str | None = None
) -> list[Diagnostic]:
    """Where a text leaves its grammar; empty for a text without fault."""

def languages() -> list[str]:
    """The languages of this build, by their names."""

def plan(
    source: str | bytes,
    edits: Sequence[Edit],
    *,
    path: str | os.PathLike[str] | None = None,
    language: str | None = None,
) -> Planned:
    """Plans edits on a text, all or none, each against the text as it is. Writes nothing."""

def apply(files: Sequence[tuple[str | os.PathLike[str], str, Sequence[Edit]]], /) -> list[dict[str, Any]]:
    """Applies edits to files, all of all files or none. Each file comes with the hash that its edits were planned on."""

def content_hash(source: str | bytes, /) -> str:
    """The hash of a text, which an edit of its file names."""

@final
class Range:
    """A region of a text. Bytes and columns are counted from 0, lines from 1; columns are in bytes."""

    @property
    def start_byte(self) -> int: ...
    @property
    def end_byte(self) -> int: ...
    @property
    def start_line(self) -> int: ...
    @property
    def start_column(self) -> int: ...
    @property
    def end_line(self) -> int: ...
    @property
    def end_column(self) -> int: ...
    def of(self, source: str, /) -> str:
        """The region's text, of the text that the range was made from."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Symbol:
    """One definition, or one mention of a name."""

    @property
    def name(self) -> str:
        """The bare name."""
    @property
    def path(self) -> str:
        """A definition's address within its file; a mention's path as written."""
    @property
    def kind(self) -> str:
        """What kind of thing it is."""
    @property
    def is_definition(self) -> bool:
        """Whether it defines the name; else it mentions it."""
    @property
    def range(self) -> Range:
        """The whole definition without what is attached to it; a mention's path."""
    @property
    def name_range(self) -> Range:
        """The name alone."""
    @property
    def attached_range(self) -> Range:
        """The definition with its decorators, attributes and doc comments."""
    @property
    def body_range(self) -> Range | None:
        """The body, where there is one."""
    @property
    def docs(self) -> str | None:
        """The documentation without its comment marks."""
    @property
    def signature(self) -> str | None:
        """The definition up to its body, on one line."""
    @property
    def container(self) -> str | None:
        """The address of the definition that it stands in."""
    @property
    def degraded(self) -> bool:
        """Whether it stands in or after a broken region: its path and extent may be wrong."""
    def to_dict(self) -> dict[str, Any]:
        """Everything about it as plain data."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Extraction:
    """Everything that one text says."""

    @property
    def language(self) -> str:
        """The language that it was read as."""
    @property
    def errors(self) -> int:
        """Broken regions and missing tokens that were skipped."""
    @property
    def symbols(self) -> list[Symbol]:
        """Definitions and mentions in the order of the text."""
    def definitions(self, name: str | None = None) -> list[Symbol]:
        """The definitions; those that answer to a name, a path or the end of one when it is given."""
    def references(self, name: str | None = None) -> list[Symbol]:
        """The mentions; those of a name, or of a path's end, when it is given. By name alone: bindings are not
        resolved."""
    def at(self, byte: int, /) -> Symbol | None:
        """The innermost definition around a byte."""
    def tree(self) -> list[dict[str, Any]]:
        """The definitions as a tree of plain data."""
    def __len__(self) -> int: ...

@final
class Diagnostic:
    """One problem and where it is."""

    @property
    def range(self) -> Range:
        """The region; empty for a missing token."""
    @property
    def kind(self) -> str:
        """`error`, `missing` or `invalid_utf8`."""

@final
class Edit:
    """One edit of one definition, which `target` has to name alone."""

    @staticmethod
    def replace_symbol(target: str, text: str, *, attached: bool = False) -> Edit:
        """Puts `text` in the place of the definition; an empty text removes it."""
    @staticmethod
    def replace_symbol_body(target: str, text: str) -> Edit:
        """Puts `text` in the place of the body."""
    @staticmethod
    def insert_before(target: str, text: str) -> Edit:
        """Puts `text` on lines of its own before the definition."""
    @staticmethod
    def insert_after(target: str, text: str) -> Edit:
        """Puts `text` on lines of its own after the definition."""
    @staticmethod
    def rename_in_file(target: str, name: str) -> Edit:
        """Renames the definition and its mentions within the file."""

@final
class Change:
    """One region that an edit replaced."""

    @property
    def target(self) -> str:
        """The definition that the edit named."""
    @property
    def before(self) -> Range:
        """The region in the old text."""
    @property
    def after(self) -> Range:
        """The region in the new text."""

@final
class Planned:
    """A proven edit that is not written."""

    @property
    def data(self) -> bytes:
        """The whole new text, as bytes."""
    @property
    def text(self) -> str:
        """The whole new text; bytes that are no UTF-8 become U+FFFD."""
    @property
    def diff(self) -> str:
        """The difference as a unified diff."""
    @property
    def hash(self) -> str:
        """The new text's hash."""
    @property
    def changes(self) -> list[Change]:
        """What differs; everything else is byte-identical."""

@final
class Index:
    """The names of a tree and where they stand."""

    @staticmethod
    def build(
        root: str | os.PathLike[str],
        *,
        languages: Sequence[str] | None = None,
        threads: int = 0,
        hidden: bool = False,
        obey_ignore_files: bool = True,
    ) -> Index:
        """Reads and parses a whole tree."""
    @property
    def bytes(self) -> int:
        """Bytes of memory held for symbols."""
    def refresh(self) -> dict[str, Any]:
        """Takes in what has changed since; answers with a report."""
    def definitions(
        self,
        name: str,
        *,
        kinds: Sequence[str] | None = None,
        below: str | os.PathLike[str] | None = None,
        limit: int = 1000,
    ) -> Answer:
        """The definitions that answer to a name, a path or the end of one."""
    def references(
        self,
        name: str,
        *,
        kinds: Sequence[str] | None = None,
        below: str | os.PathLike[str] | None = None,
        limit: int = 1000,
    ) -> Answer:
        """The mentions of a name, or of a path's end."""
    def search(
        self,
        text: str,
        *,
        kinds: Sequence[str] | None = None,
        below: str | os.PathLike[str] | None = None,
        limit: int = 1000,
    ) -> Answer:
        """The definitions whose names hold a text; case counts only if it has capitals."""

@final
class Answer:
    """What was found, and what that rests on."""

    @property
    def hits(self) -> list[Hit]:
        """What was found, by path and place."""
    @property
    def more(self) -> bool:
        """Whether there is more than was asked for."""
    @property
    def searched(self) -> int:
        """Files that it rests on."""
    @property
    def coverage(self) -> str:
        """What it rests on, for a reader."""

@final
class Hit:
    """One symbol and the file it stands in."""

    @property
    def path(self) -> pathlib.Path:
        """The file, relative to the root."""
    @property
    def language(self) -> str:
        """Its language."""
    @property
    def hash(self) -> str:
        """The hash of the text that the symbol's ranges are of."""
    @property
    def symbol(self) -> Symbol:
        """The symbol."""
