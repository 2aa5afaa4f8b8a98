"""Both clients against lmwire's own worker: the session around the mock, and real models."""

import asyncio
import doctest
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import lmwire
import random_model
from lmwire import AsyncWorker, MessageDict, RequestFailed, ToolDict, Worker, WorkerExited
from lmwire_protocol import Ping, events
from support.process.mock_host import mock
from support.process.worker_process import SECONDS
from support.protocol.both_clients import PROCESS, UNHURRIED, MakeWorker, on_both_clients, on_one_client

SUM: MessageDict = {"role": "user", "content": "What is 17 + 25?"}
WEATHER: ToolDict = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
EXAMPLE = Path(__file__).parents[2] / "examples" / "python_chat.py"


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tiny")
    random_model.write_model(folder, "qwen3")
    return str(folder)


@pytest.fixture(scope="module")
def tiny() -> Iterator[Worker]:
    """Yield a worker with the built-in model."""
    with Worker() as tiny:
        tiny.load("builtin:tiny")
        yield tiny


@on_both_clients
async def test_every_method_is_answered(make_worker: MakeWorker) -> None:
    """Check all methods on both clients. Other tests check what they do on one, since the code is shared."""
    seen: list[events.Progress] = []
    asked: list[MessageDict] = [{"role": "user", "content": "to be or"}]
    async with make_worker(mock(), shutdown_timeouts=UNHURRIED) as worker:
        assert worker.hello.protocol == 1
        assert (await worker.load("mock:load_steps=3", on_progress=seen.append)).model_type == "mock"
        assert {(event.stage, event.unit) for event in seen} == {("read", "steps")}
        assert (await worker.info()).path == "mock:load_steps=3"
        assert await worker.chat(asked).text() == "to be or"
        assert (await worker.chat(asked).answer()).finish_reason == "stop"
        assert [answer.text for answer in await worker.chat(asked, n=2).answers()] == ["to be or"] * 2
        assert await worker.generate([1, 2, 3], max_tokens=2).text() == "1 2 "
        assert await worker.tokenize("to be or") == ([0, 1, 2], "to be or")
        assert await worker.count_tokens(asked) == 3
        assert await worker.detokenize([7, 8]) == "7 8 "
        assert len((await worker.embed(["the sea"])).vectors[0]) == 8
        assert await worker.transcribe({"path": "The sea."}).text() == "The sea."
        assert (await worker.speak("sea").wav())[:4] == b"RIFF"
        assert (await worker.request(Ping())).queued == (await worker.ping()).queued == 0
        assert (await worker.stats()).requests.done == 12
        assert (await worker.load("mock", context_len=8)).context_len == 8
        assert await worker.generate("a b", cache="pin").text() == "a b"
        assert (await worker.stats()).cache.bytes == len("a b") == await worker.clear_cache()
        assert await worker.unload() == 0
        await worker.quit(drain=True)
        assert worker.lost.returncode == 0


