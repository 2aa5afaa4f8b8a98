"""The table of formats, and which of them a model has."""

import json
import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mlx_lm import tool_parsers

from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.tool_parsers import FORMATS, find_format
from random_model import write_model
from support.models.tool_samples import WRITERS, tool

PARSERS = sorted(module.name for module in pkgutil.iter_modules(tool_parsers.__path__))
FormatOf = Callable[..., str | None]


@pytest.fixture(scope="module")
def format_of(tmp_path_factory: pytest.TempPathFactory) -> FormatOf:
    """The format of a model with a chat template and settings of its tokenizer."""
    folder: Path = tmp_path_factory.mktemp("model")
    write_model(folder, "llama")
    plain_config = (folder / "tokenizer_config.json").read_text()

    def format_of(template: str, model_type: str = "llama", **settings: Any) -> str | None:
        config = folder / "tokenizer_config.json"
        config.write_text(json.dumps(json.loads(plain_config) | {"chat_template": template} | settings))
        (folder / "chat_template.jinja").unlink(missing_ok=True)
        tokenizer = load_tokenizer(folder, {}, trust_remote_code=False)
        found = find_format(tokenizer, model_type)
        return found and found.name

    return format_of


def test_the_table_holds_all_parsers_of_mlx_lm_and_three_more() -> None:
    assert sorted(FORMATS) == sorted([*PARSERS, "harmony", "llama3_json", "gemma3_code"])


@pytest.mark.parametrize("name", PARSERS)
def test_markers_are_those_of_mlx_lm(name: str) -> None:
    module = import_module(f"mlx_lm.tool_parsers.{name}")
    assert (FORMATS[name].start, FORMATS[name].end) == (module.tool_call_start, module.tool_call_end)


@pytest.mark.parametrize("name", PARSERS)
def test_a_call_is_read_as_mlx_lm_reads_it(name: str) -> None:
    weather = tool("get_weather")
    text = WRITERS[name]([("get_weather", {"city": "Paris", "days": 3, "exact": True, "note": "12"})])
    expected = import_module(f"mlx_lm.tool_parsers.{name}").parse_tool_call(text, [msgspec.to_builtins(weather)])
    expected = expected[0] if isinstance(expected, list) else expected
    reader = FORMATS[name].make_parser([weather])
    fragments = reader.push(text) + reader.end()[0]
    assert fragments[0].name == expected["name"]
    assert msgspec.json.decode("".join(fragment.arguments for fragment in fragments)) == expected["arguments"]


@pytest.mark.parametrize("name", PARSERS)
def test_a_models_own_setting_names_its_format(name: str, format_of: FormatOf) -> None:
    found = format_of("{{ messages }}", tool_parser_type=name)
    assert found == name


@pytest.mark.parametrize(
    ("model_type", "template", "name"),
    [
        ("qwen3", "{% if tools %}<tool_call>{{ tool_call.name }}{% endif %}", "json_tools"),
        ("qwen3_moe", "{% if tools %}<tool_call>\n<function={% endif %}", "qwen3_coder"),
        ("mistral", "{% if tools %}[AVAILABLE_TOOLS]{% endif %}[TOOL_CALLS]", "mistral"),
        ("gpt_oss", "namespace functions <|start|>assistant<|channel|>commentary", "harmony"),
        ("llama", '{% if tools %}{"name": function name, "parameters": dictionary}{% endif %}', "llama3_json"),
        ("llama", "{% if builtin_tools %}<|python_tag|>{% endif %}", "llama3_json"),
        ("qwen2", "{% if tools %}<tool_call>{{ call | tojson }}</tool_call>{% endif %}", "json_tools"),
        ("gemma3", "<start_of_turn>{{ messages }}", "gemma3_code"),
        ("gemma2", "<start_of_turn>{{ messages }}", "gemma3_code"),
        ("phi3", "<|user|>{{ messages }}", "json_tools"),
    ],
)
def test_a_template_shows_the_format(model_type: str, template: str, name: str, format_of: FormatOf) -> None:
    assert format_of(template, model_type) == name


def test_a_model_without_a_template_can_be_given_one(tmp_path: Path) -> None:
    write_model(tmp_path, "llama")
    tokenizer = load_tokenizer(tmp_path, {}, trust_remote_code=False)
    tokenizer.chat_template = None
    assert find_format(tokenizer, "llama").name == "json_tools"
