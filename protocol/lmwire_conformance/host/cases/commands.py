"""The lines of the host. Every case checks that each line is a valid command with a free id; see `PlayedWorker`."""

from typing import Any

from lmwire_protocol import decode_command
from lmwire_protocol.limits import LINE_IN_BYTES, MAX_INT

from .. import wire
from ..case_failure import CaseFailure, quote
from ..context import CaseContext
from .registry import case, variants

_CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": ""},
    {"role": "user", "content": 'Say "\\".'},
]

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"enum": [1, 2.5, None]}},
    "required": ["city"],
}
_TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "The weather.", "parameters": _SCHEMA, "strict": True},
}
_CALLS = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "The weather?"},
    {
        "role": "assistant",
        "reasoning": "I look.",
        "tool_calls": [
            {"id": "c1", "name": "weather", "arguments": {"city": "Rome", "days": None}},
            {"id": "c2", "name": "weather", "arguments": '{"city": "Oslo"}'},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "30 degrees"},
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "9 degrees"}]},
]
_PARTS = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "See: "},
            {"type": "image", "media": {"path": "/pictures/ä.png"}},
            {"type": "audio", "media": {"data": "UklGRg=="}},
        ],
    },
    {"role": "assistant", "content": "It is"},
]

_FIELDS: dict[str, dict[str, Any]] = {
    "text": {"cmd": "generate", "prompt": 'a "quoted" \\ back\nslash\ttab\r\x00\x1f\x7f/'},
    "unicode": {
        "cmd": "generate",
        "prompt": "é ß 漢字 \U0001f468‍\U0001f469‍\U0001f467 é \u2028\u2029\u0085\ufeff\uffff",
    },
    "token-ids": {"cmd": "generate", "prompt": [0, 1, MAX_INT]},
    "settings": {
        "cmd": "generate",
        "prompt": "x",
        "max_tokens": 0,
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.05,
        "repetition_penalty": 1.1,
        "penalty_window": 0,
        "seed": MAX_INT,
        "stop": ["\n", "é", "\U0001f600"],
    },
    "chat": {"cmd": "chat", "messages": _CHAT, "max_tokens": 5},
    "more-settings": {
        "cmd": "generate",
        "prompt": "x",
        "max_tokens": 9,
        "min_tokens": 2,
        "ignore_eos": True,
        "xtc_probability": 0.5,
        "xtc_threshold": 0.2,
        "presence_penalty": -2,
        "frequency_penalty": 0.5,
        "dry_multiplier": 0.8,
        "dry_base": 1.5,
        "dry_allowed_length": 3,
        "dry_range": 1024,
        "dry_sequence_breakers": ["\n", "é"],
        "banned_strings": ["a tapestry of", "\U0001f600"],
        "logit_bias": {"0": -100, "50256": 1.5},
        "include_stop": True,
        "logprobs": True,
        "top_logprobs": 20,
        "n": 16,
        "format": {"type": "regex", "pattern": r"\d+"},
        "truncate": "middle",
        "cache": "pin",
        "cache_report": True,
        "timeout_ms": 1000,
    },
    "tools": {
        "cmd": "chat",
        "messages": _CALLS,
        "tools": [_TOOL],
        "tool_choice": {"name": "weather"},
        "parallel_tool_calls": False,
        "reasoning": "on",
        "reasoning_effort": "low",
        "reasoning_budget": 0,
    },
    "template": {
        "cmd": "chat",
        "messages": _PARTS,
        "chat_template": "{{ messages }}",
        "template_args": {"enable_thinking": False, "none": None},
        "add_generation_prompt": False,
        "continue_final_message": True,
        "prefix": "Sure, ",
        "strict_media": True,
        "format": {"type": "json_schema", "schema": _SCHEMA},
    },
    "tokenize": {"cmd": "tokenize", "messages": _CALLS, "tools": [_TOOL], "reasoning": "off", "count_only": True},
    "cache": {"cmd": "cache", "action": "clear"},
    "load": {
        "cmd": "load",
        "path": "/models/played",
        "adapter_path": "/adapters/é",
        "draft_path": "/models/é",
        "chat_template_name": "plain",
        "tool_format": "json_tools",
        "context_len": MAX_INT,
        "kv_bits": 4,
        "dtype": "bfloat16",
        "force": True,
        "reasoning_start": "<é>",
        "reasoning_end": "</é>",
    },
}


