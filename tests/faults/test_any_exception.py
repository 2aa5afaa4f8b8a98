"""Whatever an exception is, and wherever it comes: its request has one terminal, and the next request works.

Libraries in Rust panic with what is no `Exception`. A model's own code may call `sys.exit`.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import pytest

from lmwire_protocol import Generate, Line, RequestError
from lmwire_worker.generation.admission import Admission
from lmwire_worker.generation.batching import Batch
from lmwire_worker.generation.output_processor import OutputProcessor
from lmwire_worker.generation.preparation import RequestPreparer
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.generation.structured_output.constraint_factory import ConstraintFactory
from lmwire_worker.loading.model_loader import MlxModelLoader
from lmwire_worker.models.hub import download
from lmwire_worker.prompts.builder import ConversationRenderer
from lmwire_worker.prompts.tokenization import Encoder
from lmwire_worker.sandbox import Sandbox
from lmwire_worker.scheduling.scheduler import Scheduler
from lmwire_worker.session.request_registry import RequestRegistry
from lmwire_worker.session.request_state import Request
from lmwire_worker.session.v1 import Session
from lmwire_worker.worker import WorkerProcess
from support.process.worker_process import SECONDS
from support.runners.generation_runners import open_runner
from support.runners.stepped_engine import Bystander, Events, Silence

pytestmark = pytest.mark.slow


class Panic(BaseException):
    """An exception like that of pyo3 for a panic in Rust, which is not of class Exception either."""


CHAT: Final = {"cmd": "chat", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 4}
TOKENIZE: Final = {"cmd": "tokenize", "prompt": "Hello!"}
CONSTRAINED: Final = CHAT | {"format": {"type": "regex", "pattern": "[a-z]+"}}

STAGES: Final[dict[str, tuple[type, str, dict[str, Any]]]] = {
    "the start of the preparation": (GenerationRunner, "prepare", CHAT),
    "the start of its thread": (ThreadPoolExecutor, "submit", CHAT),
    "the choice of its thread": (RequestPreparer, "start", CHAT),
    "the preparation": (RequestPreparer, "prepare", CHAT),
    "the prompt of tokenize": (RequestPreparer, "read_prompt", TOKENIZE),
    "the chat template": (ConversationRenderer, "render", CHAT),
    "the sandbox": (Sandbox, "ask", CHAT | {"chat_template": "{{ messages[0].content }}"}),
    "the tokenizer": (Encoder, "encode", CHAT),
    "the tokenizer of tokenize": (Encoder, "encode", TOKENIZE),
    "the text of token ids": (Encoder, "decode", {"cmd": "tokenize", "token_ids": [65, 66]}),
    "the grammar": (ConstraintFactory, "make_constraint", CONSTRAINED),
    "the admission": (Admission, "check", CHAT),
    "the choices": (RequestPreparer, "build_sequences", CHAT),
    "the prefill": (Batch, "prefill", CHAT),
    "the start of decode": (Batch, "start_decoding", CHAT),
    "decode": (Batch, "decode", CHAT),
    "the text of a token": (OutputProcessor, "add", CHAT),
}


class Engine:
    """The parts of a worker without its pipes, with one model."""

    def __init__(self, runner: GenerationRunner) -> None:
        self.events = Events()
        self.registry = RequestRegistry(self.events)
        loader: Any = MlxModelLoader()
        log = Silence()
        self._scheduler: Any = Scheduler(self.registry, self.events, loader, log)
        self._scheduler.runner = runner
        self._session = Session(
            self.registry, self.events, self._scheduler, Bystander(), [], (), log, self.registry.drain
        )

    def answer(self, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        """Serve requests until all have ended, and return their terminals."""
        for number, request in enumerate(requests):
            fields = {"id": str(number), **request}
            self._session.serve(fields, len(msgspec.json.encode(fields)))
        self.registry.drain()
        watch = threading.Timer(SECONDS, self.registry.end_all, [Request.cancellation])  # instead of a test that hangs
        watch.start()
        self._scheduler.run()
        watch.cancel()
        return [event for event in self.events.take() if event["event"] in ("done", "error")]


class WorkerInside(WorkerProcess):
    """The reader's part of a worker, without pipes."""

    def __init__(self) -> None:
        pipes: Any = SimpleNamespace(write=lambda data: None, stdout=os.open(os.devnull, os.O_WRONLY))
        super().__init__(pipes, Silence(), MlxModelLoader())
        self.events = Events()
        self._output: Any = self.events
        self._registry = RequestRegistry(self.events)

    def handle(self, *lines: bytes) -> None:
        """Serve lines as the reader does."""
        for line in lines:
            self._handle(Line(line))


@pytest.fixture(scope="module")
def runner() -> Iterator[GenerationRunner]:
    yield open_runner(Path("builtin:tiny"))


def raises_at_first(error: BaseException, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises when it is called first, and then does the real thing."""
    left = [error]

    def replacement(*args: Any, **kwargs: Any) -> Any:
        if left:
            raise left.pop()
        return real(*args, **kwargs)

    return replacement


CASES: Final = [(stage, Panic("at the disco")) for stage in STAGES] + [
    (stage, error) for stage in ("the tokenizer", "decode") for error in (SystemExit(3), KeyboardInterrupt())
]


@pytest.mark.parametrize(("stage", "error"), CASES, ids=repr)
def test_an_exception_ends_its_request_once_and_the_next_one_works(
    runner: GenerationRunner, stage: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, request = STAGES[stage]
    engine = Engine(runner)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, raises_at_first(error, getattr(owner, name)))
        first = engine.answer(request)
    assert [event["id"] for event in first] == ["0"]
    assert first[0].get("finish_reason") != "cancelled"  # by the watch
    if first[0]["event"] == "error":  # rows of a failed step start again, and may then work
        assert type(error).__name__ in first[0]["error"] or str(error) in first[0]["error"]
    again = Engine(runner).answer(request, CHAT)
    assert [(event["id"], event["event"]) for event in sorted(again, key=lambda event: event["id"])] == [
        ("0", "done"),
        ("1", "done"),
    ]


def test_an_exception_at_the_end_of_a_cancelled_answer_is_not_the_engines(
    runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner.add(1, Generate(prompt=[65, 66, 67], max_tokens=50), 0)
    runner.step()
    monkeypatch.setattr(OutputProcessor, "finish", raises_at_first(Panic("at the disco"), OutputProcessor.finish))
    assert runner.remove(1) == []


def test_an_exception_at_a_line_ends_that_line(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = WorkerInside()
    monkeypatch.setattr(Session, "serve", raises_at_first(Panic("at the disco"), Session.serve))
    worker.handle(b'{"id":"1","cmd":"ping"}', b'{"id":"2","cmd":"ping"}')
    assert [(event["id"], event["event"], event.get("code")) for event in worker.events.take()] == [
        ("1", "error", "internal"),
        ("2", "done", None),
    ]


@pytest.mark.parametrize("error", [Panic("at the disco"), SystemExit(3)], ids=repr)
def test_an_exception_in_a_load_ends_the_load(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise error

    engine = Engine(None)  # type: ignore[arg-type]
    monkeypatch.setattr(MlxModelLoader, "_open", fail)
    (ended,) = engine.answer({"cmd": "load", "path": "/nowhere"})
    assert ended["code"] == "engine_error" and type(error).__name__ in ended["error"]


def test_an_exception_in_the_thread_of_a_download_ends_its_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise Panic("at the disco")

    monkeypatch.setattr(download, "plan_download", fail)
    with pytest.raises(RequestError, match="at the disco"):
        download.download("owner/name", ["*.json"], lambda *report: None)
