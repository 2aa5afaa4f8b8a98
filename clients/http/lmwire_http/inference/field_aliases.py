"""Aliases: names that other servers have for fields of requests. See `http.unknown_fields`."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..http.unknown_fields import Alias

_FULL_EFFORT: Final = "high"
_NO_EFFORT: Final = "none"


def renamed(name: str) -> Alias:
    """Return the alias that stands for a field with the same value."""
    return lambda value: {name: value}


def _cache_mode(value: Any) -> Mapping[str, Any]:
    """Set `cache`: `on` for true, `off` for false."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return {"cache": "on" if value else "off"}


SAMPLING_ALIASES: Final[Mapping[str, Alias]] = {
    "repeat_penalty": renamed("repetition_penalty"),
    "repetition_context_size": renamed("penalty_window"),
    "cache_prompt": _cache_mode,
}
"""Aliases of every request that generates text: those of llama.cpp's and mlx-lm's servers."""
TEMPLATE_ALIASES: Final[Mapping[str, Alias]] = {
    "chat_template_kwargs": renamed("template_args"),
    "template_vars": renamed("template_args"),
}
"""Aliases of every request with a conversation: those of vLLM's and tabbyAPI's servers."""


def reasoning_aliases(effort: Callable[[str], Mapping[str, Any]]) -> Mapping[str, Alias]:
    """Return the aliases that turn reasoning on or off.

    Args:
        effort: Returns the fields that stand for a reasoning effort.
    """

    def enable_thinking(value: Any) -> Mapping[str, Any]:
        """Turn reasoning on for true, off for false."""
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return effort(_FULL_EFFORT if value else _NO_EFFORT)

    def thinking(value: Any) -> Mapping[str, Any]:
        """Turn reasoning on or off: a boolean, or an object with `type` and `budget_tokens`."""
        if isinstance(value, bool):
            return enable_thinking(value)
        match value:
            case {"type": "enabled", "budget_tokens": budget}:
                return {**effort(_FULL_EFFORT), "reasoning_budget": budget}
            case {"type": "enabled"}:
                return effort(_FULL_EFFORT)
            case {"type": "disabled"}:
                return effort(_NO_EFFORT)
            case {"type": "adaptive" | "auto"}:
                return {}
            case _:
                raise ValueError("must be an object with the type enabled, disabled or adaptive")

    return {"enable_thinking": enable_thinking, "thinking": thinking}