@variants(_FIELDS, "F-1", "F-6", "F-7", "F-8", "I-1")
def sends_fields_unchanged(context: CaseContext, fields: dict[str, Any]) -> None:
    """Send text, numbers and lists to the worker unchanged."""
    context.start()
    request = context.request("a", **fields)
    if request.command != decode_command(fields):
        raise CaseFailure(quote(repr(decode_command(fields))), quote(request.line))
    done = {"event": "done", "id": request.id}
    others = {
        "tokenize": {**done, "count": 3},
        "cache": {**done, "freed_bytes": 0},
        "load": wire.model_done(request.id),
    }
    if request.name in others:
        context.worker.write(others[request.name])
        context.driver.expect_done("a", finish_reason=None)
    else:
        context.worker.write(wire.result_done(request.id, *["stop"] * fields.get("n", 1)))
        context.driver.expect_done("a")


@case("F-9")
def writes_the_id_first(context: CaseContext) -> None:
    """Write `id` as the first member of every line: a worker can then answer a line that it cannot read."""
    context.start()
    for request in (
        context.request("a"),
        context.request("b", "load", path="/models/played"),
        context.request("c", "ping"),
    ):
        if not request.line.lstrip(b" \t{").startswith(b'"id"'):
            raise CaseFailure("a line whose first member is `id`", quote(request.line))


@case("I-1", "I-2")
def matches_each_reply_to_its_command(context: CaseContext) -> None:
    """End each request with its own `done`, whatever the order."""
    worker = context.start()
    requests = {
        "a": context.request("a"),
        "b": context.request("b", "load", path="/models/played"),
        "c": context.request("c", "info"),
        "d": context.request("d", "unload"),
        "e": context.request("e", "stats"),
        "f": context.request("f", "ping"),
    }
    worker.write(
        wire.ping_done(requests["f"].id),
        wire.stats_done(requests["e"].id),
        {"event": "done", "id": requests["d"].id, "freed_bytes": 0},
        wire.model_done(requests["c"].id),
        wire.progress(requests["b"].id, "read", "bytes"),
        wire.model_done(requests["b"].id),
        wire.result_done(requests["a"].id),
    )
    context.driver.expect_done("a")
    for name in "bcdef":
        context.driver.expect_done(name, finish_reason=None)


@case("I-2")
def uses_no_id_that_is_in_flight(context: CaseContext) -> None:
    """Give each of many requests in flight its own id. Every case checks this."""
    worker = context.start()
    names = [f"r{number}" for number in range(50)]
    requests = {name: context.request(name) for name in names}
    for name in names[::2]:
        worker.write(wire.token(requests[name].id, name), wire.result_done(requests[name].id))
        context.driver.expect_done(name, text=name)
    again = {f"again {name}": context.request(f"again {name}") for name in names[::2]}
    for name, request in {**again, **{name: requests[name] for name in names[1::2]}}.items():
        worker.write(wire.token(request.id, name), wire.result_done(request.id))
        context.driver.expect_done(name, text=name)


@case("F-3")
def sends_no_line_over_32_mib(context: CaseContext) -> None:
    """Fail a request whose line is longer than the worker takes, and send nothing of it."""
    worker = context.start()
    context.ask("a", prompt="x" * LINE_IN_BYTES)
    worker.write(wire.result_done(context.request("b").id))
    context.driver.expect_done("b")
    context.driver.expect_failed("a", None)


@case("H-3")
def reads_while_its_write_is_stuck(context: CaseContext) -> None:
    """Read while a full pipe delays a write."""
    worker = context.start()
    streaming = context.request("a")
    context.ask("b", prompt="long " * 200_000)
    text = "y" * 1000
    worker.write(*[wire.token(streaming.id, text)] * 1000)
    context.driver.expect_text("a", text * 1000)
    long = worker.expect("generate")
    worker.write(wire.result_done(streaming.id), wire.result_done(long.id))
    context.driver.expect_done("a", text=text * 1000)
    context.driver.expect_done("b")
