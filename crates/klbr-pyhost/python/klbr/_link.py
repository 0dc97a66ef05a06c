"""The connection to the host: standard input, which is a socket, moved out of the way of user code."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ._protocol import PROTOCOL, Decoder, Frame, encode


class HostError(Exception):
    """The host refused a call, or could not make it. `code` is a word; the message says the rest.

    Of an action, `code` is `held`, `denied`, `unknown` or the kind of its failure, and `action` is its id.
    """

    def __init__(self, message: str, code: str = "failed", action: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.action = action


class Connection:
    """Frames in and out. One thread reads and does nothing else, so that whatever a handler does, the host is heard."""

    def __init__(self, leash: int | None = None) -> None:
        # Protocol and standard streams must never meet: user code keeps an empty standard input.
        descriptor = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 64)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        self._socket = socket.socket(fileno=descriptor)
        self._lock = threading.Lock()
        self._logs: deque[bytes] = deque()
        self._decoder = Decoder()
        self._backlog: list[Frame] = []
        self._pid = os.getpid()
        self._calls: dict[tuple[int, int], asyncio.Future[Any]] = {}
        self._leash = leash
        if leash is not None:
            _hold_to(leash)
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        # A copy of this process is not this process: it may compute, but it never speaks to the host.
        self._socket.close()

    @property
    def is_copy(self) -> bool:
        """Whether this is a fork of the process that the host started."""
        return os.getpid() != self._pid

    def receive(self) -> Frame:
        """Waits for the next frame. Only before `listen`."""
        while not self._backlog:
            data = self._socket.recv(65536)
            if not data:
                os._exit(0)
            self._backlog.extend(self._decoder.feed(data))
        return self._backlog.pop(0)

    def greet(self, role: str) -> Frame:
        """Exchanges hello; answers with the host's."""
        import platform

        hello = self.receive()
        self.send({"t": "hello", "protocol": PROTOCOL, "role": role, "python": platform.python_version()})
        if hello.get("t") != "hello" or hello.get("protocol") != PROTOCOL:
            # The host reads the version above and says what is wrong.
            os._exit(3)
        return hello

    def listen(self, loop: asyncio.AbstractEventLoop, handle: Callable[[Frame], None]) -> None:
        """Hands each frame to `handle` on the loop's thread from now on; a ping is answered there too."""
        thread = threading.Thread(target=self._read, args=(loop, handle), name="klbr-link", daemon=True)
        thread.start()

    def _read(self, loop: asyncio.AbstractEventLoop, handle: Callable[[Frame], None]) -> None:
        try:
            while True:
                frame = self.receive()
                if frame["t"] == "ping":
                    # Where calls run: what is stuck there has no pulse, however well this thread does.
                    loop.call_soon_threadsafe(self.send, {"t": "pong", "n": frame["n"]})
                elif frame["t"] == "host_result":
                    loop.call_soon_threadsafe(self._settle, frame)
                else:
                    loop.call_soon_threadsafe(handle, frame)
        finally:
            # The host is gone or talks nonsense: nothing that was started here has a reason to live.
            os.killpg(0, signal.SIGKILL)

    def send(self, frame: Frame) -> None:
        """Sends a frame. Raises what `encode` raises."""
        data = encode(frame)
        if self.is_copy:
            os._exit(0)
        with self._lock:
            self._send_logs()
            self._socket.sendall(data)
        self._flush_logs()

    def log(self, frame: Frame) -> None:
        """Sends a record, before whatever is sent after it. Never waits, so that a finaliser or a signal may log too."""
        if self.is_copy:
            return
        self._logs.append(encode(frame))
        self._flush_logs()

    def _flush_logs(self) -> None:
        # Whoever holds the lock looks here again after letting it go.
        while self._logs and self._lock.acquire(blocking=False):
            try:
                self._send_logs()
            finally:
                self._lock.release()

    def _send_logs(self) -> None:
        while self._logs:
            self._socket.sendall(self._logs.popleft())

    async def call(self, owner: int, number: int, name: str, arguments: Any) -> Any:
        """Asks the host for something on behalf of a call or a cell. Raises HostError."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls[owner, number] = future
        try:
            self.send({"t": "host_call", "id": owner, "n": number, "name": name, "arguments": arguments})
            return await future
        finally:
            del self._calls[owner, number]

    def _settle(self, frame: Frame) -> None:
        future = self._calls.get((frame["id"], frame["n"]))
        if future is None or future.done():
            return
        if (error := frame.get("error")) is not None:
            future.set_exception(HostError(error["message"], error.get("code", "failed")))
        else:
            future.set_result(frame.get("ok"))


def _hold_to(leash: int) -> None:
    """Has the kernel kill this process group when the host's end of the leash closes, also in the midst of C code."""
    os.set_inheritable(leash, False)
    if not hasattr(fcntl, "F_SETSIG"):
        # Elsewhere the end of the socket says it, once the interpreter gets to run.
        return
    fcntl.fcntl(leash, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(leash, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(leash, fcntl.F_SETFL, fcntl.fcntl(leash, fcntl.F_GETFL) | os.O_ASYNC)
    # Closed before the signal was armed: the reader meets the end of the socket.
