"""How to generate: the fields that chat completions and completions share, and what they are on the wire."""

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from lmwire import Options
from lmwire_protocol import Format

from ..errors import invalid_field

Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]

_SEEDS: Final = 2**53
_TEMPERATURE: Final = 1.0
"""OpenAI's default, which its clients count on where they leave the field out; the wire's is 0."""
_SAME: Final = (
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "n",
    "top_k",
    "min_p",
    "xtc_probability",
    "xtc_threshold",
    "repetition_penalty",
    "penalty_window",
    "min_tokens",
    "ignore_eos",
    "include_stop",
    "truncate",
    "cache",
    "timeout_ms",
    "format",
)


class StreamOptions(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to stream."""

    include_usage: bool | None = None
    """Whether a last chunk counts the tokens."""
    include_obfuscation: bool | None = None
    """Harmless: no chunk is padded."""


class Generating(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to generate. Null is absent; those from `top_k` on are lmwire's own, and mean what PROTOCOL.md says."""

    model: Text
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[int, float] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    stop: str | list[str] | None = None
    n: Annotated[int, Meta(ge=1, le=16)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    """Harmless."""

    top_k: int | None = None
    min_p: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    repetition_penalty: float | None = None
    penalty_window: int | None = None
    min_tokens: Count | None = None
    ignore_eos: bool | None = None
    include_stop: bool | None = None
    truncate: Literal["none", "left", "middle"] | None = None
    cache: Literal["on", "off", "pin"] | None = None
    timeout_ms: int | None = None
    format: Format | None = None


def generation_options(body: Generating) -> Options:
    """The fields as the client library takes them.

    Raises:
        ApiError: they contradict each other.
    """
    if body.stream_options is not None and not body.stream:
        raise invalid_field("stream_options: is for streams; set `stream` to true, or leave it out", "stream_options")
    options: Any = given(body, *_SAME)
    options["temperature"] = _TEMPERATURE if body.temperature is None else body.temperature
    if body.seed is not None:
        options["seed"] = body.seed % _SEEDS
    if body.stop is not None:
        options["stop"] = [body.stop] if isinstance(body.stop, str) else body.stop
    return options


def given(body: Struct, *names: str) -> dict[str, Any]:
    """The fields of these names that are not null."""
    return {name: value for name in names if (value := getattr(body, name)) is not None}


def renamed(body: Generating, field: str) -> str:
    """The client's name of a field on the wire, where all generations share it."""
    return "stop" if field == "stop[0]" and isinstance(body.stop, str) else field


def wants_usage(body: Generating) -> bool:
    """Whether a stream is to end with the usage."""
    return bool(body.stream_options and body.stream_options.include_usage)
