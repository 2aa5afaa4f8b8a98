"""The commands, fields and values that are newer than protocol 1.0.

A worker lists them in `hello`'s `features`, so that a host knows what it may send.
"""

from typing import Final

_GENERATION: Final = (
    "min_tokens",
    "ignore_eos",
    "xtc_probability",
    "xtc_threshold",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_range",
    "dry_sequence_breakers",
    "banned_strings",
    "include_stop",
    "logprobs",
    "top_logprobs",
    "n",
    "format",
    "truncate",
    "cache",
    "cache_report",
    "timeout_ms",
)
_GENERATE: Final = ("suffix", "context_files", "prompt_logprobs")
_CHAT: Final = (
    "tools",
    "chat_template",
    "template_args",
    "add_generation_prompt",
    "continue_final_message",
    "prefix",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "reasoning_effort",
    "reasoning_budget",
    "strict_media",
    "messages.role.developer",
    "messages.role.tool",
    "messages.content.image",
    "messages.content.audio",
    "messages.reasoning",
    "messages.tool_calls",
    "messages.tool_call_id",
    "messages.name",
)

_SHAPES: Final = (
    "messages.content.image_url",
    "messages.tool_calls.type",
    "messages.tool_calls.function",
    "messages.tool_call_id.absent",
)
"""OpenAI's shapes of messages."""
_LOAD: Final = (
    *("adapter_path", "draft_path", "chat_template_name", "context_len", "kv_bits", "dtype", "force"),
    *("tool_format", "reasoning_start", "reasoning_end", "generation_config"),
)

DONE_CMD: Final = "done.cmd"
"""The feature of a worker whose `done` names its command: the only one that is a field of an event."""

DEFAULT_MODEL: Final = "load.path.absent"
"""The feature of a worker that was started with a default model."""

FEATURES: Final = (
    "tokenize",
    "embed",
    "transcribe",
    "speak",
    "cache",
    *(f"load.{field}" for field in _LOAD),
    *(f"{command}.{field}" for command in ("generate", "chat") for field in _GENERATION),
    *(f"generate.{field}" for field in _GENERATE),
    *(f"chat.{field}" for field in _CHAT),
    *(f"{command}.{field}" for command in ("chat", "tokenize") for field in _SHAPES),
    "generate.stop.string",
    "chat.stop.string",
    "chat.tool_choice.type",
    "chat.tool_choice.function",
    "tokenize.reasoning",
    "tokenize.reasoning_effort",
    "tokenize.continue_final_message",
    "tokenize.add_special_tokens",
    "tokenize.token_ids",
    "embed.input.tokens",
    DEFAULT_MODEL,
    DONE_CMD,
)
"""Every command, field and value newer than 1.0: `command`, `command.field`, `command.field.value`. The fields that a
listed command has had from its start are not listed. `string` and `absent` are forms of a field, like its values.
`done.cmd` is a field of an event, which a host may rely on once it is listed."""
