"""Prompts, schemas and templates that are too large, or never come to an end.

Each ends with one clear error that is its own, and a stream beside it receives tokens meanwhile.
"""

import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.http.http_server import wait_until
from support.models.long_context import CONTEXT, MAX_TOKENS, write_long_context
from support.models.random_embeddings import write_embedding_model
from support.nightly import nightly_but
from support.process.process_waits import child_processes, wait_gone, watch
from support.process.worker_process import Event, WorkerProcess

pytestmark = pytest.mark.slow

ENDLESS = "{% for a in range(100000) %}" * 3 + "x" + "{% endfor %}" * 3
HANDS_OVER = 3
"""Events of the stream beside a request that prove that nothing waited for it."""


class Beside:
    """A worker with a stream that does not end."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.worker = worker
        self._stream = 0

    def ask(self, *, slow: bool = False, **command: Any) -> Event:
        """Return the terminal of a request, and see that the stream beside it receives tokens.

        Args:
            slow: The request takes so long that they come before its end.
            **command: The request.
        """
        worker = self.worker
        stream = self._begin()
        hostile, accepted = f"hostile {self._stream}", f"accepted {self._stream}"
        worker.send({"id": hostile, **command}, {"id": accepted, "cmd": "ping"})
        start = worker.events.index(worker.terminal(accepted))

        def received() -> list[int]:
            """Return where the stream's events stand that came later."""
            later = enumerate(worker.events[start + 1 :], start + 1)
            return [at for at, event in later if event.get("id") == stream]

        worker.wait_for(lambda event: len(received()) >= HANDS_OVER)
        # It would take a core until the request ends.
        worker.call({"id": f"stop {stream}", "cmd": "cancel", "target": stream})
        worker.terminal(stream)
        ended = worker.terminal(hostile)
        if slow:
            assert received()[HANDS_OVER - 1] < worker.events.index(ended)
        terminals = [event for event in worker.of(hostile) if event["event"] in ("done", "error")]
        assert terminals == [ended]
        return ended

    def _begin(self) -> str:
        self._stream += 1
        stream = f"stream {self._stream}"
        endless = {"cmd": "generate", "prompt": "Once", "ignore_eos": True, "max_tokens": MAX_TOKENS}
        self.worker.send({"id": stream, **endless})
        self.worker.first_token(stream)
        return stream


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_long_context(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def beside(model: Path) -> Iterator[Beside]:
    """One worker for the requests of many tests: each leaves it as it was."""
    with WorkerProcess() as worker:
        worker.load(model)
        yield Beside(worker)


@pytest.fixture
def worker(model: Path) -> Iterator[WorkerProcess]:
    """A worker of a test's own, for tests that leave requests unfinished."""
    with WorkerProcess() as worker:
        worker.load(model)
        yield worker


def _schema(schema: Event) -> Event:
    return {
        "cmd": "generate",
        "prompt": "x",
        "max_tokens": 5,
        "format": {"type": "json_schema", "schema": schema},
    }


def _chat(**fields: Any) -> Event:
    return {"cmd": "chat", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5, **fields}


def _object(index: int, kind: str = "string") -> Event:
    return {"type": "object", "properties": {f"p{index}": {"type": kind}}, "required": [f"p{index}"]}


TOO_LONG = {
    "20 MB of words": "hello the world " * 1_250_000,
    "12 MB of one letter": "a" * 12_000_000,
}


@pytest.mark.parametrize("prompt", TOO_LONG.values(), ids=TOO_LONG)
def test_a_text_that_cannot_fit_is_refused_before_it_is_tokenized(beside: Beside, prompt: str) -> None:
    error = beside.ask(cmd="generate", prompt=prompt, max_tokens=5)
    assert error["code"] == "context_overflow"
    assert "the prompt has at least" in error["error"]


def test_a_text_that_there_is_no_memory_to_tokenize_is_refused_with_the_numbers(model: Path) -> None:
    with WorkerProcess("--memory-limit", str(2**29)) as worker:
        worker.load(model)
        asked = Beside(worker).ask(cmd="tokenize", prompt="a" * 12_000_000, count_only=True)
        assert asked["code"] == "out_of_memory"
        assert "12,000,000 bytes" in asked["error"] and "512.0 MiB" in asked["error"]


@pytest.mark.nightly
@pytest.mark.parametrize("truncate", ["left", "middle"])
@pytest.mark.parametrize("prompt", TOO_LONG.values(), ids=TOO_LONG)
def test_a_text_that_is_cut_takes_no_more_memory_than_its_ends(model: Path, prompt: str, truncate: str) -> None:
    """To tokenize one of these texts takes more than the limit.

    For each commit tests/prompts/test_truncation.py counts what is tokenized.
    """
    with WorkerProcess("--memory-limit", str(2**29)) as worker:
        worker.load(model)
        # The answer keeps most of the context, so that little of the text is left. It ends with its first letter.
        asked: dict[str, Any] = {
            "cmd": "generate",
            "prompt": prompt,
            "max_tokens": CONTEXT - 2000,
            "truncate": truncate,
        }
        asked["format"] = {"type": "regex", "pattern": "a"}
        assert Beside(worker).ask(**asked)["usage"]["prompt_tokens"] == 2000
        again = worker.call({"id": "again", **asked})["usage"]
        assert again["cached_tokens"] == again["prompt_tokens"] - 1


def test_vectors_of_small_texts_do_not_wait_for_a_large_one(tmp_path: Path) -> None:
    with WorkerProcess() as worker:
        worker.load(write_embedding_model(tmp_path / "model"))
        large, small = {"id": "large", "input": ["hello the world " * 500_000]}, {"id": "small", "input": ["hello"]}
        worker.send({**large, "cmd": "embed"}, {**small, "cmd": "embed"})
        assert worker.terminal("small")["event"] == "done"
        refused = worker.terminal("large")
        assert (refused["code"], refused["field"]) == ("context_overflow", "input[0]")
        assert worker.events.index(worker.terminal("small")) < worker.events.index(refused)


LARGE = {
    "alternatives": ({"anyOf": [_object(index) for index in range(10_000)]}, "format.schema.anyOf"),
    "values": ({"enum": [f"value {index}" for index in range(100_000)]}, "format.schema.enum"),
    "a part": (
        {"properties": {"a": {"oneOf": [_object(index) for index in range(1001)]}}},
        "format.schema.properties.a.oneOf",
    ),
    "nodes": ({"const": [[0]] * 20_000}, "format.schema"),
    "a name": ({"properties": {"x" * 2_000_000: {"type": "string"}}}, "format.schema"),
    "a divisor": (
        {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 99_989}}},
        "format.schema.properties.a.multipleOf",
    ),
}


