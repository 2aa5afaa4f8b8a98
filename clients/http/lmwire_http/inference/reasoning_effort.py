"""The reasoning effort in OpenAI's terms, as options of the worker."""

from typing import Any, Final, Literal, TypeAlias

ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

_REASONING_BUDGETS: Final = {"minimal": 256, "low": 1024, "medium": 8192}
"""Reasoning budgets in tokens. Higher efforts have no limit."""


def effort_options(effort: ReasoningEffort) -> dict[str, Any]:
    """Return the effort as `lmwire.ChatOptions`."""
    if effort == "none":
        return {"reasoning": "off"}
    budget = _REASONING_BUDGETS.get(effort)
    return {"reasoning": "on"} if budget is None else {"reasoning": "on", "reasoning_budget": budget}
