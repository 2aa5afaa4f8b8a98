"""Chat templates of models on the pipe."""

from pathlib import Path
from typing import Any

import pytest

from support.models.chat_templates import GEMMA3
from support.models.templated_model import write_templated_model
from support.process.worker_process import WorkerProcess
from support.process.worker_thread import RealOnThread

pytestmark = pytest.mark.slow


def read_prompt(worker: WorkerProcess, id: str, *messages: dict[str, Any], **fields: Any) -> str:
    """The text of a conversation's prompt."""
    assert worker.call({"id": id, "cmd": "tokenize", "messages": list(messages), **fields})["event"] == "done"
    return worker.text(id)


def message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
CHATML += "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
GREETING = (message("assistant", "Welcome!"), message("user", "Hi"))


def test_a_conversation_that_begins_with_the_assistant_is_answered_in_gemmas_template(tmp_path: Path) -> None:
    with RealOnThread() as worker:
        worker.load(str(write_templated_model(tmp_path / "model", GEMMA3)))
        assert read_prompt(worker, "t", *GREETING).startswith(
            "<start_of_turn>user\n<end_of_turn>\n<start_of_turn>model\nWelcome!<end_of_turn>\n<start_of_turn>user\nHi"
        )
        done = worker.call({"id": "c", "cmd": "chat", "messages": GREETING, "max_tokens": 3})
        assert done["usage"]["completion_tokens"] == 3


def test_a_prompt_without_generation_prompt_keeps_the_end_of_the_turn_unless_it_is_continued(tmp_path: Path) -> None:
    turns = (message("user", "Hi"), message("assistant", "Well"))
    closed = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nWell<|im_end|>\n"
    with RealOnThread() as worker:
        worker.load(str(write_templated_model(tmp_path / "model", CHATML)))
        assert read_prompt(worker, "closed", *turns, add_generation_prompt=False) == closed
        continued = {"add_generation_prompt": False, "continue_final_message": True}
        assert read_prompt(worker, "continued", *turns, **continued) == closed.removesuffix("<|im_end|>\n")
        chat = {"cmd": "chat", "messages": turns, "max_tokens": 3}
        worker.call({"id": "a", **chat, **continued})
        worker.call({"id": "b", "cmd": "generate", "prompt": closed.removesuffix("<|im_end|>\n"), "max_tokens": 3})
        worker.call({"id": "c", **chat, "add_generation_prompt": False})
        worker.call({"id": "d", "cmd": "generate", "prompt": closed, "max_tokens": 3})
        assert worker.token_ids("a") == worker.token_ids("b")
        assert worker.token_ids("c") == worker.token_ids("d")
        error = worker.call({"id": "e", **chat, "continue_final_message": True})
        assert (error["code"], error["field"]) == ("invalid_request", "continue_final_message")


def test_a_model_without_a_template_reads_a_line_for_each_message(tmp_path: Path) -> None:
    turns = (message("system", "Be brief."), message("user", "Hi"))
    with RealOnThread() as worker:
        loaded = worker.load(str(write_templated_model(tmp_path / "model")))
        assert (loaded["chat_template_name"], "chat" in loaded["capabilities"]) == ("role_content", True)
        assert worker.call({"id": "i", "cmd": "info"})["chat_template_name"] == "role_content"
        assert read_prompt(worker, "t", *turns) == "system: Be brief.\nuser: Hi\nassistant:"
        worker.call({"id": "c", "cmd": "chat", "messages": turns, "max_tokens": 4})
        prompt = "system: Be brief.\nuser: Hi\nassistant:"
        worker.call({"id": "g", "cmd": "generate", "prompt": prompt, "max_tokens": 4})
        assert worker.token_ids("c") == worker.token_ids("g")


def test_a_load_may_name_the_format_of_tool_calls(tmp_path: Path) -> None:
    model = str(write_templated_model(tmp_path / "model"))
    with RealOnThread() as worker:
        loaded = worker.load(model)
        assert loaded["tool_format"] == "json_tools"
        assert "so prompts describe json_tools" in loaded["tool_format_note"]
        worker.wait_for_stderr(loaded["tool_format_note"].encode())
        loaded = worker.load(model, "named", tool_format="mistral_nemo")
        assert (loaded["tool_format"], "tool_format_note" in loaded) == ("mistral_nemo", False)
        assert worker.call({"id": "i", "cmd": "info"})["tool_format"] == "mistral_nemo"
        error = worker.call({"id": "l", "cmd": "load", "path": model, "tool_format": "hermes"})
        assert (error["code"], error["field"], error["loaded"]) == ("invalid_request", "tool_format", True)
        assert "json_tools" in error["error"]


NAMED = {"default": "own {{ messages[0].content }}", "shout": "loud {{ messages[0].content }}"}


