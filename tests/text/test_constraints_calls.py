"""Calls that must be made: whatever the model would say, its format's own reader finds the calls in what it says."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from constrained import Speaker, tool, write_tokenizer
from lmwire_protocol import Chat, RequestError, Tool
from lmwire_protocol.formats import JsonSchemaFormat
from lmwire_protocol.messages import Function, Message, NamedTool
from lmwire_worker.text.tools import FORMATS, CallText

SPECIAL = {
    "mistral": ["[TOOL_CALLS]", "[ARGS]"],
    "kimi_k2": [
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
    ],
    "kimi_k3": ["<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"],
    "harmony": ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|constrain|>", "<|return|>"],
    "pythonic": ["<|tool_call_start|>", "<|tool_call_end|>"],
    "gemma4": ["<|tool_call>", "<tool_call|>", '<|"|>'],
    "function_gemma": ["<start_function_call>", "<end_function_call>", "<escape>"],
    "llama3_json": ["<|python_tag|>"],
}
"""Markers that are special tokens in models of that format."""
PLAIN = ["<tool_call>", "</tool_call>", "</parameter>", "</param>", "</arg_value>", "</longcat_arg_value>"]
"""Tokens that stand for their text, as some models have them, so that random text comes to an end."""
TOOLS = [
    tool(
        city={"type": "string", "minLength": 1, "maxLength": 12},
        unit={"type": "string", "enum": ["celsius", "kelvin"]},
        days={"type": "integer", "minimum": 1, "maximum": 14},
        detailed={"type": "boolean"},
    ),
    Tool(
        function=Function(
            name="draw",
            parameters={
                "type": "object",
                "properties": {
                    "points": {
                        "type": "array",
                        "items": {"type": "number", "minimum": -9, "maximum": 9},
                        "minItems": 1,
                        "maxItems": 3,
                    },
                    "note": {"type": "string"},
                    "at": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
                },
                "required": ["points"],
                "additionalProperties": False,
            },
        )
    ),
    Tool(function=Function(name="now")),
]
SEEDS = range(25)


@pytest.fixture(scope="session")
def speaker_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Speaker]:
    speakers: dict[str, Speaker] = {}

    def speaker_of(name: str) -> Speaker:
        if name not in speakers:
            folder = tmp_path_factory.mktemp(name)
            tokenizer = write_tokenizer(folder, SPECIAL.get(name, ()), PLAIN)
            if name == "harmony":
                tokenizer.eos_token_ids = set(tokenizer.encode("<|return|><|call|>", add_special_tokens=False))
            speakers[name] = Speaker(tokenizer, FORMATS[name], "gpt_oss" if name == "harmony" else "llama")
        return speakers[name]

    return speaker_of


def chat(**fields: Any) -> Chat:
    fields.setdefault("tools", TOOLS)
    return Chat(messages=[Message(role="user", content="x")], **fields)


def read_calls(speaker: Speaker, text: str, tools: list[Tool]) -> list[tuple[str, Any]]:
    """The calls of an answer that is sections of calls and nothing else."""
    form = speaker.syntax.tools
    assert form is not None
    calls = []
    while text.strip():
        text = text.lstrip()
        if not form.bare:
            assert text.startswith(form.start), text
            text = text.removeprefix(form.start)
        section, _, text = text.partition(form.end) if form.end else (text, "", "")
        reader = form.reader(tools)
        pieces, rest = reader.push(section), ""
        pieces += (ended := reader.end())[0]
        rest = ended[1]
        assert rest.strip() == "", (section, rest)
        calls += join(pieces)
    return calls


def join(pieces: list[CallText]) -> list[tuple[str, Any]]:
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    for piece in pieces:
        names.setdefault(piece.index, piece.name or "")
        arguments[piece.index] = arguments.get(piece.index, "") + piece.arguments
        assert piece.complete is not False
    return [(names[index], json.loads(arguments[index])) for index in names]


@pytest.mark.parametrize("name", FORMATS)
def test_a_required_call_is_read_back_and_the_schema_holds_for_it(
    speaker_of: Callable[[str], Speaker], name: str
) -> None:
    speaker = speaker_of(name)
    schemas = {tool.function.name: tool.function.parameters for tool in TOOLS}
    called = set()
    for seed in SEEDS:
        answer = speaker.say(chat(tool_choice="required", reasoning="off", parallel_tool_calls=False), seed)
        calls = read_calls(speaker, answer, TOOLS)
        assert len(calls) == 1
        for function, arguments in calls:
            jsonschema.validate(arguments, schemas[function] or {"maxProperties": 0})
            called.add(function)
    assert called == set(schemas)
