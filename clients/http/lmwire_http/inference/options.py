"""Options of generations: those that a request sets, by several names, and the defaults for the others."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, Protocol, TypeAlias, cast

import msgspec
from msgspec import Meta, Struct

from lmwire_protocol import events

from ..errors import invalid_field
from ..http.unknown_fields import Alias
from ..limits import Biases, DryBreakers
from ..settings import Settings

FORMAT_TOKENS: Final = 16_384
"""Longest answer in a format, in tokens, if nobody sets a limit: a list or a text in a schema need never end."""
_OFF: Final[Mapping[str, Mapping[Any, Any]]] = {
    "top_p": {0: 1.0},
    "repetition_penalty": {0: 1.0},
    "top_k": {-1: 0},
}
"""For each field, the value that turns it off in other servers, with the one that does so here."""
_BANNED: Final = -100
"""The bias of a banned token, which OpenAI's API names for it."""
_TOKEN_IDS: Final = re.compile(r"[0-9]{1,16}( *, *[0-9]{1,16})*", re.ASCII)
_TEMPERATURE: Final = 1.0
"""Default of OpenAI and Anthropic, which clients expect. The worker's default is 0."""
_REASONING_VARIABLES: Final = (
    *("enable_thinking", "thinking", "thinking_mode", "thinking_option", "skip_thinking", "reasoning"),
    *("reasoning_effort", "thinking_effort", "reasoning_strength", "thinking_budget"),
)
"""Variables of chat templates with which requests can turn reasoning on or off, or say how much there is."""
ReasoningEffort: TypeAlias = Literal["none", "default", "minimal", "low", "medium", "high", "xhigh", "max"]
"""OpenAI's efforts, and `default` for reasoning as much as the model does by itself."""

LogitBias: TypeAlias = Biases[Annotated[Any, Meta(extra_json_schema={"type": "number"})]]
_TOKEN_ID: Final = re.compile(r"0|-?[1-9][0-9]{0,15}", re.ASCII)
_USUAL_EFFORT: Final = "default"
_NO_EFFORT: Final = "none"
_NO_BUDGET: Final = -1


