"""Fields of requests that OpenAI's completions, chat completions and responses share."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

import lmwire_protocol as wire
from lmwire import GenerateOptions
from lmwire_protocol import Format

from ..errors import invalid_field
from ..inference.gbnf import lark_grammar
from ..inference.options import (
    REPETITION_FIELDS,
    LogitBias,
    given_fields,
    repetition_options,
    shared_fields,
    token_biases,
)
from ..limits import BannedStrings, DryBreakers, JsonObject, StopStrings
from ..settings import Settings
from .response_fields import UsageSoFar

UsageChunk: TypeAlias = Literal["empty", "choice"]
"""Form of the chunk with the usage: without choices, or with the last one again."""
Count: TypeAlias = Annotated[int, Meta(ge=0)]

_SEED_COUNT: Final = 2**53
_GRAMMAR_CHARACTERS: Final = 2**16
_FORMATS: Final = ("format", "response_format")


def reject_fields(body: object, reasons: Mapping[str, str], path: str = "") -> None:
    """Reject a request that has unsupported fields.

    Args:
        body: The request's body, or a part of it.
        reasons: For each field, why it is not supported and what to do instead.
        path: The path of that part.

    Raises:
        ApiError: A field is present.
    """
    for name, reason in reasons.items():
        if getattr(body, name) is not None:
            field = f"{path}.{name}" if path else name
            raise invalid_field(f"{field}: {reason}", field)


class StreamOptions(Struct, kw_only=True, forbid_unknown_fields=True):
    """Options of a stream. Without a stream they have no effect."""

    include_usage: bool | None = None
    """End the stream with a chunk of token counts."""
    continuous_usage_stats: bool | None = None
    """Report the token counts so far in each chunk, as vLLM does. Includes `include_usage`, unless that is false."""
    include_obfuscation: bool | None = None
    """Ignored: chunks have no padding."""


class GenerationParams(Struct, kw_only=True, forbid_unknown_fields=True):
    """Fields of requests that generate text. Null fields count as absent.

    The fields from `top_k` on are lmwire's own and have the meaning of PROTOCOL.md.
    """

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: LogitBias | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    stop: str | StopStrings | None = None
    n: Annotated[int, Meta(ge=1, le=16)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    """Ignored."""

    top_k: int | None = None
    min_p: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    repetition_penalty: float | None = None
    penalty_window: int | None = None
    dry_multiplier: float | None = None
    dry_base: float | None = None
    dry_allowed_length: int | None = None
    dry_range: int | None = None
    dry_sequence_breakers: str | DryBreakers | None = None
    banned_strings: str | BannedStrings | None = None
    min_tokens: Count | None = None
    ignore_eos: bool | None = None
    include_stop: bool | None = None
    truncate: Literal["none", "left", "middle"] | None = None
    cache: Literal["on", "off", "pin"] | None = None
    cache_report: bool | None = None
    timeout_ms: int | None = None
    format: Format | None = None
    grammar: Annotated[str, Meta(max_length=_GRAMMAR_CHARACTERS)] | None = None
    """A grammar that the answer follows, in llama.cpp's notation (GBNF). Empty: none."""


_OPTIONS: Final = shared_fields(
    GenerationParams, GenerateOptions, converted=("temperature", "seed", "stop", "logit_bias", *REPETITION_FIELDS)
)


def generation_options(body: GenerationParams) -> GenerateOptions:
    """Return the fields as the client library takes them.

    Raises:
        ApiError: A logit bias, a sequence breaker or a grammar is invalid.
    """
    options: Any = {**given_fields(body, *_OPTIONS), **token_biases(body.logit_bias), **repetition_options(body)}
    if body.temperature is not None:
        options["temperature"] = body.temperature
    if body.seed is not None:
        options["seed"] = body.seed % _SEED_COUNT
    if body.stop is not None:
        options["stop"] = [body.stop] if isinstance(body.stop, str) else body.stop
    if body.grammar:
        options["format"] = _grammar_format(body, body.grammar)
    return options


def _grammar_format(body: GenerationParams, grammar: str) -> wire.Format:
    for name in _FORMATS:
        if getattr(body, name, None) is not None:
            raise invalid_field(f"grammar: says what `{name}` says, too; give one of them", "grammar")
    try:
        return wire.LarkFormat(grammar=lark_grammar(grammar))
    except ValueError as error:
        raise invalid_field(f"grammar: {error}", "grammar") from None


def client_field(body: GenerationParams, field: str) -> str:
    """Return the client's name of a worker's field that all generations share.

    Args:
        body: The request's body.
        field: The path of the worker's field.
    """
    if body.grammar and field.partition(".")[0] == "format":
        return "grammar"
    name = field.removesuffix("[0]")
    is_alone = name in ("stop", "banned_strings") and isinstance(getattr(body, name), str)
    return name if is_alone else field


def usage_chunk(body: GenerationParams, settings: Settings) -> UsageChunk | None:
    """Return the form of the usage at the end of a stream; None if the request does not ask for it.

    Args:
        body: The request's body.
        settings: The server's settings.
    """
    options = body.stream_options or StreamOptions()
    is_wanted = options.continuous_usage_stats if options.include_usage is None else options.include_usage
    return settings.usage_chunk if is_wanted else None


def usage_so_far(body: GenerationParams) -> UsageSoFar | None:
    """Return the counter of a stream that reports its usage in each chunk; None if the request asks for none."""
    options = body.stream_options or StreamOptions()
    is_wanted = options.continuous_usage_stats and options.include_usage is not False
    return UsageSoFar() if is_wanted else None


class TextFormat(Struct, tag_field="type", tag="text", kw_only=True, forbid_unknown_fields=True):
    """Any text."""


class JsonObjectFormat(Struct, tag_field="type", tag="json_object", kw_only=True, forbid_unknown_fields=True):
    """A JSON object."""

    schema: JsonObject | None = None
    """A JSON Schema that the object follows, as llama.cpp and others have it; any object if absent."""


class JsonFormat(Struct, tag_field="type", tag="json", kw_only=True, forbid_unknown_fields=True):
    """A JSON object, by tabbyAPI's name."""


class JsonSchema(Struct, kw_only=True, forbid_unknown_fields=True):
    """A JSON Schema and its name."""

    name: str | None = None
    """Ignored, as is `description`: the model does not see them."""
    description: str | None = None
    schema: JsonObject | None = None
    """Any JSON object if absent."""
    strict: bool | None = None
    """Ignored: the answer always follows the schema, token by token."""


class JsonSchemaFormat(Struct, tag_field="type", tag="json_schema", kw_only=True, forbid_unknown_fields=True):
    """JSON that follows a schema."""

    json_schema: JsonSchema


ResponseFormat: TypeAlias = TextFormat | JsonObjectFormat | JsonFormat | JsonSchemaFormat


def wire_format(wanted: ResponseFormat) -> wire.Format | None:
    """Return the format as the client library takes it; None for any text."""
    match wanted:
        case TextFormat():
            return None
        case JsonObjectFormat(schema=schema):
            return wire_schema(schema)
        case JsonFormat():
            return wire.JsonObjectFormat()
        case JsonSchemaFormat():
            return wire_schema(wanted.json_schema.schema)


def wire_schema(schema: dict[str, Any] | None) -> wire.Format:
    """Return the format for a schema; any JSON object without one."""
    return wire.JsonObjectFormat() if schema is None else wire.JsonSchemaFormat(schema=schema)
