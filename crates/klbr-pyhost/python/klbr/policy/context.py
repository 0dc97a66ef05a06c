"""Context: when a conversation is summarised, and how that is asked for."""

from __future__ import annotations

from klbr import hooks

KEPT_TURNS = 0
"""Turns that stay word for word behind a summary."""


@hooks.slot("context.blocks", deadline="100ms")
def blocks(prefix: hooks.ContextBlocks) -> str:
    """As it is built in."""
    return prefix.text


@hooks.slot("context.select", deadline="100ms")
def select(frame: hooks.ContextSelect) -> list[hooks.Candidate]:
    """Everything that fits."""
    return frame.events


@hooks.slot("compact.when", deadline="100ms")
def when(context: hooks.CompactWhen) -> bool:
    """As soon as the next request reaches the threshold."""
    return context.used >= context.threshold


@hooks.slot("compact.prompt", deadline="100ms")
def prompt(request: hooks.CompactPrompt) -> str:
    """The built-in request."""
    return request.text


@hooks.slot("compact.keep", deadline="100ms")
def keep(range: hooks.CompactKeep) -> int:
    """None of them."""
    return min(KEPT_TURNS, range.turns)
