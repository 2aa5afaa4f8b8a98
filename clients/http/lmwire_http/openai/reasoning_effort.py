"""What OpenAI calls the effort of reasoning, and what it is on the wire."""

from typing import Any, Final, Literal, TypeAlias

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

_BUDGETS: Final = {"minimal": 256, "low": 1024, "medium": 8192}
"""Tokens of thought. With more effort than that a model thinks as long as it likes."""


def wire_effort(effort: Effort) -> dict[str, Any]:
    """The effort as `lmwire.ChatOptions`."""
    if effort == "none":
        return {"reasoning": "off"}
    budget = _BUDGETS.get(effort)
    return {"reasoning": "on"} if budget is None else {"reasoning": "on", "reasoning_budget": budget}
