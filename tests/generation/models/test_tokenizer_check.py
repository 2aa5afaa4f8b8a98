"""A tokenizer that takes endless time or memory is refused before a library of the worker reads it."""

import copy
import itertools
import json
import random
import time
from pathlib import Path
from typing import Any, Final

import pytest

from lmwire_protocol import RequestError
from lmwire_worker.models import tokenizer_check
from lmwire_worker.models.tokenizer_check import check_tokenizer
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.models.tokenizer_program import LINEAR_PATTERNS, read_program
from lmwire_worker.prompts.tokenization import IsolatedTokenizer
from lmwire_worker.sandbox import Limits
from support.media.damage import damage
from support.media.fuzzing import fuzz_seconds
from support.models.hostile_tokenizers import EXCESSIVE, FAILING, added, plain, splitting, write_tokenizer

BUILT_IN: Final = Path(tokenizer_check.__file__).parent.parent / "builtin" / "tiny" / "tokenizer.json"
VALUES: Final = (
    None, True, -1, 0, 10**9, 2**64, 1e308, "", "x", "\0", "▁" * 40, "(a*)*b", "[", [], {}, [["a", 0.0]],
    {"type": "NFC"}, {"Regex": "(?:.+)+z"}, {"Fixed": 10**12},
)  # fmt: skip


@pytest.mark.parametrize("name", EXCESSIVE)
def test_what_declares_too_much_is_refused_unread(name: str, tmp_path: Path) -> None:
    make, problem = EXCESSIVE[name]
    folder = write_tokenizer(tmp_path, make())
    with pytest.raises(RequestError) as refused:
        check_tokenizer(folder, trust_remote_code=True)
    assert refused.value.code == "bad_model"
    assert problem in refused.value.message
    assert len(refused.value.message) < 500


@pytest.mark.parametrize("name", FAILING)
def test_what_fails_in_a_trial_is_refused(name: str, tmp_path: Path) -> None:
    make, problem = FAILING[name]
    folder = write_tokenizer(tmp_path, make())
    with pytest.raises(RequestError, match=problem) as refused:
        check_tokenizer(folder, trust_remote_code=False)
    assert refused.value.code == "bad_model"
    assert len(refused.value.message) < 800


def test_a_trial_that_exceeds_a_limit_is_a_fault_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_check, "TRIAL_LIMITS", Limits(cpu_seconds=0.01))
    folder = write_tokenizer(tmp_path, plain() | {"pre_tokenizer": splitting("x|y")})
    with pytest.raises(RequestError, match="takes longer than 0 s on a few texts"):
        check_tokenizer(folder, trust_remote_code=False)


def test_a_usual_tokenizer_needs_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_check, "Sandbox", None)
    check_tokenizer(BUILT_IN.parent, trust_remote_code=False)
    check_tokenizer(write_tokenizer(tmp_path, plain()), trust_remote_code=False, must_be_linear=True)


def test_an_unusual_tokenizer_is_refused_where_no_process_would_use_it(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path, plain() | {"pre_tokenizer": splitting("x|y")})
    with pytest.raises(RequestError, match="not known to take linear time"):
        check_tokenizer(folder, trust_remote_code=False, must_be_linear=True)


@pytest.mark.parametrize(
    "step",
    [{"type": []}, {"type": {}}, {"type": "Split", "pattern": {"Regex": ["x"]}}],
    ids=["list", "object", "regex"],
)
def test_a_step_without_a_name_is_not_linear(step: dict[str, Any]) -> None:
    content = plain() | {"pre_tokenizer": step}
    assert not read_program(Path("tokenizer.json"), json.dumps(content).encode()).is_linear


@pytest.mark.parametrize("count", [30_000, 100_000])
def test_as_many_added_tokens_as_models_that_speak_have_are_accepted(count: int) -> None:
    content = plain() | {"added_tokens": [added(256 + at, f"<custom_token_{at}>") for at in range(count)]}
    assert read_program(Path("tokenizer.json"), json.dumps(content).encode()).is_linear


def test_the_lists_of_tokens_beside_it_are_bounded_too(tmp_path: Path) -> None:
    many = {str(at): {"content": f"<{at}>"} for at in range(200_000)}
    for name, content in {
        "tokenizer_config.json": {"added_tokens_decoder": many},
        "special_tokens_map.json": {"additional_special_tokens": list(many)},
        "added_tokens.json": {name: at for at, name in enumerate(many)},
    }.items():
        folder = write_tokenizer(tmp_path / name, plain())
        (folder / name).write_text(json.dumps(content))
        with pytest.raises(RequestError, match=f"{name} adds 200,000 tokens"):
            check_tokenizer(folder, trust_remote_code=False)


def test_what_the_worker_finds_linear_is_so_by_its_file_too(tmp_path: Path) -> None:
    for pattern in ["x|y", *LINEAR_PATTERNS]:
        folder = write_tokenizer(tmp_path / str(len(pattern)), plain() | {"pre_tokenizer": splitting(pattern)})
        found = read_program(folder, (folder / "tokenizer.json").read_bytes()).is_linear
        assert found is (pattern != "x|y")
    for pattern in ("x|y", r"\p{N}{1,3}"):
        folder = write_tokenizer(tmp_path / "loaded", plain() | {"pre_tokenizer": splitting(pattern)})
        (folder / "config.json").write_text('{"model_type": "llama"}')
        loaded = load_tokenizer(folder, {}, trust_remote_code=False)
        assert IsolatedTokenizer(loaded).is_linear is (pattern != "x|y")


def test_a_tokenizer_without_a_process_to_limit_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    with pytest.raises(RequestError) as refused:
        load_tokenizer(tmp_path, {}, trust_remote_code=False)
    assert refused.value.code in ("unsupported", "bad_model")


def test_a_damaged_tokenizer_loads_or_is_refused(tmp_path: Path) -> None:
    end = time.monotonic() + fuzz_seconds()
    seeds = [json.dumps(seed).encode() for seed in (make() for make, _ in FAILING.values())]
    seeds += [json.dumps(plain()).encode(), BUILT_IN.read_bytes()]
    outcomes = dict.fromkeys(("accepted", "refused"), 0)
    for number in itertools.count():
        draw = random.Random(f"tokenizer {number}")
        content = draw.choice(seeds)
        content = damage(content, draw) if draw.random() < 0.2 else _spoil(content, draw)
        folder = write_tokenizer(tmp_path, plain())
        (folder / "tokenizer.json").write_bytes(content)
        print(number, flush=True)  # a test that fails shows it
        try:
            check_tokenizer(folder, trust_remote_code=False)
            outcomes["accepted"] += 1
        except RequestError as refused:
            assert refused.code == "bad_model" and len(refused.message) < 1000
            outcomes["refused"] += 1
        if time.monotonic() > end and all(outcomes.values()):
            break


def _spoil(content: bytes, draw: random.Random) -> bytes:
    """Put wild values somewhere."""
    whole: Any = json.loads(content)
    for _ in range(draw.randint(1, 3)):
        place = whole[draw.choice([*whole])] if draw.random() < 0.8 else whole
        while isinstance(place, dict | list) and place:
            key: Any = draw.choice(list(place)) if isinstance(place, dict) else draw.randrange(len(place))
            if not isinstance(place[key], dict | list) or draw.random() < 0.3:
                place[key] = copy.deepcopy(draw.choice(VALUES))  # the next wild value may come into it
                break
            place = place[key]
    return json.dumps(whole).encode()
