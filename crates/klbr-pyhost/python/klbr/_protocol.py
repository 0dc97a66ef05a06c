"""The frames between the host and its Python processes.

A frame is four bytes of length (big endian) and one JSON object in UTF-8. Its key `t` says what it is. The host
sends hello, call, cell, cancel, host_result, vars, ping; it hears hello, ready, result, cell_result, host_call, log,
vars_result, pong.
"""

from __future__ import annotations

import json
import struct
from typing import Any

PROTOCOL = 2
MAX_FRAME = 16 * 1024 * 1024

Frame = dict[str, Any]

_LENGTH = struct.Struct(">I")
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"), allow_nan=False).encode


class ProtocolError(Exception):
    """What arrived is no frame of this protocol."""


def encode(frame: Frame) -> bytes:
    """The frame's bytes.

    Raises TypeError or ValueError for what JSON cannot say, and ProtocolError for what is too long.
    """
    # A lone surrogate is text in Python and none anywhere else.
    body = _encode(frame).encode("utf-8", "replace")
    if len(body) > MAX_FRAME:
        raise ProtocolError(f"a frame of {len(body)} bytes is longer than {MAX_FRAME}")
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete."""
        self._buffer += data
        frames: list[Frame] = []
        while len(self._buffer) >= 4:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_FRAME:
                raise ProtocolError(f"a frame of {length} bytes is longer than {MAX_FRAME}")
            if len(self._buffer) < 4 + length:
                break
            frame = json.loads(self._buffer[4 : 4 + length])
            del self._buffer[: 4 + length]
            if not isinstance(frame, dict):
                raise ProtocolError("a frame is an object")
            frames.append(frame)
        return frames