@pytest.mark.parametrize("listed", [True, False])
def test_a_load_chooses_one_of_a_models_templates(tmp_path: Path, listed: bool) -> None:
    model = str(write_templated_model(tmp_path / "model", named=NAMED, listed=listed))
    with RealOnThread() as worker:
        assert "chat_template_name" not in worker.load(model)
        assert read_prompt(worker, "own", message("user", "Hi")) == "own Hi"
        assert worker.load(model, "named", chat_template_name="shout")["chat_template_name"] == "shout"
        assert read_prompt(worker, "shout", message("user", "Hi")) == "loud Hi"
        error = worker.call({"id": "l", "cmd": "load", "path": model, "chat_template_name": "whisper"})
        assert (error["code"], error["field"], error["loaded"]) == ("invalid_request", "chat_template_name", True)
        assert "there are: default, shout" in error["error"]


def test_a_load_chooses_a_template_of_a_folder(tmp_path: Path) -> None:
    model = str(write_templated_model(tmp_path / "model", named=NAMED))
    folder = tmp_path / "templates"
    folder.mkdir()
    (folder / "plain.jinja").write_text("plain {{ messages[0].content }}")
    (folder / "shout.jinja").write_text("the operator's {{ messages[0].content }}")
    with RealOnThread("--template-dir", str(folder)) as worker:
        assert worker.load(model, "plain", chat_template_name="plain")["chat_template_name"] == "plain"
        assert read_prompt(worker, "t", message("user", "Hi")) == "plain Hi"
        worker.load(model, "file", chat_template_name="plain.jinja")
        worker.load(model, "operator", chat_template_name="shout")
        assert read_prompt(worker, "u", message("user", "Hi")) == "the operator's Hi"


def test_a_templates_name_cannot_reach_out_of_the_folder(tmp_path: Path) -> None:
    model = str(write_templated_model(tmp_path / "model", CHATML))
    folder = tmp_path / "templates"
    folder.mkdir()
    secret = tmp_path / "secret.jinja"
    secret.write_text("secret")
    (folder / "link.jinja").symlink_to(secret)
    (folder / "broken.jinja").write_text("{% if %}")
    (folder / "bytes.jinja").write_bytes(b"\xff")
    (folder / "folder.jinja").mkdir()
    with RealOnThread("--template-dir", str(folder)) as worker:
        worker.load(model)
        for name in ("../secret", "..", ".", "/etc/passwd", str(secret), "a/b", "link", "broken", "bytes", "folder"):
            error = worker.call({"id": "l", "cmd": "load", "path": model, "chat_template_name": name})
            assert (error["code"], error["field"], error["loaded"]) == ("invalid_request", "chat_template_name", True)
            assert "secret" not in error["error"].replace(repr(name), "").replace(str(tmp_path), "")


def test_a_template_of_the_folder_runs_in_the_sandbox(tmp_path: Path) -> None:
    model = str(write_templated_model(tmp_path / "model", CHATML))
    (tmp_path / "greedy.jinja").write_text("{{ 'x'.ljust(99999999999) }}")
    with RealOnThread("--template-dir", str(tmp_path)) as worker:
        worker.load(model, chat_template_name="greedy")
        error = worker.call({"id": "c", "cmd": "chat", "messages": [message("user", "Hi")], "max_tokens": 1})
        assert (error["code"], "memory" in error["error"]) == ("invalid_request", True)
        assert worker.call({"id": "g", "cmd": "generate", "prompt": "Hi", "max_tokens": 1})["event"] == "done"


THINKS = CHATML.replace("assistant\n{% endif", "assistant\n<think>{% endif") + "{# </think> #}"


def test_a_model_reports_the_efforts_that_its_template_takes_and_gets_them(tmp_path: Path) -> None:
    template = "Effort: {{ reasoning_effort or 'medium' }}\n" + THINKS
    with RealOnThread() as worker:
        loaded = worker.load(str(write_templated_model(tmp_path / "model", template)))
        assert loaded["reasoning_efforts"] == ["low", "medium", "high"]
        assert worker.call({"id": "info", "cmd": "info"})["reasoning_efforts"] == loaded["reasoning_efforts"]
        prompt = read_prompt(worker, "t", message("user", "Hi"), reasoning_effort="high")
        assert prompt == "Effort: high\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>"


def test_an_effort_that_the_template_does_not_take_limits_the_reasoning(tmp_path: Path) -> None:
    chat = {"cmd": "chat", "messages": [message("user", "Hi")], "reasoning_effort": "minimal", "max_tokens": 270}
    with RealOnThread() as worker:
        assert worker.load(str(write_templated_model(tmp_path / "model", THINKS)))["reasoning_efforts"] == []
        done = worker.call({"id": "a", **chat})
        assert "</think>" not in worker.text("a")
        assert 256 <= done["usage"]["reasoning_tokens"] < 270
        done = worker.call({"id": "b", **chat, "reasoning_effort": "high"})
        assert done["usage"]["reasoning_tokens"] == 270
