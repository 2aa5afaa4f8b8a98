"""The chat template that a load chooses by its name."""

from pathlib import Path
from typing import Any

import pytest

from lmwire_protocol import RequestError
from lmwire_worker.prompts.model_templates import MAX_TEMPLATE_BYTES, choose_template
from support.runners.prompting import tokenizer

OWN = "{{ messages[0].content }}"


def named(templates: dict[str, str] | str | None) -> Any:
    """Return a tokenizer with these templates of its model. It is not shared, because a choice changes it."""
    made = tokenizer.__wrapped__(OWN)
    made.chat_template = templates
    return made


def refusal(made: Any, name: str, directory: Path | None = None) -> str:
    with pytest.raises(RequestError) as refused:
        choose_template(made, name, directory)
    assert (refused.value.code, refused.value.field) == ("invalid_request", "chat_template_name")
    return refused.value.message


def test_without_a_name_the_default_template_stays() -> None:
    assert choose_template(named(OWN), None, None) is None
    assert choose_template(named(None), None, None) == "role_content"


@pytest.mark.parametrize("name", ["short", "short.jinja"])
def test_one_of_several_templates_is_chosen(name: str) -> None:
    made = named({"default": OWN, "short": "s"})
    assert choose_template(made, name, None) == "short"
    assert made.chat_template == "s"


def test_a_file_of_the_folder_wins_over_the_models_template(tmp_path: Path) -> None:
    (tmp_path / "short.jinja").write_text("from the folder")
    made = named({"default": OWN, "short": "s"})
    assert choose_template(made, "short", tmp_path) == "short"
    assert made.chat_template == "from the folder"


def test_an_unknown_name_lists_the_templates(tmp_path: Path) -> None:
    (tmp_path / "long.jinja").write_text("l")
    assert refusal(named({"default": OWN}), "other", tmp_path).endswith("there are: default, long")
    assert refusal(named(None), "other").endswith("there are: none")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "", ".hidden", "a" * 129, "a\nb"])
def test_a_path_is_not_a_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret.jinja").write_text("s")
    (tmp_path / "folder").mkdir()
    assert "must be a template's name" in refusal(named(OWN), name, tmp_path / "folder")


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link.jinja").symlink_to(tmp_path / "secret")
    assert "is a link to a file outside" in refusal(named(OWN), "link", tmp_path / "folder")


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"\xff", "is not UTF-8"), (b"{% if", "cannot be used"), (b"x" * (MAX_TEMPLATE_BYTES + 1), "long.jinja")],
)
def test_a_file_that_is_not_a_template_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "long.jinja").write_bytes(content)
    assert problem in refusal(named(OWN), "long", tmp_path)
