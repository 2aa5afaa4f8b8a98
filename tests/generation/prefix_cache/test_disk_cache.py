"""The prefix cache on disk: which entries are stored, and which files are ignored."""

import errno
import math
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from lmwire_protocol import Generate, Load
from lmwire_worker.engine.load_context import DiskCacheOptions
from lmwire_worker.generation.prefill_policy import PrefillPolicy
from lmwire_worker.generation.prefix_cache import disk_tier as disk_module
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.loading.model_loader import MlxModelLoader
from random_model import write_model
from support.process.worker_process import SECONDS
from support.runners.generation_runners import EACH_FAMILY, Answer, Driver, ask

pytestmark = pytest.mark.slow

PROMPT = [(7 * index + 3) % 200 for index in range(150)]
OTHER = [(11 * index + 5) % 200 for index in range(150)]


@dataclass
class Workers:
    """Workers that start one after another, and share one directory."""

    directory: Path
    folder_of: Callable[[str], Path]
    lines: list[str] = field(default_factory=list)
    open_runners: list[GenerationRunner] = field(default_factory=list)

    def start(
        self, family: str = "llama", budget: int = 2**30, engine: MlxModelLoader | None = None, **fields: Any
    ) -> GenerationRunner:
        engine = engine or MlxModelLoader(disk=DiskCacheOptions(self.directory, budget, self.lines.append))
        engine.prepare()
        load = Load(path=str(self.folder(family)), **fields)
        runner = engine.open(load, lambda *_: None, release_current_model=lambda: None)
        assert isinstance(runner, GenerationRunner)
        self.open_runners.append(runner)
        return runner

    def folder(self, family: str) -> Path:
        if family == "wide":  # heads that can be quantised
            return write_model(self.directory.parent / "wide", "llama", head_dim=32)
        return self.folder_of(family)

    def stop(self, runner: GenerationRunner) -> None:
        """Once all is written."""
        self.open_runners.remove(runner)
        runner.close()

    def files(self) -> list[Path]:
        return sorted(self.directory.glob("*/*"))


