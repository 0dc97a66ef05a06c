"""The workbench: `python -m klbr.workbench`. It runs the cells that a model writes and keeps their variables.

It is no sandbox. Time, restarts and killing are the host's; here is what a cell means.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import inspect
import json
import linecache
import os
import signal
import sys
import traceback
from types import CodeType, FrameType
from typing import Any

from ._functions import make_namespace
from ._link import Connection, HostError
from ._protocol import Frame, ProtocolError
from .hooks import milliseconds

_HERE = os.path.dirname(os.path.abspath(__file__))
_TRACEBACK_LIMIT = 8192
_NAMES_LIMIT = 500
_VALUE_LIMIT = 10_000
_START_LIMIT = 80
_CALLS_AT_ONCE = 32
_SPAWNS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.exec", "pty.spawn")


class _Yield(BaseException):
    """The cell ends here, and the agent waits."""


class _TooLong(BaseException):
    """A repr took longer than it may."""


class Told(str):
    """What an action answered: a text. `action` is the action's id, `data` what is more than text."""

    action: str | None
    data: Any

    def __new__(cls, text: str, action: str | None, data: Any) -> Told:
        self = super().__new__(cls, text)
        self.action = action
        self.data = data
        return self


class Cell:
    """One cell that runs."""

    def __init__(self, frame: Frame) -> None:
        self.id: int = frame["id"]
        self.code: str = frame["code"]
        self.limits: dict[str, int] = frame["limits"]
        self.parts: list[dict[str, Any]] = []
        self.calls = 0
        self.gate = asyncio.Semaphore(_CALLS_AT_ONCE)
        self.wait: dict[str, Any] | None = None
        self.is_over = False
        self.is_cancelled = False


