"""What the tests share: a watchdog around each coroutine, and a model server on loopback."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import pytest

import klbr
from klbr import updates

T = TypeVar("T")

WAIT = klbr.Call("wait_and_continue", {"duration": "10m"})


def run(body: Coroutine[Any, Any, T]) -> T:
    """Runs a test's coroutine under a watchdog."""

    async def watched() -> T:
        return await asyncio.wait_for(body, 30)

    return asyncio.run(watched())


def speaks(text: str) -> klbr.Reply:
    """A reply that says something to the operator and waits."""
    return klbr.Reply(calls=[klbr.Call("local_send", {"content": text}), WAIT])


async def until(agent: klbr.Agent, kind: type[updates.Update]) -> list[updates.Update]:
    """Everything up to the first update of a kind."""
    seen = []
    async for update in agent.updates():
        seen.append(update)
        if isinstance(update, kind):
            break
    return seen


class ModelServer(http.server.ThreadingHTTPServer):
    """Says `text` through `local_send`, then waits, in OpenAI's stream."""

    daemon_threads = True

    def __init__(self, text: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.text = text
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        asked: list[tuple[str, dict[str, str]]] = [
            ("local_send", {"content": self.server.text}),
            ("wait_and_continue", {"duration": "10m"}),
        ]
        calls = [
            {"index": n, "id": f"call{n}", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for n, (name, arguments) in enumerate(asked)
        ]
        chunks: list[dict[str, Any]] = [{"delta": {"tool_calls": calls}}, {"delta": {}, "finish_reason": "tool_calls"}]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for chunk in chunks:
            choice = {"index": 0, **chunk}
            event = {"id": "1", "object": "chat.completion.chunk", "choices": [choice]}
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A model server on loopback."""
    server = ModelServer("Hello from the server.")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