def shared_fields(request_type: type[Struct], options_type: type, *, converted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields of a request body that the client library takes under the same name with the same value.

    Args:
        request_type: The Struct of the body.
        options_type: The client library's TypedDict of options.
        converted: Fields of both whose values differ.
    """
    options = options_type.__annotations__.keys() - set(converted)
    return tuple(name for name in request_type.__struct_fields__ if name in options)


def given_fields(body: Struct, *names: str) -> dict[str, Any]:
    """Return the fields with these names that are not null."""
    return {name: value for name in names if (value := getattr(body, name)) is not None}


def with_generation_defaults(
    options: dict[str, Any], settings: Settings, model: events.ModelDone, max_tokens: int | None
) -> dict[str, Any]:
    """Return a request's options with the defaults of every generation: of sampling and of the answer's length.

    Args:
        options: The request's options of the client library.
        settings: The server's settings.
        model: The model, whose own sampling defaults count if it was loaded with them.
        max_tokens: The API's limit; None if it has none.
    """
    limit = max_tokens if settings.default_max_tokens is None else settings.default_max_tokens
    if limit is None and options.get("format"):
        limit = FORMAT_TOKENS
    defaults: dict[str, Any] = {"temperature": _TEMPERATURE}
    if model.sampling_defaults:
        defaults |= msgspec.to_builtins(model.sampling_defaults)
    if limit is not None:
        defaults["max_tokens"] = limit
    off = {name: values[given] for name, values in _OFF.items() if (given := options.get(name)) in values}
    return {**defaults, **options, **off}


def with_chat_defaults(options: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """Return the options of a conversation with the operator's defaults for tools and reasoning.

    What the request says wins, unless the operator forces the reasoning.

    Args:
        options: The request as `lmwire.ChatOptions` or `lmwire.TemplateOptions`. Its tools are changed.
        settings: The server's settings.
    """
    if settings.strict_tools:
        for tool in options.get("tools", ()):
            tool["function"].setdefault("strict", True)
    if settings.reasoning is None:
        return {**options}
    if settings.force_reasoning:
        options = _without_reasoning(options)
    if options.get("template_args", {}).keys() & set(_REASONING_VARIABLES):
        return {**options}
    return {"reasoning": settings.reasoning, **options}


def _without_reasoning(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options without what they say about whether to reason."""
    remaining = {name: value for name, value in options.items() if name != "reasoning"}
    if "template_args" in remaining:
        given = remaining["template_args"].items()
        remaining["template_args"] = {name: value for name, value in given if name not in _REASONING_VARIABLES}
    return remaining


def budget_options(budget: int | None) -> dict[str, Any]:
    """Return the budget of reasoning as `lmwire.ChatOptions`. -1 is none, as in llama.cpp's server."""
    return {} if budget in (None, _NO_BUDGET) else {"reasoning_budget": budget}


def effort_options(effort: ReasoningEffort) -> dict[str, Any]:
    """Return the effort as `lmwire.ChatOptions`."""
    if effort == "none":
        return {"reasoning": "off"}
    return {"reasoning": "on"} if effort == "default" else {"reasoning": "on", "reasoning_effort": effort}


def token_biases(given: LogitBias | None) -> Mapping[str, dict[int, float]]:
    """Return the field as the client library takes it; empty if it is absent.

    Args:
        given: The field in the request.

    Raises:
        ApiError: A key is not a token id, or a value is not a number. The error names the key.
    """
    if given is None:
        return {}
    for key, bias in given.items():
        field = f"logit_bias.{key[:64]}"
        if not _TOKEN_ID.fullmatch(key):
            raise invalid_field(f"{field}: the key must be a token id, such as 40", field)
        if isinstance(bias, bool) or not isinstance(bias, int | float):
            raise invalid_field(f"{field}: must be a number", field)
    return {"logit_bias": {int(key): bias for key, bias in given.items()}}


REPETITION_FIELDS: Final = (
    *("dry_multiplier", "dry_base", "dry_allowed_length", "dry_range", "dry_sequence_breakers"),
    "banned_strings",
)
"""Fields against repetitions whose values have further forms in other servers."""


class RepetitionParams(Protocol):
    """A request with these fields."""

    dry_multiplier: float | None
    dry_range: int | None
    dry_sequence_breakers: str | list[str] | None
    banned_strings: str | list[str] | None


def repetition_options(body: RepetitionParams) -> dict[str, Any]:
    """Return the fields of DRY, if it is on, and the banned strings as the client library takes them.

    Other servers take one banned string by itself, the breakers as JSON, and a negative range for all tokens.

    Args:
        body: The request's body.

    Raises:
        ApiError: The breakers are not a list of strings.
    """
    options: dict[str, Any] = {}
    if body.banned_strings:
        alone = isinstance(body.banned_strings, str)
        options["banned_strings"] = [body.banned_strings] if alone else body.banned_strings
    if not body.dry_multiplier:
        return options
    options |= given_fields(cast(Struct, body), *REPETITION_FIELDS[:-1])
    if body.dry_range is not None:
        options["dry_range"] = max(0, body.dry_range)
    if isinstance(body.dry_sequence_breakers, str):
        options["dry_sequence_breakers"] = _breakers(body.dry_sequence_breakers)
    return options


def _breakers(text: str) -> list[str]:
    """Return the breakers in a JSON list, whose brackets may be missing."""
    field = "dry_sequence_breakers"
    try:
        return msgspec.json.decode(text if text.startswith("[") else f"[{text}]", type=DryBreakers)
    except msgspec.DecodeError as error:  # of the JSON or of its types
        problem = "must be a list of at most 64 strings, or such a list as JSON"
        raise invalid_field(f"{field}: {problem}", field) from error


def renamed(name: str) -> Alias:
    """Return the alias that stands for a field with the same value."""
    return lambda value: {name: value}


def _tokens(name: str) -> Alias:
    """Return the alias that stands for a number of tokens. A negative one stands for all, as 0 does."""

    def set_tokens(value: Any) -> Mapping[str, Any]:
        if type(value) is not int:
            raise ValueError("must be an integer")
        return {name: max(0, value)}

    set_tokens.__doc__ = f"Set `{name}`. A negative number stands for all tokens, as 0 does."
    return set_tokens


def _budget(value: Any) -> Mapping[str, Any]:
    """Set `reasoning_budget`. A negative number sets none."""
    return {} if type(value) is int and value < 0 else {"reasoning_budget": value}


def _bans(value: Any) -> Mapping[str, Any]:
    """Set `logit_bias`: -100 for each of these token ids, which are a list, or a text with commas between."""
    if isinstance(value, str) and _TOKEN_IDS.fullmatch(value.strip()):
        value = [int(id) for id in value.split(",")]
    if value in ([], ""):
        return {}
    if not isinstance(value, list) or not all(type(id) is int and id >= 0 for id in cast(list[Any], value)):
        raise ValueError("must be token ids, such as [40, 41]")
    return {"logit_bias": dict.fromkeys(map(str, cast(list[int], value)), _BANNED)}


def _cache_mode(value: Any) -> Mapping[str, Any]:
    """Set `cache`: `on` for true, `off` for false."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return {"cache": "on" if value else "off"}


_PENALTY_WINDOWS: Final = ("penalty_range", "repetition_range", "repetition_penalty_range", "rep_pen_range")
SAMPLING_ALIASES: Final[Mapping[str, Alias]] = {
    "repeat_penalty": renamed("repetition_penalty"),
    "rep_pen": renamed("repetition_penalty"),
    "repetition_context_size": renamed("penalty_window"),
    **dict.fromkeys(_PENALTY_WINDOWS, _tokens("penalty_window")),
    "dry_penalty_last_n": _tokens("dry_range"),
    "ban_eos_token": renamed("ignore_eos"),
    **dict.fromkeys(("banned_tokens", "custom_token_bans"), _bans),
    "cache_prompt": _cache_mode,
}
"""Aliases of every request that generates text: those of llama.cpp's, mlx-lm's and tabbyAPI's servers."""
TEXT_ALIASES: Final[Mapping[str, Alias]] = {
    **SAMPLING_ALIASES,
    "min_length": renamed("min_tokens"),
    "stop_sequence": renamed("stop"),
}
"""Aliases of every request of OpenAI's APIs that generates text."""
BUDGET_ALIASES: Final[Mapping[str, Alias]] = dict.fromkeys(
    ("reasoning_budget_tokens", "thinking_budget", "thinking_token_budget"), _budget
)
"""Aliases of the budget of reasoning: those of tabbyAPI's and vLLM's servers."""
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
        return effort(_USUAL_EFFORT if value else _NO_EFFORT)

    def thinking(value: Any) -> Mapping[str, Any]:
        """Turn reasoning on or off: a boolean, or an object with `type` and `budget_tokens`."""
        if isinstance(value, bool):
            return enable_thinking(value)
        match value:
            case {"type": "enabled", "budget_tokens": budget}:
                if type(budget) is int and budget < 0:
                    raise ValueError("budget_tokens must be a number from 0")
                return {**effort(_USUAL_EFFORT), "reasoning_budget": budget}
            case {"type": "enabled"}:
                return effort(_USUAL_EFFORT)
            case {"type": "disabled"}:
                return effort(_NO_EFFORT)
            case {"type": "adaptive" | "auto"}:
                return {}
            case _:
                raise ValueError("must be an object with the type enabled, disabled or adaptive")

    return {"enable_thinking": enable_thinking, "thinking": thinking, **BUDGET_ALIASES}