class Workbench:
    """Runs one cell at a time, on the main thread."""

    def __init__(self, connection: Connection, hello: Frame, loop: asyncio.AbstractEventLoop) -> None:
        self.connection = connection
        self.loop = loop
        self.generation: int = hello["epoch"]
        self.cell: Cell | None = None
        self.task: asyncio.Task[None] | None = None
        self.spawned = False
        self.given = {
            **make_namespace(hello.get("reads", []), self._act),
            "show": self.show,
            "wait": self.wait,
            "HostError": HostError,
        }
        self.names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__, **self.given}
        sys.path[:0] = hello.get("paths", [])
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _: Any) -> None:
        if event in _SPAWNS:
            self.spawned = True

    def handle(self, frame: Frame) -> None:
        """Takes a frame from the host."""
        match frame["t"]:
            case "cell":
                self.task = self.loop.create_task(self._run(Cell(frame)))
            case "cancel":
                if self.cell is not None and self.cell.id == frame["id"] and self.task is not None:
                    self.cell.is_cancelled = True
                    self.task.cancel()
            case "vars":
                self.connection.send({"t": "vars_result", "id": frame["id"], "vars": self.variables()})
            case _:
                pass

    async def _run(self, cell: Cell) -> None:
        self.cell = cell
        self.spawned = False
        outcome = "ok"
        try:
            value = await self._execute(cell)
            if value is not None:
                self.names["_"] = value
                cell.parts.append(self._value(cell, value))
        except _Yield:
            outcome = "yielded"
        except asyncio.CancelledError as error:
            outcome = "cancelled" if cell.is_cancelled else "raised"
            cell.parts.append(self._exception(error))
        except KeyboardInterrupt as error:
            outcome = "cancelled"
            cell.parts.append(self._exception(error))
        except BaseException as error:  # noqa: BLE001 - a cell may raise anything, SystemExit too
            outcome = "raised"
            cell.parts.append(self._exception(error))
        if self.connection.is_copy:
            os._exit(0)
        if cell.wait is not None and outcome in ("ok", "raised"):
            # It swallowed the yield; the agent waits all the same.
            outcome = "yielded"
        cell.is_over = True
        self.cell = None
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        reply = {
            "t": "cell_result",
            "id": cell.id,
            "outcome": outcome,
            "wait": cell.wait,
            "names": sorted(name for name in self.names if self._is_own(name))[:_NAMES_LIMIT],
            "spawned": self.spawned,
        }
        try:
            self.connection.send({**reply, "parts": cell.parts})
        except (TypeError, ValueError, RecursionError, ProtocolError) as error:
            self.connection.send({**reply, "parts": [self._exception(error)]})

    async def _execute(self, cell: Cell) -> Any:
        name = f"<cell {self.generation}.{cell.id}>"
        linecache.cache[name] = (len(cell.code), None, cell.code.splitlines(True), name)
        tree = compile(cell.code, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        last: ast.expr | None = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = tree.body.pop().value
        await self._code(compile(tree, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
        if last is None:
            return None
        return await self._code(compile(ast.Expression(last), name, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))

    async def _code(self, code: CodeType) -> Any:
        value = eval(code, self.names)  # noqa: S307 - running cells is what this is for
        if code.co_flags & inspect.CO_COROUTINE:
            return await value
        return value

    async def _act(self, name: str, arguments: dict[str, Any]) -> Any:
        cell = self.cell
        if cell is None or cell.is_over or cell.wait is not None:
            raise HostError("the cell is over; nothing can be done on its behalf any more", "over")
        async with cell.gate:
            if cell.is_over:
                raise HostError("the cell is over; nothing can be done on its behalf any more", "over")
            cell.calls += 1
            answer = await self.connection.call(cell.id, cell.calls, name, arguments)
        if not isinstance(answer, dict) or answer.keys() != {"told", "action", "code", "data"}:
            return answer
        if answer["code"] != "confirmed":
            raise HostError(answer["told"], answer["code"], answer["action"])
        return Told(answer["told"], answer["action"], answer["data"])

    def wait(self, duration: Any = None, reason: str | None = None) -> Any:
        """Ends the cell and waits, at most ten minutes: "10m", "30s", or seconds. Variables stay, the stack does not."""
        if self.cell is None:
            raise HostError("only a cell can wait", "over")
        millis = milliseconds(duration)
        if millis is None or millis <= 0:
            raise ValueError("name how long to wait, such as wait('10m')")
        self.cell.wait = {"timeout_ms": millis, "reason": reason}
        raise _Yield

    def show(self, *values: Any) -> None:
        """Puts values into the cell's answer: text, plain data as JSON, images (a file's path, or `_repr_png_`)."""
        cell = self.cell
        if cell is None:
            return
        for value in values:
            if len(cell.parts) >= cell.limits["parts"]:
                return
            cell.parts.append(self._part(cell, value))

    def _part(self, cell: Cell, value: Any) -> dict[str, Any]:
        limit = cell.limits["part_bytes"]
        if isinstance(value, os.PathLike):
            path = os.path.abspath(os.fspath(value))
            kind = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"}
            media = kind.get(os.path.splitext(str(path))[1].lower())
            if media is not None:
                with open(path, "rb") as file:
                    return _image(media, file.read(limit + 1), limit, str(path))
        if callable(png := getattr(value, "_repr_png_", None)) and isinstance(data := png(), bytes):
            return _image("image/png", data, limit, None)
        if isinstance(value, str):
            return {"kind": "text", "text": _cut(value, limit)}
        if isinstance(value, (dict, list, tuple, int, float, bool)) or value is None:
            try:
                text = json.dumps(value, allow_nan=False)
            except (TypeError, ValueError, RecursionError):
                pass
            else:
                if len(text) <= limit:
                    return {"kind": "json", "data": json.loads(text)}
        return {"kind": "text", "text": self._repr(value, limit, cell.limits["repr_ms"])}

    def _value(self, cell: Cell, value: Any) -> dict[str, Any]:
        text = self._repr(value, cell.limits["repr_bytes"], cell.limits["repr_ms"])
        return {"kind": "value", "type": type(value).__name__, "repr": text}

    def _repr(self, value: Any, limit: int, millis: int) -> str:
        """A repr within its bounds: it is made of a part of what is very long, and given up when it takes too long."""
        if isinstance(value, (str, bytes, bytearray, list, tuple)) and len(value) > max(limit, _VALUE_LIMIT):
            return _cut(f"{self._repr(value[:limit], limit, millis)}", limit) + f" (of {len(value)})"

        def expired(_: int, __: FrameType | None) -> None:
            raise _TooLong

        before = signal.signal(signal.SIGALRM, expired)
        signal.setitimer(signal.ITIMER_REAL, millis / 1000)
        try:
            return _cut(repr(value), limit)
        except _TooLong:
            return f"<{type(value).__name__}: its repr took longer than {millis} ms>"
        except Exception as error:  # noqa: BLE001 - the object's own code
            return f"<{type(value).__name__}: its repr raised {type(error).__name__}>"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _exception(self, error: BaseException) -> dict[str, Any]:
        place = None
        frames = traceback.extract_tb(error.__traceback__)
        kept = [f for f in frames if os.path.dirname(os.path.abspath(f.filename)) != _HERE]
        for frame in kept:
            if frame.filename.startswith("<cell "):
                place = (frame.filename, frame.lineno)
        if isinstance(error, SyntaxError):
            place = (error.filename or "", error.lineno)
        head = ["Traceback (most recent call last):\n", *traceback.format_list(kept)] if kept else []
        text = "".join([*head, *traceback.format_exception_only(error)])
        if error.__cause__ is not None:
            text = "".join(traceback.format_exception(error.__cause__)) + "\n… which caused:\n\n" + text
        try:
            message = str(error)
        except Exception:  # noqa: BLE001
            message = "(no message)"
        return {
            "kind": "exception",
            "type": type(error).__name__,
            "message": _cut(message, _TRACEBACK_LIMIT),
            "file": place[0] if place else None,
            "line": place[1] if place else None,
            "traceback": text[-_TRACEBACK_LIMIT:],
        }

    def _is_own(self, name: str) -> bool:
        return not name.startswith("__") and name != "_" and self.names[name] is not self.given.get(name)

    def variables(self) -> list[dict[str, Any]]:
        """What the cells left: name, type, own size, the first characters."""
        found = []
        for name in sorted(name for name in self.names if self._is_own(name))[:_NAMES_LIMIT]:
            value = self.names[name]
            try:
                size = sys.getsizeof(value)
            except Exception:  # noqa: BLE001
                size = 0
            start = self._repr(value, _START_LIMIT, 50)
            found.append({"name": name, "type": type(value).__name__, "bytes": size, "start": start})
        return found

    def interrupted(self, _: int, frame: FrameType | None) -> None:
        """SIGINT: raised inside a cell's code, and nowhere else."""
        cell = self.cell
        if cell is None:
            return
        cell.is_cancelled = True
        if self.task is not None:
            # For a cell that waits for a task of its own; one that is interrupted below no longer meets it.
            self.task.cancel()
        while frame is not None:
            if frame.f_code.co_filename.startswith("<cell "):
                raise KeyboardInterrupt
            frame = frame.f_back


def _image(media: str, data: bytes, limit: int, path: str | None) -> dict[str, Any]:
    # A picture that was cut is no picture: what is too large stays where it is.
    inline = base64.b64encode(data).decode("ascii") if len(data) <= limit else None
    return {"kind": "image", "media_type": media, "base64": inline, "path": path}


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = max((limit - 40) // 2, 1)
    return f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}"


def main(leash: int | None = None) -> None:
    """Serves the host until it goes."""
    connection = Connection(leash)
    hello = connection.greet("workbench")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    workbench = Workbench(connection, hello, loop)
    signal.signal(signal.SIGINT, workbench.interrupted)
    connection.listen(loop, workbench.handle)
    connection.send({"t": "ready"})
    while True:
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit, _Yield):
            # Raised by a task that a cell left behind. The cell's own are answered for above.
            if connection.is_copy:
                os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
