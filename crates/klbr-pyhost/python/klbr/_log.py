"""What user code logs, on its way to the host: as records with a level, bounded in length and in number."""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar

from ._link import Connection

CALL: ContextVar[int | None] = ContextVar("klbr_call", default=None)
"""The call that the code at hand runs for."""

_A_SECOND = 100
_LENGTH = 4096
_LEVELS = ((10, "debug"), (20, "info"), (30, "warning"), (40, "error"))


class ToHost(logging.Handler):
    """Hands records to the host. What is too much within a second is counted instead."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._since = 0.0
        self._taken = 0
        self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Sends one record, or counts it."""
        now = time.monotonic()
        if now - self._since >= 1:
            self._since, self._taken = now, 0
        self._taken += 1
        if self._taken > _A_SECOND:
            self._left_out += 1
            return
        try:
            message = self.format(record)
        except Exception as error:  # noqa: BLE001 - arguments that do not fit, or whose text raises
            message = f"{record.msg!r} ({type(error).__name__}: {error})"
        left_out, self._left_out = self._left_out, 0
        frame = {
            "t": "log",
            "id": CALL.get(),
            "level": next((word for most, word in _LEVELS if record.levelno <= most), "critical"),
            "logger": record.name,
            "message": message[:_LENGTH],
            "file": record.pathname,
            "line": record.lineno,
            "left_out": left_out,
        }
        try:
            self._connection.log(frame)
        except OSError:
            # The host is gone, and this process is about to be.
            pass


def send_logs(connection: Connection) -> None:
    """Has everything from `INFO` up sent to the host; user code may set its loggers' levels as ever."""
    root = logging.getLogger()
    root.addHandler(ToHost(connection))
    root.setLevel(logging.INFO)
