"""Texts that may take long are tokenized in a process, with the same tokens, and until their request is cancelled."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event as Signal
from typing import Any, Final

import pytest

from lmwire_protocol import RequestError
from lmwire_worker.engine.preparation import PreparationThreads
from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.prompts import tokenization
from lmwire_worker.prompts.tokenization import QUICK_CHARACTERS, Encoder, IsolatedTokenizer
from lmwire_worker.sandbox.process import WorkCancelled
from support.models.hostile_tokenizers import added, plain, replacing, splitting, write_tokenizer
from support.process.worker_process import SECONDS
from support.runners.prompting import tokenizer

PANICS: Final = " " * 12_000_000 + "a"
"""A text for which the usual patterns need more steps back than their library allows."""
SLOW: Final = r"(?:a|a?){16}a{16}(?=b|c)|[\s\S]"
"""A pattern that is quick on most texts. On a run of the letter a it tries 100,000 ways at each place."""
ENDLESS: Final = "a" * 20_000 + "!b"
"""A text on which it takes minutes."""


def opened(folder: Path, content: Any) -> Tokenizer:
    write_tokenizer(folder, content)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    return load_tokenizer(folder, {}, trust_remote_code=True)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return opened(tmp_path_factory.mktemp("usual"), plain())


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return opened(tmp_path_factory.mktemp("slow"), plain() | {"pre_tokenizer": splitting(SLOW)})


def tokens_of(tokenizer: Tokenizer, text: str) -> list[int]:
    return Encoder(tokenizer).encode(text, "prompt", add_special_tokens=True, allow_overflow=True)


@pytest.mark.parametrize(
    "text", ["", "Hello, wörld <|end|>\n", "é界\U0001f600", "ab " * (QUICK_CHARACTERS // 2)], ids=len
)
def test_a_process_gives_the_same_tokens_and_text(usual: Tokenizer, text: str) -> None:
    isolated = IsolatedTokenizer(usual)
    expected = usual.encode(text)
    assert isolated.encode(text, "prompt", add_special_tokens=True) == expected
    assert tokens_of(usual, text) == expected
    assert Encoder(usual).decode(expected, "token_ids") == text


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: object) -> Any:
        raise AssertionError("a usual text of a usual tokenizer needs no process")

    monkeypatch.setattr(tokenization.Sandbox, "ask", ask)


@pytest.mark.usefixtures("no_process")
def test_usual_texts_of_usual_tokenizers_stay_in_the_worker(usual: Tokenizer) -> None:
    assert len(tokens_of(usual, "ab " * 1000)) == 3000
    assert Encoder(usual).decode([0, 1], "token_ids") == '!"'
    assert Encoder(usual).is_quick


def test_a_token_that_strips_spaces_makes_a_text_slow(tmp_path: Path) -> None:
    stripping = plain() | {"added_tokens": [added(256, "<mask>", lstrip=True)]}
    isolated = IsolatedTokenizer(opened(tmp_path, stripping))
    assert isolated.is_quick("a b c") and not isolated.is_quick("a <mask> c")
    many = plain() | {"added_tokens": [added(256 + at, f"<{at}>", rstrip=True) for at in range(50)]}
    assert not IsolatedTokenizer(opened(tmp_path, many)).is_linear


def test_a_panic_of_the_tokenizer_is_an_error_that_names_the_field() -> None:
    with pytest.raises(RequestError, match=r"^prompt: this model's tokenizer fails on it .*longest runs") as refused:
        tokens_of(tokenizer(None), PANICS)
    assert (refused.value.code, refused.value.field) == ("invalid_request", "prompt")


def test_a_text_that_takes_too_long_is_an_error_of_its_own(slow: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenization, "CPU_SECONDS", 0.5)
    encoder = Encoder(slow)
    assert not encoder.is_quick
    with pytest.raises(RequestError, match="prompt: this model's tokenizer takes longer than") as refused:
        encoder.encode(ENDLESS, "prompt", add_special_tokens=False, allow_overflow=True)
    assert refused.value.field == "prompt"
    assert encoder.encode("b!", "prompt", add_special_tokens=False, allow_overflow=True) == [65, 0]


def test_a_tokenizer_that_grows_texts_is_stopped_by_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenization, "MEMORY_BYTES", 2**30)
    growing = opened(tmp_path, plain() | {"normalizer": replacing(("a", "b" * 60))})
    with pytest.raises(RequestError, match=r"MiB of memory|takes longer"):
        tokens_of(growing, "a" * (QUICK_CHARACTERS + 1) * 4)


@pytest.fixture
def preparer() -> Iterator[PreparationThreads]:
    preparer = PreparationThreads({"plain": 1})
    yield preparer
    preparer.close()


def test_a_cancel_ends_the_tokenization_and_the_next_request_does_not_wait(
    slow: Tokenizer, preparer: PreparationThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenization, "CPU_SECONDS", 10 * SECONDS)
    encoder, ended = Encoder(slow), [Signal(), Signal()]
    encoder.encode("b", "prompt", add_special_tokens=False, allow_overflow=True)  # the process is there

    def work(text: str) -> Callable[[Any], list[int]]:
        return lambda _: encoder.encode(text, "prompt", add_special_tokens=False, allow_overflow=True)

    held_up = preparer.start("plain", work(ENDLESS), ended[0].set)
    following = preparer.start("plain", work("b!"), ended[1].set)
    assert not held_up.done
    held_up.cancel()
    assert ended[0].wait(SECONDS) and ended[1].wait(SECONDS)
    with pytest.raises(WorkCancelled):
        held_up.result()
    assert following.result() == [65, 0]


def test_a_long_text_delays_no_short_one(slow: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenization, "CPU_SECONDS", 10 * SECONDS)
    isolated = IsolatedTokenizer(slow)
    with ThreadPoolExecutor(1) as threads:
        long = threads.submit(isolated.encode, 2 * ENDLESS, "prompt", add_special_tokens=False)
        assert isolated.encode("b!", "prompt", add_special_tokens=False) == [65, 0]
        assert not long.done()
        isolated.large.close()
        with pytest.raises(RequestError):
            long.result(SECONDS)


def test_the_description_of_a_tokenizer_has_no_padding(tmp_path: Path) -> None:
    padding = {
        "strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
        "pad_token": "!",
    }  # fmt: skip
    padded = opened(tmp_path, plain() | {"padding": padding})
    assert json.loads(IsolatedTokenizer(padded).describe()["tokenizer"])["padding"] is None
    assert IsolatedTokenizer(padded).encode("b!", "prompt", add_special_tokens=False) == [65, 0]
