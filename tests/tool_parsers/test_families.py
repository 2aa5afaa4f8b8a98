"""Each family's tool calls: its template shows the format, and its answers are read whole and at every split."""

import json
from pathlib import Path
from typing import Any

import pytest

from lmwire_protocol import Function, Tool
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.prompts.model_syntax import find_tool_format
from lmwire_worker.tool_parsers import FORMATS, ToolFormat, WrittenCall
from random_model import write_model
from support.models.tool_families import FAMILIES

PARAMETERS = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "line": {"type": "integer"},
        "text": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
EDIT = Tool(function=Function(name="edit", parameters=PARAMETERS))
each_family = pytest.mark.parametrize("name", FAMILIES)


def read(tool_format: ToolFormat, pieces: Any) -> list[tuple[str, Any]]:
    """Return the whole calls of a section that comes in pieces."""
    parser = tool_format.make_parser([EDIT])
    fragments = [fragment for piece in pieces for fragment in parser.push(piece)] + parser.end()[0]
    names = [fragment.name for fragment in fragments if fragment.name]
    texts = ["".join(part.arguments for part in fragments if part.index == index) for index in range(len(names))]
    assert all(fragment.complete is not False for fragment in fragments)
    return list(zip(names, map(json.loads, texts), strict=True))


def body(tool_format: ToolFormat, text: str) -> str:
    text = text.partition(tool_format.start)[2]
    return text.partition(tool_format.end)[0] if tool_format.end else text


@each_family
def test_the_template_shows_the_format(name: str, tmp_path: Path) -> None:
    write_model(tmp_path, "llama")
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"chat_template": FAMILIES[name].template}))
    (tmp_path / "chat_template.jinja").unlink(missing_ok=True)
    tokenizer = load_tokenizer(tmp_path, {}, trust_remote_code=False)
    assert find_tool_format(tokenizer, "llama").name == name


@each_family
def test_an_answer_is_read_whole_and_at_every_split(name: str) -> None:
    family, tool_format = FAMILIES[name], FORMATS[name]
    text = body(tool_format, family.answer)
    expected = [("edit", family.arguments)]
    assert read(tool_format, [text]) == read(tool_format, text) == expected
    for place in range(len(text)):
        assert read(tool_format, [text[:place], text[place:]]) == expected


@pytest.mark.parametrize("name", FORMATS)
def test_a_written_call_is_read_back(name: str) -> None:
    arguments = {"path": 'x "y"\n', "line": 12, "tags": ["a"]}
    text = FORMATS[name].write([WrittenCall("edit", arguments, "abcdefghi")])
    if name == "functionary_v3_2":  # its start marker ends the prompt
        text = text.removeprefix(">>>")
        assert read(FORMATS[name], [text]) == [("edit", arguments)]
    else:
        assert read(FORMATS[name], [body(FORMATS[name], text) if FORMATS[name].start else text]) == [
            ("edit", arguments)
        ]


def test_an_id_after_the_arguments_is_the_calls() -> None:
    parser = FORMATS["mistral_nemo"].make_parser([EDIT])
    text = '[{"name": "edit", "arguments": {"line": 1}, "id": "a1b2c3d4e"}]'
    fragments = [part for letter in text for part in parser.push(letter)]
    assert [(part.name, part.call_id, part.arguments) for part in fragments] == [("edit", "a1b2c3d4e", '{"line":1}')]
