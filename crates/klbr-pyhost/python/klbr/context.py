"""What a model reads, as pure functions: results as they are inserted, escaping, paths, and text in pieces.

    from klbr import context

    results = context.Context()
    results.read("a.py", b"x = 1\\n").text      # '[#0001 a.py 1-1 of 1 …]' and the line
    results.read("a.py", b"x = 1\\n").text      # says only that it is unchanged since #0001

All of it runs with the interpreter's lock released.
"""

from __future__ import annotations

from ._native import Context, Inserted, Tokenizer, chunk, escape, halves, prompt_name, resolve, unescape

__all__ = [
    "Context",
    "Inserted",
    "Tokenizer",
    "chunk",
    "escape",
    "halves",
    "prompt_name",
    "resolve",
    "unescape",
]
