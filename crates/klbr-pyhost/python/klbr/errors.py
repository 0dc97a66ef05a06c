"""What klbr raises: one tree, sorted by what may be done about it.

    KlbrError
    ├── ConfigError      a setting or an argument cannot be used (also a ValueError)
    ├── StoreError       a store cannot be opened, read or written
    ├── AdmitError       an event was not admitted: nothing of it is kept
    ├── StoppedError     the agent is not running
    ├── ModelError       a model could not be asked; raised by models of one's own
    ├── ToolError        a tool refuses or fails; its text is what the model reads
    ├── UnknownOutcome   a tool or a channel cannot know whether it has happened
    ├── CodeError        a text gives no symbols, or a name is none
    │   └── EditError    an edit is refused; the file is as it was
    └── ForkError        this process is a fork of the one that loaded klbr (also a RuntimeError)
"""

from __future__ import annotations

__all__ = [
    "AdmitError",
    "CodeError",
    "ConfigError",
    "EditError",
    "ForkError",
    "KlbrError",
    "ModelError",
    "StoppedError",
    "StoreError",
    "ToolError",
    "UnknownOutcome",
]


class KlbrError(Exception):
    """Anything that klbr raises by itself."""


class ConfigError(KlbrError, ValueError):
    """A setting or an argument cannot be used."""


class StoreError(KlbrError):
    """A store cannot be opened, read or written."""


class AdmitError(KlbrError):
    """An event was not admitted. Nothing of it is kept; it may be offered again."""


class StoppedError(KlbrError):
    """The agent is not running."""


class ModelError(KlbrError):
    """A model could not be asked. `transient` says whether asking the same again can help."""

    def __init__(self, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient


class ToolError(KlbrError):
    """A tool refuses or fails. Its text is what the model reads."""


class UnknownOutcome(KlbrError):
    """It cannot be known whether something happened. It is never tried again blindly."""


class CodeError(KlbrError):
    """A text gives no symbols, or a name is none."""


class EditError(CodeError):
    """An edit is refused; the file is as it was."""


class ForkError(KlbrError, RuntimeError):
    """This process is a fork of the one that loaded klbr: its threads are not here."""
