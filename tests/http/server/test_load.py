"""Many streams at once: none fails, none has another's words, and the server's memory does not grow with them."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

from support.http.http_server import MOCK, Server, ServerProcess, served_process
from support.http.raw_http import CHAT, chat_body, request
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

STREAMS = 200
ROUNDS = 4
TOKENS = 12
GROWTH_BYTES = 4 * 2**20
"""Most memory that the round with the least growth may add. What each stream leaves is added in every round."""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with served_process("--worker", MOCK) as server:
        yield server


def resident_bytes(pid: int) -> int:
    answer = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=True)
    return int(answer.stdout) * 1024


async def streamed(server: Server, model: str, prompt: str, tokens: int) -> tuple[str, str | None]:
    """An answer's text, and how it ended.

    The official client would take most of the test's time, and other files test it.
    """
    body = chat_body(prompt, model=model, max_tokens=tokens, temperature=0, reasoning_effort="none", stream=True)
    address = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    async with asyncio.timeout(SECONDS):
        writer.write(request("POST", CHAT, body, connection="close"))
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200 ") and b"data: [DONE]" in answer, answer
    text, ended = "", None
    for line in answer.splitlines():
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:])["choices"]:
                text += choice["delta"].get("content") or ""
                ended = choice["finish_reason"] or ended
    return text, ended


async def all_streamed(server: Server, model: str, prompts: list[str], tokens: int) -> list[tuple[str, str | None]]:
    return await asyncio.gather(*(streamed(server, model, prompt, tokens) for prompt in prompts))


def test_200_streams_at_once_have_their_own_words_and_leave_nothing_behind(server: ServerProcess) -> None:
    sizes = []
    for turn in range(ROUNDS):
        words = [f"{turn}.{stream}" for stream in range(STREAMS)]
        prompts = [" ".join([word] * TOKENS) for word in words]
        answers = asyncio.run(all_streamed(server, "mock", prompts, TOKENS))
        assert [(set(text.split()), len(text.split()), ended) for text, ended in answers] == [
            ({word}, TOKENS, "length") for word in words
        ]
        sizes.append(resident_bytes(server.process.pid))
    assert min(after - before for before, after in pairwise(sizes)) < GROWTH_BYTES, sizes


@pytest.mark.nightly  # tests/generation/batching shows it of the engine
def test_32_streams_of_a_model_are_what_each_is_alone(tiny_server: Server) -> None:
    prompts = [f"What is {stream} + {stream % 7}?" for stream in range(32)]
    alone = [asyncio.run(all_streamed(tiny_server, "builtin:tiny", [prompt], 24))[0] for prompt in prompts[::8]]
    together = asyncio.run(all_streamed(tiny_server, "builtin:tiny", prompts, 24))
    assert together[::8] == alone
    assert all(text for text, _ in together)
