"""Chat templates of models on the pipe."""

from pathlib import Path
from typing import Any

from support.models.chat_templates import GEMMA3
from support.models.templated_model import write_templated_model
from support.process.worker_process import WorkerProcess


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
    with WorkerProcess() as worker:
        worker.load(str(write_templated_model(tmp_path / "model", GEMMA3)))
        assert read_prompt(worker, "t", *GREETING).startswith(
            "<start_of_turn>user\n<end_of_turn>\n<start_of_turn>model\nWelcome!<end_of_turn>\n<start_of_turn>user\nHi"
        )
        done = worker.call({"id": "c", "cmd": "chat", "messages": GREETING, "max_tokens": 3})
        assert done["usage"]["completion_tokens"] == 3


def test_a_prompt_without_generation_prompt_keeps_the_end_of_the_turn_unless_it_is_continued(tmp_path: Path) -> None:
    turns = (message("user", "Hi"), message("assistant", "Well"))
    closed = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nWell<|im_end|>\n"
    with WorkerProcess() as worker:
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
