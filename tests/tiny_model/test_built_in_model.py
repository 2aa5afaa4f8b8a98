"""The model that ships: through a worker as hosts use it, and through mlx-lm, whose format it is in."""

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlx_lm.utils import load_tokenizer

import evaluate
from lmwire_protocol import Load, RequestError
from lmwire_worker.loading.model_loader import MlxModelLoader
from lmwire_worker.models.resolve import BUILTIN
from support.process.worker_process import WorkerProcess
from support.runners.generation_runners import Driver, chat, open_runner

pytestmark = pytest.mark.slow

TINY = BUILTIN / "tiny"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess() as worker:
        worker.load("builtin:tiny")
        yield worker


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return load_tokenizer(TINY)


def answer(worker: WorkerProcess, id: str, *contents: str) -> str:
    """The whole answer to a conversation, which must end by itself."""
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": content} for index, content in enumerate(contents)]
    done = worker.call({"id": id, "cmd": "chat", "messages": messages})
    assert (done["event"], done.get("finish_reason")) == ("done", "stop")
    return worker.text(id)


def test_it_says_what_lmwire_is(worker: WorkerProcess) -> None:
    assert "MLX language model as a child process" in answer(worker, "about", "What is lmwire?")


def test_it_adds_with_thinking_and_without(worker: WorkerProcess, tokenizer: Any) -> None:
    question = [{"role": "user", "content": "What is 27 + 35?"}]
    for thinking in (True, False):
        prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, enable_thinking=thinking)
        worker.call({"id": f"sum-{thinking}", "cmd": "generate", "prompt": prompt})
    assert worker.text("sum-True") == "<think>\n7 + 5 = 12. 2 + 3 + 1 = 6.\n</think>\n\n27 + 35 = 62."
    assert worker.text("sum-False") == "27 + 35 = 62."


@pytest.mark.parametrize("room", [40, 600])
def test_a_forced_answer_is_never_reasoning_alone(worker: WorkerProcess, room: int) -> None:
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
    chat = {"cmd": "chat", "messages": [{"role": "user", "content": "What is the capital of France?"}]}
    text = {"id": f"text {room}", "format": {"type": "json_schema", "schema": schema | {"additionalProperties": False}}}
    assert worker.call({**chat, **text, "max_tokens": room})["finish_reason"] == "stop"
    assert set(json.loads(worker.text(text["id"]))) == {"city"}
    call = {"id": f"call {room}", "tools": [WEATHER], "tool_choice": "required", "max_tokens": room}
    assert worker.call({**chat, **call})["finish_reason"] == "tool_calls"


def test_it_remembers_the_conversation(worker: WorkerProcess) -> None:
    assert "Grace" in answer(worker, "name", "My name is Grace.", "Nice to meet you, Grace!", "What is my name?")


def test_it_counts_far(worker: WorkerProcess) -> None:
    assert answer(worker, "count", "Count from 1 to 100.") == ", ".join(map(str, range(1, 101)))


def test_it_writes_emoji_and_other_scripts(worker: WorkerProcess) -> None:
    assert answer(worker, "emoji", "Give me an emoji for rocket.") == "🚀"
    assert answer(worker, "greek", "Say thank you in Greek.") == "Ευχαριστώ"


def test_plain_text_has_its_thinking_as_written() -> None:
    request = chat("What is 27 + 35?", reasoning="on", max_tokens=100)
    driver = Driver(open_runner(TINY))
    driver.add(0, request, raw=True)
    driver.add(1, request)
    plain, parted = driver.finish().values()
    assert (plain.reasoning, parted.reasoning != "") == ("", True)
    assert plain.text == f"{parted.reasoning}</think>{parted.text}"


def test_mlx_lm_sees_its_thinking_and_its_tool_calls(tokenizer: Any) -> None:
    assert tokenizer.has_thinking
    assert (tokenizer.think_start, tokenizer.think_end) == ("<think>", "</think>")
    assert tokenizer.has_tool_calling
    assert tokenizer.init_kwargs["tool_parser_type"] == "json_tools"
    assert len(tokenizer.encode("<think></think><tool_call></tool_call>", add_special_tokens=False)) == 4


def test_its_template_has_the_shape_of_qwen3s(tokenizer: Any) -> None:
    call = {"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Rome"}}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "<think>\nOld thoughts.\n</think>\n\nWhere?"},
        {"role": "user", "content": "In Rome."},
        {"role": "assistant", "reasoning_content": "A call.", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "sunny"},
        {"role": "tool", "content": "21"},
    ]
    text = tokenizer.apply_chat_template(messages, tools=[WEATHER], tokenize=False, add_generation_prompt=True)
    system, *turns = text.split("<|im_start|>")[1:]
    assert system.startswith("system\nBe brief.\n\n# Tools\n") and system.endswith("<|im_end|>\n")
    assert f"<tools>\n{json.dumps(WEATHER)}\n</tools>" in system
    assert turns == [
        "user\nWeather?<|im_end|>\n",
        "assistant\nWhere?<|im_end|>\n",
        "user\nIn Rome.<|im_end|>\n",
        "assistant\n<think>\nA call.\n</think>\n\n<tool_call>\n"
        '{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call><|im_end|>\n',
        "user\n<tool_response>\nsunny\n</tool_response>\n<tool_response>\n21\n</tool_response><|im_end|>\n",
        "assistant\n",
    ]


def test_thinking_turned_off_is_an_empty_block(tokenizer: Any) -> None:
    def tail(**template: Any) -> str:
        messages = [{"role": "user", "content": "Hi"}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **template)
        return text.partition("<|im_start|>assistant\n")[2]

    assert tail() == tail(enable_thinking=True) == ""
    assert tail(enable_thinking=False) == "<think>\n\n</think>\n\n"


@pytest.mark.nightly  # the answers above show that it reads its weights
def test_it_answers_questions_that_it_was_not_taught() -> None:
    scores = evaluate.evaluate(TINY, amount=1)
    right = sum(score.right for score in scores.values())
    asked = sum(score.asked for score in scores.values())
    assert right / asked >= 0.8, {ability: score.wrong for ability, score in scores.items() if score.wrong}


def test_it_takes_at_most_8_mb_of_the_wheel(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "wheel", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:
        for file in TINY.iterdir():
            wheel.write(file, file.name)
    assert (tmp_path / "wheel").stat().st_size <= 8_000_000


def test_the_template_is_the_one_that_it_was_trained_with() -> None:
    from vocabulary import TEMPLATE

    assert (TINY / TEMPLATE.name).read_text() == TEMPLATE.read_text()


@pytest.mark.parametrize(
    ("spoil", "code", "named"),
    [
        (lambda tiny: (tiny / "model.safetensors").unlink(), "bad_model", "has no weights"),
        (lambda tiny: (tiny / "tokenizer.json").write_text("{"), "bad_model", "tokenizer"),
        (lambda tiny: (tiny / "config.json").unlink(), "bad_model", "config.json"),
        (shutil.rmtree, "model_not_found", "install lmwire again"),
    ],
)
def test_a_damaged_installation_is_reported(
    spoil: Callable[[Path], Any], code: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(BUILTIN, tmp_path / "builtin")
    spoil(tmp_path / "builtin" / "tiny")
    monkeypatch.setattr("lmwire_worker.models.resolve.BUILTIN", tmp_path / "builtin")
    engine = MlxModelLoader()
    engine.prepare()
    with pytest.raises(RequestError, match=named) as failure:
        engine.open(Load(path="builtin:tiny"), lambda *_: None, lambda: None)
    assert failure.value.code == code