@pytest.fixture
def workers(tmp_path: Path, folder_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Their models compute so slowly that every read is worth it."""
    monkeypatch.setattr(PrefillPolicy, "prefill_s", lambda *_: math.inf)
    workers = Workers(tmp_path / "kept", folder_of)
    yield workers
    for runner in workers.open_runners:
        runner.close()


def request(prompt: list[int] = PROMPT, **fields: Any) -> Generate:
    return Generate(prompt=prompt, max_tokens=8, ignore_eos=True, **fields)


def cached(runner: GenerationRunner, wanted: Generate) -> tuple[int, Answer]:
    """Return the number of cached tokens, and the answer."""
    driver = Driver(runner)
    admitted = runner.add(0, wanted, 0)
    driver.choices[0] = [Answer()]
    driver.unfinished[0] = 1
    answer = driver.finish()[0]
    return admitted.cached_tokens, answer


def hold_up(monkeypatch: pytest.MonkeyPatch, name: str) -> threading.Event:
    """Block reads, or writes, of cache files until the returned event is set."""
    release = threading.Event()
    work = getattr(disk_module.cache_file, name)

    def wait_first(*arguments: Any) -> Any:
        assert release.wait(SECONDS)
        return work(*arguments)

    monkeypatch.setattr(disk_module.cache_file, name, wait_first)
    return release


def leave(workers: Workers, *prompts: list[int], family: str = "llama", **fields: Any) -> list[Answer]:
    """Return the answer of a worker that exits afterwards."""
    runner = workers.start(family, **fields)
    answers = [ask(runner, request(prompt))[0] for prompt in prompts]
    workers.stop(runner)
    return answers


@pytest.mark.parametrize("family", EACH_FAMILY)
def test_a_restarted_worker_uses_the_cache_and_answers_the_same(workers: Workers, family: str) -> None:
    (cold,) = leave(workers, PROMPT, family=family)
    count, warm = cached(workers.start(family), request())
    assert count == len(PROMPT) - 1
    assert warm.token_ids == cold.token_ids
    assert not workers.lines


@pytest.mark.parametrize("family", ["llama", "qwen3_next"])
def test_a_conversation_that_grew_over_several_workers_is_found_whole(workers: Workers, family: str) -> None:
    prompt = PROMPT
    for _ in range(3):
        (answer,) = leave(workers, prompt, family=family)
        prompt = [*prompt, *answer.token_ids, *OTHER[:70]]
    runner = workers.start(family)
    count, warm = cached(runner, request(prompt))
    unknown = 70 + 8 if runner.cache.needs_snapshots else 70  # 8 tokens are too few to be written by themselves
    assert count == len(prompt) - unknown - 1
    (cold,) = ask(runner, request(prompt, cache="off"))
    assert warm.token_ids == cold.token_ids


def test_a_quantised_cache_is_stored_with_its_bits(workers: Workers) -> None:
    (cold,) = leave(workers, PROMPT, family="wide", kv_bits=8)
    count, warm = cached(workers.start("wide", kv_bits=8), request())
    assert count == len(PROMPT) - 1
    assert warm.token_ids == cold.token_ids


def test_a_common_beginning_is_written_once_and_found_for_another_end(workers: Workers) -> None:
    leave(workers, PROMPT + OTHER[:80], PROMPT + OTHER[80:])
    sizes = [path.stat().st_size for path in workers.files()]
    assert max(sizes) > 1.5 * min(sizes), "the second one has only what is its own"
    count, _ = cached(workers.start(), request(PROMPT + OTHER[40:]))
    assert count == len(PROMPT)


def test_fewer_than_64_tokens_are_not_written(workers: Workers) -> None:
    leave(workers, PROMPT[:50])
    assert not workers.files()


def test_a_request_without_cache_leaves_nothing(workers: Workers) -> None:
    runner = workers.start()
    ask(runner, request(cache="off"))
    workers.stop(runner)
    assert not workers.files()


def test_only_the_user_can_read_the_cache(workers: Workers) -> None:
    leave(workers, PROMPT)
    (file,) = workers.files()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(workers.directory.stat().st_mode) == 0o700


def test_a_directory_that_others_can_enter_is_not_used(workers: Workers) -> None:
    leave(workers, PROMPT)
    workers.files()[0].parent.chmod(0o755)
    assert cached(workers.start(), request())[0] == 0
    assert "is not this user's alone" in workers.lines[0]


@pytest.mark.parametrize("remaining", [4, 100, -1])
def test_a_truncated_file_is_ignored_with_a_line(workers: Workers, remaining: int) -> None:
    leave(workers, PROMPT)
    (file,) = workers.files()
    os.truncate(file, remaining % file.stat().st_size)
    assert cached(workers.start(), request())[0] == 0
    assert len(workers.lines) == 1 and f"the cache file {file} is ignored" in workers.lines[0]


def test_a_changed_byte_is_noticed_when_the_file_is_read(workers: Workers) -> None:
    leave(workers, PROMPT)
    (file,) = workers.files()
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert cached(workers.start(), request())[0] == 0
    assert "its checksum is wrong" in workers.lines[0]


def test_a_file_of_another_model_is_ignored_under_the_right_name_too(workers: Workers) -> None:
    leave(workers, PROMPT, family="qwen3")
    (theirs,) = workers.files()
    leave(workers, PROMPT)
    (ours,) = set(workers.files()) - {theirs}
    ours.unlink()
    shutil.copy(theirs, ours.parent)
    assert cached(workers.start(), request())[0] == 0
    assert "it is of another model, or of other versions" in workers.lines[0]


def test_another_setting_of_the_kv_cache_is_another_model(workers: Workers) -> None:
    leave(workers, PROMPT, family="wide")
    assert cached(workers.start("wide", kv_bits=8), request())[0] == 0


def test_files_of_other_programs_are_neither_read_nor_removed(workers: Workers) -> None:
    leave(workers, PROMPT)
    folder = workers.files()[0].parent
    foreign = [folder / "model.safetensors", folder / "cache.pickle", workers.directory / "notes.txt"]
    for path in foreign:
        path.write_bytes(b"x" * 1000)
    link = folder / f"{'0' * 32}-{'0' * 8}.safetensors"
    link.symlink_to(foreign[2])
    runner = workers.start(budget=1)
    ask(runner, request(OTHER))
    workers.stop(runner)
    assert all(path.read_bytes() == b"x" * 1000 for path in foreign)
    assert len(workers.lines) == 1 and str(link) in workers.lines[0]


def test_without_a_directory_only_the_disk_cache_is_missing(workers: Workers, tmp_path: Path) -> None:
    workers.directory.touch()
    runner = workers.start()
    ask(runner, request())
    assert cached(runner, request())[0] == len(PROMPT) - 1, "it is kept in memory"
    assert "nothing is kept on disk" in workers.lines[0]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_failed_write_is_reported_and_leaves_no_file(
    workers: Workers, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(path: str, *_: Any) -> None:
        Path(path).write_bytes(b"half a file")
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(mx, "save_safetensors", fail)
        leave(workers, PROMPT)
    assert not workers.files()
    assert os.strerror(code) in workers.lines[0]


def test_two_workers_share_a_directory(workers: Workers) -> None:
    first, second = workers.start(), workers.start()
    ask(first, request())
    ask(second, request())
    ask(second, request(OTHER))
    workers.stop(first)
    workers.stop(second)
    third = workers.start()
    assert [cached(third, request(prompt))[0] for prompt in (PROMPT, OTHER)] == [len(PROMPT) - 1] * 2
    assert not workers.lines


def test_a_file_that_another_worker_removed_is_a_miss(workers: Workers) -> None:
    leave(workers, PROMPT)
    runner = workers.start()
    workers.files()[0].unlink()
    assert cached(runner, request())[0] == 0


def test_the_least_recently_used_goes_when_the_budget_is_spent(workers: Workers) -> None:
    leave(workers, PROMPT)
    (first,) = workers.files()
    leave(workers, OTHER)
    os.utime(first, (1, 1))
    leave(workers, PROMPT[::-1], budget=int(2.5 * first.stat().st_size))
    assert len(workers.files()) == 2
    assert first not in workers.files()


def test_using_a_file_delays_its_eviction(workers: Workers) -> None:
    leave(workers, PROMPT)
    (file,) = workers.files()
    os.utime(file, (1, 1))
    cached(workers.start(), request())
    assert file.stat().st_mtime > 1


def test_clearing_the_cache_removes_the_models_files(workers: Workers) -> None:
    leave(workers, PROMPT)
    runner = workers.start()
    runner.clear_cache()
    assert not workers.files()
    assert cached(runner, request())[0] == 0


def test_what_is_sooner_computed_than_read_is_computed(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    leave(workers, PROMPT, OTHER, PROMPT[::-1])
    predicted = iter([0.0, 0.0, float(SECONDS)])
    monkeypatch.setattr(PrefillPolicy, "prefill_s", lambda *_: next(predicted))
    runner = workers.start()
    assert cached(runner, request())[0] == 149, "nothing was measured yet"
    assert cached(runner, request(OTHER))[0] == 0
    assert cached(runner, request(PROMPT[::-1]))[0] == 149


def test_a_slow_disk_is_tried_again_after_a_while(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    leave(workers, PROMPT, OTHER)
    tier = workers.start().cache.prefix_cache.disk
    assert tier is not None
    tier.token_s = 1.0
    tries = [tier.start_reading(OTHER, 0, list, lambda *_: 100.0) for _ in range(5)]
    assert [each is not None for each in tries] == [False, False, False, False, True]


def test_reading_does_not_hold_other_answers_up(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    (cold,) = leave(workers, PROMPT)
    release = hold_up(monkeypatch, "read")
    driver = Driver(workers.start())
    driver.add(0, request())
    driver.add(1, request(OTHER))
    while driver.running != {0}:
        driver.step()
    assert not driver.answers[0].prefilled, "it still waits"
    release.set()
    assert driver.finish()[0].token_ids == cold.token_ids
    assert (stats := driver.runner.cache_stats()) and stats.saved_tokens == len(PROMPT) - 1


def test_a_request_can_be_cancelled_while_its_files_are_read(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    leave(workers, PROMPT)
    release = hold_up(monkeypatch, "read")
    driver = Driver(workers.start())
    driver.add(0, request())
    driver.step()
    assert driver.remove(0).token_ids == []
    assert len(ask(driver.runner, request(OTHER))[0].token_ids) == 8
    release.set()


def test_what_was_dropped_of_a_beginning_while_the_rest_was_read_is_computed_again(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(workers, PROMPT + OTHER)
    runner = workers.start()
    ask(runner, Generate(prompt=PROMPT, max_tokens=1))
    release = hold_up(monkeypatch, "read")
    driver = Driver(runner)
    driver.add(0, request(PROMPT + OTHER))
    runner.cache.evict(2**30)
    release.set()
    answer = driver.finish()[0]
    assert (stats := runner.cache_stats()) and stats.misses == 1
    assert answer.token_ids == ask(runner, request(PROMPT + OTHER, cache="off"))[0].token_ids


def test_an_entry_cleared_while_it_is_read_is_not_cached(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    leave(workers, PROMPT)
    release = hold_up(monkeypatch, "read")
    driver = Driver(workers.start())
    driver.add(0, request())
    driver.runner.clear_cache()
    release.set()
    driver.finish()
    assert (stats := driver.runner.cache_stats()) and stats.hits == 0


def test_files_that_do_not_fit_in_memory_are_a_miss(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    leave(workers, PROMPT)
    runner = workers.start()

    def fail(*_: Any) -> None:
        raise RuntimeError("[malloc] Unable to allocate 1234 bytes.")

    with monkeypatch.context() as patch:
        patch.setattr(disk_module, "concatenate", fail)
        assert cached(runner, request())[0] == 0
    assert "Unable to allocate" in workers.lines[0]


def test_closing_an_engine_waits_for_pending_writes(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_module, "EXIT_TIMEOUT_S", SECONDS)
    release = hold_up(monkeypatch, "write")
    engine = MlxModelLoader(disk=DiskCacheOptions(workers.directory, 2**30, workers.lines.append))
    engine.flush()
    runner = workers.start(engine=engine)
    ask(runner, request())
    waiting = threading.Thread(target=engine.flush)
    waiting.start()
    release.set()
    waiting.join(SECONDS)
    assert workers.files() and not waiting.is_alive()


def test_writing_does_not_hold_the_answer_up(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    release = hold_up(monkeypatch, "write")
    runner = workers.start()
    (answer,) = ask(runner, request())
    assert answer.finish_reason == "length"
    assert not workers.files()
    release.set()
    workers.stop(runner)
    assert workers.files()
