"""Both clients against the real worker: with the mock engine, a tiny model and the built-in model."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import random_model
from lmwire import MessageDict, RequestFailed, ToolDict, WorkerExited
from lmwire_protocol import events
from support.process.worker_process import SECONDS
from support.protocol.both_clients import CLIENTS, UNHURRIED, MakeWorker, on_both_clients

MOCK = [sys.executable, "-P", "-m", "lmwire_worker", "--mock"]
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


@on_both_clients
async def test_every_method_is_answered(make_worker: MakeWorker) -> None:
    async with make_worker(MOCK, shutdown_timeouts=UNHURRIED) as worker:
        assert worker.hello.protocol == 1
        assert (await worker.load("mock")).model_type == "mock"
        assert (await worker.info()).path == "mock"
        assert await worker.chat([{"role": "user", "content": "to be or"}]).text() == "to be or"
        assert await worker.generate([1, 2, 3], max_tokens=2).text() == "1 2 "
        assert (await worker.ping()).queued == 0
        assert (await worker.stats()).requests.done == 4
        assert (await worker.load("mock", context_len=8)).context_len == 8
        assert await worker.generate("a b", cache="pin").text() == "a b"
        assert (await worker.stats()).cache.bytes == len("a b") == await worker.clear_cache()
        assert await worker.unload() == 0
        await worker.quit(drain=True)
        assert worker.lost.returncode == 0


@on_both_clients
async def test_the_progress_of_a_load_is_reported(make_worker: MakeWorker) -> None:
    seen: list[events.Progress] = []
    async with make_worker(MOCK) as worker:
        await worker.load("mock:load_steps=3", on_progress=seen.append)
    assert {(event.stage, event.unit) for event in seen} == {("read", "steps")}


@on_both_clients
async def test_a_refused_field_is_named(make_worker: MakeWorker) -> None:
    async with make_worker(MOCK) as worker:
        with pytest.raises(RequestFailed) as failure:
            await worker.generate("x", top_p=7.0).text()
        assert (failure.value.code, failure.value.field) == ("invalid_request", "top_p")
        with pytest.raises(RequestFailed) as failure:
            await worker.generate("x").text()
        assert failure.value.code == "not_loaded"


@on_both_clients
async def test_an_endless_stream_is_cancelled_by_exiting_it(make_worker: MakeWorker) -> None:
    async with make_worker(MOCK) as worker:
        await worker.load("mock:step_ms=1")
        async with worker.generate("on and on", max_tokens=1_000_000) as stream:
            async for _ in stream:
                break
        # A barrier: its reply follows the terminals of all earlier requests.
        await worker.unload(timeout=SECONDS)
        assert (await worker.stats()).requests.cancelled == 1


@on_both_clients
async def test_a_host_pid_that_is_above_the_worker_is_accepted(make_worker: MakeWorker) -> None:
    async with make_worker(MOCK, watch_host=True) as worker:
        assert (await worker.ping()).queued == 0


@on_both_clients
async def test_a_terminated_worker_ends_its_streams_and_is_lost(make_worker: MakeWorker) -> None:
    async with make_worker(MOCK) as worker:
        await worker.load("mock:step_ms=1")
        async with worker.generate("on and on", max_tokens=1_000_000) as stream:
            async for _ in stream:
                subprocess.run(["kill", str(worker.pid)], check=True, timeout=SECONDS)
                break
            assert (await stream.wait()).finish_reason == "cancelled"
        with pytest.raises(WorkerExited):
            while True:
                await worker.ping()


@pytest.mark.parametrize("make_worker", CLIENTS, ids=["sync", "async"])
def test_interleaved_answers_of_a_model_are_those_it_gives_alone(make_worker: MakeWorker, tiny_model: str) -> None:
    async def run() -> None:
        async with make_worker() as worker:
            assert (await worker.load(tiny_model)).model_type == "qwen3"
            prompts = ["Who are you?", "Why is the sky blue?", "Sing."]
            alone = [await worker.generate(prompt, max_tokens=12).text() for prompt in prompts]
            streams = [worker.generate(prompt, max_tokens=12) for prompt in prompts]
            assert [await stream.text() for stream in streams] == alone
            assert all(stream.result.usage.prompt_tokens > 0 for stream in streams)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@pytest.mark.parametrize("make_worker", CLIENTS, ids=["sync", "async"])
def test_all_of_generation_at_once_on_the_built_in_model(make_worker: MakeWorker) -> None:
    async def run() -> None:
        async with make_worker() as worker:
            await worker.load("builtin:tiny")
            asked: list[MessageDict] = [{"role": "user", "content": "What is the weather in Paris?"}]
            thinking = worker.chat([SUM], reasoning="on")
            direct = worker.chat([SUM], reasoning="off", logprobs=True, top_logprobs=2)
            chosen = worker.chat([SUM], format={"type": "choice", "choices": ["7", "42"]}, n=2, temperature=1)
            calling = worker.chat(asked, tools=[WEATHER], tool_choice={"name": "get_weather"})

            answer = await thinking.answer()
            assert ("5 = 12" in answer.reasoning, answer.text.strip()) == (True, "17 + 25 = 42.")
            assert thinking.result.usage.reasoning_tokens > 0

            answer = await direct.answer()
            assert (answer.reasoning, answer.text.strip()) == ("", "17 + 25 = 42.")
            assert [entry.token_id for entry in answer.logprobs] == answer.token_ids
            assert {len(entry.top) for entry in answer.logprobs} == {2}

            assert {answer.text for answer in await chosen.answers()} <= {"7", "42"}

            answer = await calling.answer()
            [call] = answer.tool_calls
            assert (call.name, call.arguments, answer.finish_reason) == ("get_weather", {"city": "Paris"}, "tool_calls")
            turns = [*asked, answer.message, call.result("sunny")]
            assert "sunny" in await worker.chat(turns, tools=[WEATHER]).text()

            ids, text = await worker.tokenize([SUM])
            assert "What is 17 + 25?" in text
            assert await worker.count_tokens([SUM]) == len(ids) == chosen.result.usage.prompt_tokens
            assert await worker.detokenize(ids) == text
            bare = await worker.tokenize("Hi", add_special_tokens=False)
            assert (bare.text, await worker.detokenize(bare.ids)) == ("Hi", "Hi")
            ids, text = await worker.tokenize([SUM], reasoning="on")
            assert (text.endswith("<think>\n"), len(ids)) == (True, thinking.result.usage.prompt_tokens)
            assert await worker.count_tokens([SUM], reasoning="off") == direct.result.usage.prompt_tokens

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_the_example_answers(tiny_model: str) -> None:
    run = subprocess.run(
        [sys.executable, str(EXAMPLE), tiny_model, "Who are you?"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert run.stdout.splitlines()[-1].startswith("(length, 200 tokens)")
