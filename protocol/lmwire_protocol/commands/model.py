"""Commands about the model: `load`, `unload`, `info` and `cache`."""

from typing import Annotated, Literal

from msgspec import Meta

from .. import events
from ..limits import MARKER_CHARACTERS
from .base import Command, Positive

Marker = Annotated[str, Meta(min_length=1, max_length=MARKER_CHARACTERS)]


class Load(Command, frozen=True):
    """Load a model in place of the present one."""

    name = "load"
    done = events.ModelDone
    streams = (events.Progress,)
    barrier = True

    path: Annotated[str, Meta(min_length=1)]
    """A folder, a model hub id (`owner/name`) or an alias."""
    trust_remote_code: bool = False
    """Allow Python code in the model's folder to run. Off, such a model is refused."""
    adapter_path: Annotated[str, Meta(min_length=1)] | None = None
    """A folder with a LoRA adapter of the model. When the model is loaded already, only the adapter changes."""
    draft_path: Annotated[str, Meta(min_length=1)] | None = None
    """A smaller model with the same tokens, named like `path`. It proposes tokens that the model accepts or rejects. It
    does not change the answers, and the worker computes one answer at a time."""
    chat_template_name: Annotated[str, Meta(min_length=1)] | None = None
    """The chat template to use: one of the model's, or of the folder that the worker was started with. Absent: the
    model's default."""
    tool_format: Annotated[str, Meta(min_length=1)] | None = None
    """Name of the format in which the model writes tool calls. Absent: the worker finds it in the chat template."""
    context_len: Positive | None = None
    """Maximum number of tokens of prompt and answer together. Absent: the model's own maximum, which is also the
    highest value."""
    kv_bits: Literal[4, 8] | None = None
    """Number of bits for each key and value of the KV cache. This takes less memory, changes answers slightly, and the
    worker computes one answer at a time."""
    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    """Type of the numbers that are not quantized. Absent: that of the model's files, but float32 for float16 on a CPU,
    which is very slow there."""
    force: bool = False
    """Load the model even if it seems not to fit into memory."""
    reasoning_start: Marker | None = None
    """Text that starts the model's reasoning, such as `<think>`. It goes with `reasoning_end`. Absent: the worker finds
    the markers in the model's tokenizer."""
    reasoning_end: Marker | None = None
    """Text that ends the model's reasoning."""
    generation_config: bool = False
    """Use the sampling defaults of the model's generation_config.json in requests that do not set them."""

    def __post_init__(self) -> None:
        if (self.reasoning_start is None) != (self.reasoning_end is None):
            field = "reasoning_end" if self.reasoning_end is None else "reasoning_start"
            raise ValueError(f"{field}: give both `reasoning_start` and `reasoning_end`, or neither")


class Unload(Command, frozen=True):
    """Unload the model and free its memory."""

    name = "unload"
    done = events.UnloadDone
    barrier = True


class Info(Command, frozen=True):
    """Describe the loaded model."""

    name = "info"
    done = events.ModelDone


class Cache(Command, frozen=True):
    """Change the cache of earlier prompts and answers."""

    name = "cache"
    done = events.CacheDone

    action: Literal["clear"]
    """`clear`: drop all entries, pinned ones included."""
