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


GREETING = (message("assistant", "Welcome!"), message("user", "Hi"))


def test_a_conversation_that_begins_with_the_assistant_is_answered_in_gemmas_template(tmp_path: Path) -> None:
    with WorkerProcess() as worker:
        worker.load(str(write_templated_model(tmp_path / "model", GEMMA3)))
        assert read_prompt(worker, "t", *GREETING).startswith(
            "<start_of_turn>user\n<end_of_turn>\n<start_of_turn>model\nWelcome!<end_of_turn>\n<start_of_turn>user\nHi"
        )
        done = worker.call({"id": "c", "cmd": "chat", "messages": GREETING, "max_tokens": 3})
        assert done["usage"]["completion_tokens"] == 3