@pytest.mark.parametrize(("schema", "field"), LARGE.values(), ids=LARGE)
def test_a_schema_that_is_too_large_is_refused_with_the_part_at_fault(
    beside: Beside, schema: Event, field: str
) -> None:
    error = beside.ask(**_schema(schema))
    assert (error["code"], error["field"]) == ("invalid_request", field)


@pytest.mark.nightly  # the expression below is the sample
def test_a_schema_that_takes_for_ever_to_compile_is_given_up(beside: Beside) -> None:
    divisors = [{"type": "integer", "multipleOf": prime} for prime in (97, 89, 83, 79)]
    error = beside.ask(slow=True, **_schema({"type": "object", "properties": {"a": {"allOf": divisors}}}))
    assert error["code"] == "invalid_request"
    assert error["field"].startswith("format.schema.properties.a")
    assert "is too complex: to compile it" in error["error"]


@pytest.mark.parametrize("pattern", nightly_but({"(a{1000}){1000}"}, ["((a{1000}){1000}){1000}", "(a{1000}){1000}"]))
def test_an_expression_that_multiplies_itself_is_refused(beside: Beside, pattern: str) -> None:
    error = beside.ask(
        slow=True, cmd="generate", prompt="x", max_tokens=5, format={"type": "regex", "pattern": pattern}
    )
    assert (error["code"], error["field"]) == ("invalid_request", "format.pattern")


def test_a_schema_that_proves_too_complex_on_the_way_is_the_hosts_mistake(beside: Beside) -> None:
    options = {"properties": {f"p{index}": {"type": "string"} for index in range(1000)}}
    error = beside.ask(**_schema({"type": "object", **options}))
    assert error["code"] == "invalid_request"
    assert "Current row has" in error["error"]


def test_a_schema_that_refers_to_itself_is_followed(beside: Beside) -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}}}
    assert beside.ask(**_schema({"$defs": {"tree": tree}, "$ref": "#/$defs/tree"}))["event"] == "done"


