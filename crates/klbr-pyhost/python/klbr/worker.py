"""The hook worker: `python -m klbr.worker`. It imports what the manifest names and answers the host's calls.

It decides nothing about deadlines, retries or restarts: those are the host's.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from ._answers import WrongAnswer, encode_answer
from ._functions import make_namespace
from ._link import Connection
from ._log import CALL, send_logs
from ._protocol import Frame, ProtocolError
from ._types import QUESTIONS, parse_question
from .hooks import MARK, Hook, milliseconds

_HERE = os.path.dirname(os.path.abspath(__file__))
_TRACEBACK_LIMIT = 4096


@dataclass
class Bound:
    """A hook that was found where the manifest says."""

    kind: str
    name: str
    function: Callable[..., Any]
    wants_host: bool


class BadHook(Exception):
    """The manifest names something that is no such hook."""

    def __init__(self, message: str, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.file = file
        self.line = line


class Reads:
    """The host, as one call sees it."""

    def __init__(self, worker: Worker, call: int, kind: str) -> None:
        self._worker = worker
        self._call = call
        self._made = 0
        self._kind = kind
        self.commands: list[dict[str, Any]] = []
        for name, value in make_namespace(worker.reads, self._ask).items():
            if not hasattr(self, name):
                setattr(self, name, value)

    async def _ask(self, name: str, arguments: dict[str, Any]) -> Any:
        self._made += 1
        return await self._worker.connection.call(self._call, self._made, name, arguments)

    def _command(self, command: str, **fields: Any) -> None:
        if self._kind != "observer":
            raise PermissionError(f"a {self._kind} decides by what it returns; only an observer has commands")
        self.commands.append({"command": command, **fields})

    def admit(self, text: str, *, priority: str = "ambient") -> None:
        self._command("admit", text=text, priority=priority)

    def mark(self, item: str, status: str, note: str = "") -> None:
        self._command("mark", item=item, status=status, note=note)

    def remember(self, text: str, *, tags: list[str] | None = None) -> None:
        self._command("remember", text=text, tags=list(tags or ()))

    def schedule(self, text: str, *, after: Any) -> None:
        self._command("schedule", text=text, after_ms=milliseconds(after))


class Worker:
    """Answers calls, each in a task of its own, on the main thread."""

    def __init__(self, connection: Connection, hello: Frame, loop: asyncio.AbstractEventLoop) -> None:
        self.connection = connection
        self.loop = loop
        self.reads: list[dict[str, Any]] = hello.get("reads", [])
        self._bindings: list[dict[str, Any]] = hello.get("hooks", [])
        self._bound: dict[str, Bound] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        sys.path[:0] = hello.get("paths", [])

    def load(self) -> Frame:
        """Imports every hook and says what was found."""
        loaded, failed = [], []
        for binding in self._bindings:
            run = binding["run"]
            try:
                bound = find(run, binding["kind"], binding["name"])
            except BaseException as error:  # noqa: BLE001 - a module may raise anything, SystemExit too
                failed.append({"run": run, **describe(error)})
                continue
            self._bound[run] = bound
            loaded.append({"run": run, **_place(bound)})
        return {"t": "ready", "hooks": loaded, "failed": failed}

    def handle(self, frame: Frame) -> None:
        """Takes a frame from the host."""
        match frame["t"]:
            case "call":
                task = self.loop.create_task(self._answer(frame))
                self._tasks[frame["id"]] = task
                task.add_done_callback(lambda _: self._tasks.pop(frame["id"], None))
            case "cancel":
                if (running := self._tasks.get(frame["id"])) is not None:
                    running.cancel()
            case _:
                pass

    async def _answer(self, frame: Frame) -> None:
        call = frame["id"]
        CALL.set(call)
        try:
            reply = await self._run(frame)
        except asyncio.CancelledError as error:
            reply = {"error": {"kind": "cancelled", **describe(error)}}
        except WrongAnswer as error:
            reply = {"error": {"kind": "wrong_answer", **self._blame(frame, describe(error))}}
        except BaseException as error:  # noqa: BLE001 - a hook may raise anything, and it is its own failure
            reply = {"error": {"kind": "raised", **describe(error)}}
        try:
            self.connection.send({"t": "result", "id": call, **reply})
        except (TypeError, ValueError, RecursionError, ProtocolError) as error:
            message = {"kind": "wrong_answer", **self._blame(frame, describe(error))}
            self.connection.send({"t": "result", "id": call, "error": message})

    async def _run(self, frame: Frame) -> Frame:
        bound = self._bound.get(frame["hook"])
        if bound is None:
            raise BadHook(f"{frame['hook']} is not loaded")
        body = frame["body"]
        argument = body if bound.kind == "observer" else parse_question(body)
        host = Reads(self, frame["id"], bound.kind)
        value = bound.function(argument, host) if bound.wants_host else bound.function(argument)
        if inspect.isawaitable(value):
            value = await value
        if bound.kind == "slot":
            return {"ok": encode_answer(bound.name, value)}
        if bound.kind == "transform":
            return {"ok": _patch(bound.name, value)}
        return {"ok": {"commands": host.commands}}

    def _blame(self, frame: Frame, error: dict[str, Any]) -> dict[str, Any]:
        bound = self._bound.get(frame["hook"])
        return {**error, **(_where(bound.function) if bound else {})}


def _patch(name: str, value: Any) -> dict[str, Any]:
    """What a step changes: a text of its own stands for the field that the family words anew."""
    if value is None:
        return {}
    delivers = name == "delivery.format"
    if isinstance(value, str):
        return {"arguments" if delivers else "text": value}
    if delivers and isinstance(value, dict) and isinstance(value.get("arguments"), dict):
        return {**value, "arguments": json.dumps(value["arguments"], ensure_ascii=False)}
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return value
    expected = "the new text, the fields that change, or None"
    raise WrongAnswer(f"{name} is answered with {expected}, not with {type(value).__name__}")


def find(run: str, kind: str, name: str) -> Bound:
    """The function `module:function`, checked against what it is bound to. Raises BadHook, and what the module raises."""
    module_name, _, path = run.partition(":")
    target: Any = importlib.import_module(module_name)
    for part in path.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            raise BadHook(f"{module_name} has no {path}", getattr(target, "__file__", None)) from None
    if not callable(target):
        raise BadHook(f"{run} is not callable")
    place = _where(target)
    file, line = place.get("file"), place.get("line")
    mark: Hook | None = getattr(target, MARK, None)
    if mark is not None and (mark.kind, mark.name) != (kind, name):
        raise BadHook(f"{run} says it is the {mark.kind} {mark.name}, and is bound as the {kind} {name}", file, line)
    if kind == "slot" and name not in QUESTIONS:
        raise BadHook(f"there is no slot {name}", file, line)
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError) as error:
        raise BadHook(f"{run} has no signature: {error}", file, line) from None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not positional or len(needed) > 2 or any(p.kind is p.KEYWORD_ONLY for p in needed):
        raise BadHook(f"{run} takes a question and, if it likes, the host; it is {inspect.signature(target)}", file, line)
    if kind == "slot":
        _check_annotation(run, positional[0], name, file, line)
    return Bound(kind, name, target, len(positional) > 1)


def _check_annotation(run: str, parameter: inspect.Parameter, name: str, file: str | None, line: int | None) -> None:
    annotation = parameter.annotation
    word = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    word = word.rpartition(".")[2]
    known = {question.__name__ for question in QUESTIONS.values()}
    if word in known and word != QUESTIONS[name].__name__:
        message = f"{run} takes a {word}, and {name} asks with a {QUESTIONS[name].__name__}"
        raise BadHook(message, file, line)


def _where(function: Any) -> dict[str, Any]:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return {"file": code.co_filename, "line": code.co_firstlineno} if code else {}


def _place(bound: Bound) -> dict[str, Any]:
    mark: Hook | None = getattr(bound.function, MARK, None)
    return {
        **_where(bound.function),
        "deadline_ms": mark.deadline_ms if mark else None,
        "doc": (inspect.getdoc(bound.function) or "").partition("\n")[0],
    }


def describe(error: BaseException) -> dict[str, Any]:
    """Type, message, traceback, and the innermost line that is not the harness's own."""
    file, line = getattr(error, "file", None), getattr(error, "line", None)
    if isinstance(error, SyntaxError):
        file, line = error.filename, error.lineno
    elif file is None:
        for frame in traceback.extract_tb(error.__traceback__):
            inside = os.path.dirname(os.path.abspath(frame.filename)) == _HERE
            if not inside and not frame.filename.startswith("<frozen"):
                file, line = frame.filename, frame.lineno
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001 - an exception whose text raises is still an exception
        message = "(no message)"
    text = "".join(traceback.format_exception(error))
    return {
        "type": type(error).__name__,
        "message": message[:_TRACEBACK_LIMIT],
        "file": file,
        "line": line,
        "traceback": text[-_TRACEBACK_LIMIT:],
    }


def main(leash: int | None = None) -> None:
    """Serves the host until it goes."""
    connection = Connection(leash)
    hello = connection.greet("worker")
    send_logs(connection)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    worker = Worker(connection, hello, loop)
    connection.listen(loop, worker.handle)
    connection.send(worker.load())
    while True:
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            # Raised by a task that a hook left behind. The hook's own are answered for above.
            if connection.is_copy:
                os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
