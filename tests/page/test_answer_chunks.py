"""The chunks of an answer, put together by the page's own module, without a browser."""

import json
import subprocess
from pathlib import Path

import pytest

import lmwire_http
from support.process.programs import program
from support.process.worker_process import SECONDS

MODULE = Path(lmwire_http.__file__).parent / "page/static/conversation/answer_chunks.js"
JOIN = """
const { addChunk } = await import(process.argv[1]);
const message = { content: "" };
for (const content of JSON.parse(process.argv[2])) addChunk(message, { choices: [{ delta: { content } }] });
process.stdout.write(message.content);
"""


@pytest.mark.slow
def test_the_blank_lines_before_an_answer_are_left_out() -> None:
    parts = json.dumps(["\n", "\r\n\n  So", "\n\nit is."])
    command = [program("node"), "--input-type=module", "--eval", JOIN, str(MODULE), parts]
    assert subprocess.check_output(command, text=True, timeout=SECONDS) == "  So\n\nit is."
