"""The format of tool calls that is found for a model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.prompts.model_syntax import find_tool_format
from random_model import write_model

FormatOf = Callable[..., str]


@pytest.fixture(scope="module")
def format_of(tmp_path_factory: pytest.TempPathFactory) -> FormatOf:
    """The format of a model with a chat template and settings of its tokenizer."""
    folder: Path = tmp_path_factory.mktemp("model")
    write_model(folder, "llama")

    plain_config = (folder / "tokenizer_config.json").read_text()

    def format_of(template: str, model_type: str = "llama", **settings: Any) -> str:
        config = folder / "tokenizer_config.json"
        config.write_text(json.dumps(json.loads(plain_config) | {"chat_template": template} | settings))
        (folder / "chat_template.jinja").unlink(missing_ok=True)
        tokenizer = load_tokenizer(folder, {}, trust_remote_code=False)
        return find_tool_format(tokenizer, model_type).name

    return format_of


@pytest.mark.parametrize("name", ["glm47", "kimi_k2", "qwen3_coder", "pythonic"])
def test_a_models_own_setting_names_its_format(name: str, format_of: FormatOf) -> None:
    assert format_of("{{ messages }}", tool_parser_type=name) == name


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
    assert find_tool_format(tokenizer, "llama").name == "json_tools"
