"""Code intelligence: symbols that can be trusted, edits that cannot corrupt. Text in, plain data out.

    from klbr import code

    found = code.symbols(source, language="python")
    print(code.outline(source, language="python"))
    [run] = found.definitions("Server.run")
    planned = code.plan(source, [code.Edit.replace_symbol_body(run.path, "return 1")], language="python")

The language is the given one, else the path's, else the first line's; the path need not exist. All of it runs with the
interpreter's lock released, so that threads run at once. Matching is by name: bindings are not resolved.
"""

from __future__ import annotations

from ._native import (
    Answer,
    Change,
    Diagnostic,
    Edit,
    Extraction,
    Hit,
    Index,
    Planned,
    Range,
    Symbol,
    apply,
    content_hash,
    diagnostics,
    languages,
    outline,
    plan,
    symbols,
)

__all__ = [
    "Answer",
    "Change",
    "Diagnostic",
    "Edit",
    "Extraction",
    "Hit",
    "Index",
    "Planned",
    "Range",
    "Symbol",
    "apply",
    "content_hash",
    "diagnostics",
    "languages",
    "outline",
    "plan",
    "symbols",
]