def test_a_hundred_tools_and_a_schema_of_thousands_of_values_are_no_hostile_ones(beside: Beside) -> None:
    tools = [
        {
            "type": "function",
            "function": {"name": f"tool_{index}", "parameters": _object(index, "boolean"), "strict": True},
        }
        for index in range(100)
    ]
    # The prompt is cut to what this answer leaves of the context, since thousands of tokens take half a minute. A call
    # ends soon.
    room = {"truncate": "left", "max_tokens": CONTEXT - 500}
    answer = beside.ask(**_chat(tools=tools, tool_choice="required", **room))
    assert answer["finish_reason"] == "tool_calls", answer
    records = {f"r{index}": _object(index) for index in range(500)}
    schema = {"type": "object", "properties": records, "required": list(records), "additionalProperties": False}
    assert beside.ask(**_schema(schema))["event"] == "done"


TEMPLATES = {
    "never ends": (ENDLESS, "takes longer than 5 s"),
    "indents": ("{{ messages|tojson(indent=99999999) }}", "indents by more than 1000"),
    "takes memory": ("{{ 'x'.ljust(99999999999) }}", "memory"),
    "writes much": ("{{ 'x'.ljust(70000000) }}", "writes more than 67108864 characters"),
}


# For each commit tests/sandbox ends a template that never ends, with a smaller limit.
@pytest.mark.parametrize("name", nightly_but(TEMPLATES.keys() - {"never ends"}, TEMPLATES))
def test_a_template_that_takes_too_much_is_refused(beside: Beside, name: str) -> None:
    template, words = TEMPLATES[name]
    error = beside.ask(slow=template == ENDLESS, **_chat(chat_template=template))
    assert (error["code"], error["field"]) == ("invalid_request", "chat_template")
    assert words in error["error"]
    assert beside.ask(**_chat(chat_template="{{ messages[0].content }}"))["event"] == "done", "the next one works"


@pytest.mark.nightly
def test_a_models_own_template_can_hang_no_worker(tmp_path: Path) -> None:
    template = write_long_context(tmp_path / "model") / "chat_template.jinja"
    template.unlink()
    template.write_text(ENDLESS)
    with WorkerProcess() as worker:
        worker.load(template.parent)
        error = Beside(worker).ask(**_chat())  # not slow: the worker has tried the template before
        assert (error["code"], error["field"]) == ("invalid_request", "messages")
        assert "this model's chat template takes longer than 5 s" in error["error"]


def test_a_cancel_ends_a_request_that_is_being_prepared(worker: WorkerProcess) -> None:
    cancel = {"id": "cancel", "cmd": "cancel", "target": "hostile"}
    worker.send({"id": "hostile", **_chat(chat_template=ENDLESS)}, cancel)
    assert worker.terminal("cancel")["matched"] == 1
    assert worker.terminal("hostile")["finish_reason"] == "cancelled"
    worker.send({"id": "late", **_chat(chat_template=ENDLESS, timeout_ms=50)})
    assert worker.terminal("late")["finish_reason"] == "timeout"


def test_a_plain_chat_waits_for_no_strangers_template_or_grammar(worker: WorkerProcess) -> None:
    hard = [f"hard {index}" for index in range(4)]
    worker.send(*({"id": id, **_chat(chat_template=ENDLESS + id)} for id in hard), {"id": "plain", **_chat()})
    done = worker.terminal("plain")
    assert done["event"] == "done"
    earlier = worker.events[: worker.events.index(done)]
    assert not any(event["id"] in hard for event in earlier), "they are still being prepared"


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_the_worker(worker: WorkerProcess, signal_number: signal.Signals) -> None:
    worker.call({"id": "chat", **_chat()})
    # One is over after 5 s. The next one follows it, whenever this test looks.
    worker.send(*({"id": f"hostile {number}", **_chat(chat_template=f"{ENDLESS}{number}")} for number in range(12)))
    children = []
    for pid in _wait_for_children(worker, 2):
        with suppress(ProcessLookupError):
            children.append(watch(pid))
    worker.process.send_signal(signal_number)
    worker.wait_end()
    for child in children:
        wait_gone(child)


def _wait_for_children(worker: WorkerProcess, count: int) -> list[int]:
    found: list[int] = []

    def look() -> bool:
        found[:] = child_processes(worker.process.pid)
        return len(found) >= count

    wait_until(look, f"the worker never had {count} children")
    return found
