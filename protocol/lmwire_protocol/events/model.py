"""Events of `load`, `unload`, `info` and `cache`."""

from typing import Literal

from msgspec import Struct

from .base import Count, Done, Event
from .session import RankGroup

Stage = Literal["resolve", "download", "read", "warm_up", "prefill", "transcribe"]
Unit = Literal["bytes", "tokens", "steps", "seconds"]


class Progress(Event, tag="progress", kw_only=True):
    """The progress of a long step; at most ten events a second for one id."""

    id: str
    stage: Stage
    current: Count
    total: Count | None = None
    """Absent if it is unknown."""
    unit: Unit


class Quantization(Struct):
    """The quantization of a model's weights."""

    bits: int
    group_size: int


class SamplingDefaults(Struct, omit_defaults=True):
    """Values for the sampling fields that a request does not set. An absent one is the protocol's own default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None


class RankInfo(RankGroup, frozen=True):
    """The processes that hold a model together."""

    split: str
    """`tensor`: each has a part of every layer. `pipeline`: each has a run of whole layers."""
    weights_bytes: list[Count]
    """Size of each one's part of the weights."""


class ModelDone(Done, tag="done", kw_only=True):
    """The reply to `load` and `info`: the loaded model."""

    path: str
    """The folder that the model was loaded from."""
    model_type: str
    vocab_size: int
    layers: int
    hidden_size: int
    context_len: int
    """Maximum number of tokens of prompt and answer together."""
    weights_bytes: int
    capabilities: list[str]
    """The commands that this model serves. Also `images` and `sounds` if it takes those, and `suffix` if it fills
    gaps."""
    quantization: Quantization | None = None
    """Absent if the model is not quantized."""
    adapter_path: str | None = None
    """Path of the adapter that was loaded with the model."""
    chat_template_name: str | None = None
    """The chat template in use: the name that the load gave, or `role_content` for a model without one. Absent for the
    model's default."""
    tool_format: str | None = None
    """Name of the format in which the model writes tool calls. Absent for a model that generates no text."""
    tool_format_note: str | None = None
    """Sentences for a person, if the format is derived from the chat template or prompts describe one; else absent."""
    batch_size: Count | None = None
    """Maximum number of answers that are computed together. Absent if the worker does not report it."""
    sampling_defaults: SamplingDefaults | None = None
    """The model's own defaults, with `generation_config` of `load`. Absent if the model has none."""
    reasoning_efforts: list[str] | None = None
    """The values of `reasoning_effort` that the chat template takes, from the lowest. Others stand for a close one or
    for a budget. Absent if the model does not reason."""
    ranks: RankInfo | None = None
    """The processes that hold the model together. Absent if one does."""


class UnloadDone(Done, tag="done", kw_only=True):
    """The reply to `unload`."""

    freed_bytes: Count
    """Memory that was freed; 0 if no model was loaded."""


class CacheDone(Done, tag="done", kw_only=True):
    """The reply to `cache`."""

    freed_bytes: Count
