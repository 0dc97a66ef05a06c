"""The model: which one a turn uses, with how much effort."""

from __future__ import annotations

from klbr import hooks


@hooks.slot("model.plan", deadline="100ms")
def plan(turn: hooks.ModelPlan) -> hooks.Plan:
    """As configured."""
    return hooks.Plan(turn.model, turn.effort)