@on_one_client
async def test_a_refused_field_is_named(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        with pytest.raises(RequestFailed) as failure:
            await worker.generate("x", top_p=7.0).text()
        assert (failure.value.code, failure.value.field) == ("invalid_request", "top_p")
        with pytest.raises(RequestFailed) as failure:
            await worker.generate("x").text()
        assert failure.value.code == "not_loaded"


@on_one_client
async def test_an_endless_stream_is_cancelled_by_exiting_it(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        await worker.load("mock:step_ms=1")
        async with worker.generate("on and on", max_tokens=1_000_000) as stream:
            async for _ in stream:
                break
        # A barrier: its reply follows the terminals of all earlier requests.
        await worker.unload(timeout=SECONDS)
        assert (await worker.stats()).requests.cancelled == 1


@pytest.mark.slow
@on_one_client
async def test_a_host_pid_that_is_above_the_worker_is_accepted(make_worker: MakeWorker) -> None:
    async with make_worker(mock(), watch_host=True, **PROCESS) as worker:
        assert (await worker.ping()).queued == 0


@pytest.mark.slow
@on_one_client
async def test_a_terminated_worker_ends_its_streams_and_is_lost(make_worker: MakeWorker) -> None:
    async with make_worker(mock(), **PROCESS) as worker:
        await worker.load("mock:step_ms=1")
        async with worker.generate("on and on", max_tokens=1_000_000) as stream:
            async for _ in stream:
                os.kill(worker.pid, signal.SIGTERM)
                break
            assert (await stream.wait()).finish_reason == "cancelled"
        with pytest.raises(WorkerExited):
            while True:
                await worker.ping()


@pytest.mark.slow
def test_interleaved_answers_of_a_model_are_those_it_gives_alone(tiny_model: str) -> None:
    async def run() -> None:
        async with AsyncWorker() as worker:
            assert (await worker.load(tiny_model)).model_type == "qwen3"
            prompts = ["Who are you?", "Why is the sky blue?", "Sing."]
            alone = [await worker.generate(prompt, max_tokens=12).text() for prompt in prompts]
            streams = [worker.generate(prompt, max_tokens=12) for prompt in prompts]
            assert [await stream.text() for stream in streams] == alone
            assert all(stream.result.usage.prompt_tokens > 0 for stream in streams)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@pytest.mark.slow
def test_all_of_generation_at_once_on_the_built_in_model(tiny: Worker) -> None:
    asked: list[MessageDict] = [{"role": "user", "content": "What is the weather in Paris?"}]
    thinking = tiny.chat([SUM], reasoning="on")
    direct = tiny.chat([SUM], reasoning="off", logprobs=True, top_logprobs=2)
    chosen = tiny.chat([SUM], format={"type": "choice", "choices": ["7", "42"]}, n=2, temperature=1)
    calling = tiny.chat(asked, tools=[WEATHER], tool_choice={"name": "get_weather"})

    answer = thinking.answer()
    assert ("5 = 12" in answer.reasoning, answer.text.strip()) == (True, "17 + 25 = 42.")
    assert thinking.result.usage.reasoning_tokens > 0

    answer = direct.answer()
    assert (answer.reasoning, answer.text.strip()) == ("", "17 + 25 = 42.")
    assert [entry.token_id for entry in answer.logprobs] == answer.token_ids
    assert {len(entry.top) for entry in answer.logprobs} == {2}

    assert {answer.text for answer in chosen.answers()} <= {"7", "42"}

    answer = calling.answer()
    [call] = answer.tool_calls
    assert (call.name, call.arguments, answer.finish_reason) == ("get_weather", {"city": "Paris"}, "tool_calls")
    turns = [*asked, answer.message, call.result("sunny")]
    assert "sunny" in tiny.chat(turns, tools=[WEATHER]).text()

    ids, text = tiny.tokenize([SUM])
    assert "What is 17 + 25?" in text
    assert tiny.count_tokens([SUM]) == len(ids) == chosen.result.usage.prompt_tokens
    assert tiny.detokenize(ids) == text
    bare = tiny.tokenize("Hi", add_special_tokens=False)
    assert (bare.text, tiny.detokenize(bare.ids)) == ("Hi", "Hi")
    ids, text = tiny.tokenize([SUM], reasoning="on")
    assert (text.endswith("<think>\n"), len(ids)) == (True, thinking.result.usage.prompt_tokens)
    assert tiny.count_tokens([SUM], reasoning="off") == direct.result.usage.prompt_tokens


@pytest.mark.slow
def test_the_examples_in_docstrings_do_what_they_show(tiny: Worker) -> None:
    names = ["worker", "responses.stream", "responses.answer", "output_types", "errors"]
    modules = [import_module(f"lmwire.{name}") for name in names]
    results = [doctest.testmod(module, extraglobs={"worker": tiny, "lmwire": lmwire}) for module in modules]
    assert [result.failed for result in results] == [0] * len(modules)
    assert all(result.attempted for result in results)


@pytest.mark.slow
def test_the_example_answers(tiny_model: str) -> None:
    run = subprocess.run(
        [sys.executable, str(EXAMPLE), tiny_model, "Who are you?"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert run.stdout.splitlines()[-1].startswith("(length, 200 tokens)")
