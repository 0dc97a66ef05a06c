"""klbr: agents that never stop running.

`Agent` embeds one in a Python process, `Store` reads what one did, `klbr.hooks` is what its policy is written with,
`klbr.code` and `klbr.context` are pure functions. The pure-Python half (hooks, worker, workbench, policy) needs no native
module: what does is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import code as code
    from . import context as context
    from . import updates as updates
    from ._agent import Admission, Agent, Author
    from ._channel import Anchor, Channel, Delivery, Sent
    from ._model import Call, Model, Reply, Request, ScriptedModel, Think, Usage
    from ._native import __version__ as __version__
    from ._store import Store
    from ._tool import Tool, tool
    from .errors import (
        AdmitError,
        CodeError,
        ConfigError,
        EditError,
        ForkError,
        KlbrError,
        ModelError,
        StoppedError,
        StoreError,
        ToolError,
        UnknownOutcome,
    )
    from .updates import Update

_HOMES = {
    "_agent": ("Admission", "Agent", "Author"),
    "_channel": ("Anchor", "Channel", "Delivery", "Sent"),
    "_model": ("Call", "Model", "Reply", "Request", "ScriptedModel", "Think", "Usage"),
    "_native": ("__version__",),
    "_store": ("Store",),
    "_tool": ("Tool", "tool"),
    "errors": (
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
    ),
    "updates": ("Update",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("code", "context", "errors", "hooks", "policy", "updates")

__all__ = [
    "AdmitError",
    "Admission",
    "Agent",
    "Anchor",
    "Author",
    "Call",
    "Channel",
    "CodeError",
    "ConfigError",
    "Delivery",
    "EditError",
    "ForkError",
    "KlbrError",
    "Model",
    "ModelError",
    "Reply",
    "Request",
    "ScriptedModel",
    "Sent",
    "StoppedError",
    "Store",
    "StoreError",
    "Think",
    "Tool",
    "ToolError",
    "UnknownOutcome",
    "Update",
    "Usage",
    "code",
    "context",
    "tool",
    "updates",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, *_MODULES})
