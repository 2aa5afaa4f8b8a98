"""docs/quick-start.md asks the same question in each language, with programs that other tests run."""

import json
import subprocess

import pytest

from support.http.http_server import served_process
from support.markdown import blocks, first_block
from support.process.lmwire_command import REPOSITORY, lmwire
from support.process.worker_process import SECONDS

PAGE = REPOSITORY / "docs" / "quick-start.md"


@pytest.mark.slow
def test_the_command_answers() -> None:
    command = first_block("sh", PAGE).split(maxsplit=1)[1]
    assert command == 'chat builtin:tiny -p "Who are you?"\n'
    assert lmwire("chat", "builtin:tiny", "-p", "Who are you?").stdout.strip()


@pytest.mark.slow
def test_curl_receives_a_stream() -> None:
    (command,) = [block for block in blocks("sh", PAGE.read_text(encoding="utf-8")) if block.startswith("curl")]
    with served_process("builtin:tiny") as server:
        asked = command.replace("http://127.0.0.1:8080", server.url).replace("curl -N", "curl -sSN")
        answer = subprocess.run(["sh", "-c", asked], capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    chunks = [line.removeprefix("data: ") for line in answer.splitlines() if line.startswith("data: ")]
    assert chunks.pop() == "[DONE]"
    texts = [choice["delta"].get("content") or "" for chunk in chunks for choice in json.loads(chunk)["choices"]]
    assert "".join(texts).strip()
