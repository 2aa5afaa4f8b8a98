"""`lmwire bench cache`: time that the prefix cache saves for a cached prompt, and costs for another one."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Final

from msgspec.structs import replace

from lmwire_protocol import Generate, Load, Unload

from ...errors import CliError
from .. import workload
from ..pairing import extra_latency, latency_ratio, measure_pairs
from ..programs.processes import WorkerProcess
from ..results import Result

_PROMPT_TOKENS: Final = 4096
_ENTRIES: Final = 1000
_SHORT_PROMPT_TOKENS: Final = 32
_FILL_BATCH: Final = 32
_PROMPTS_PER_TURN: Final = 16
"""Prompts with the cache off, then with it on: few, so that a busy machine is equally busy for both."""
_CONTEXT_LEN: Final = 2 * _PROMPT_TOKENS


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure a copy of the model whose context holds the prompts."""
    prompts = Prompts()
    with tempfile.TemporaryDirectory() as copy:
        load = Load(path=str(workload.copy_without_eos(folder, Path(copy), context=_CONTEXT_LEN)))
        with WorkerProcess() as worker:
            worker.ask(load)
            yield _from_memory(worker, prompts, rounds)
            yield _miss(worker, prompts, tokens, rounds)
        yield _from_disk(load, prompts, rounds)


class Prompts:
    """Random prompts. Each shares no more than a few first tokens with another."""

    def __init__(self) -> None:
        self._chance = Random(0)

    def next(self, length: int) -> list[int]:
        """Return the next prompt, of the given length in tokens."""
        return [self._chance.randrange(200) for _ in range(length)]


def _from_memory(worker: WorkerProcess, prompts: Prompts, rounds: int) -> Result:
    """Measure a long prompt, and then the same one with another last token."""
    prompt: list[int] = []

    def cold() -> float:
        prompt[:] = prompts.next(_PROMPT_TOKENS)
        return worker.rate([Generate(prompt=prompt, max_tokens=1)])

    pairs = measure_pairs(rounds, cold, lambda: _rate_cached(worker, prompt))
    return latency_ratio(f"first token of a prompt of {_PROMPT_TOKENS} tokens that is cached, against not", pairs, 20)


def _from_disk(load: Load, prompts: Prompts, rounds: int) -> Result:
    """Measure new long prompts, and ones that an earlier worker has written to disk."""
    known = [prompts.next(_PROMPT_TOKENS) for _ in range(1 + rounds)]
    with tempfile.TemporaryDirectory() as directory:
        with WorkerProcess("--cache-dir", directory) as earlier:
            earlier.ask(load)
            for prompt in known:
                earlier.ask(Generate(prompt=prompt, max_tokens=1))
            earlier.ask(Unload())  # `done` follows when all is on disk
        with WorkerProcess("--cache-dir", directory) as restarted:
            restarted.ask(load)

            def cold() -> float:
                return restarted.rate([Generate(prompt=prompts.next(_PROMPT_TOKENS), max_tokens=1, cache="off")])

            pairs = measure_pairs(rounds, cold, lambda: _rate_cached(restarted, known.pop(), may_compute=True))
    return latency_ratio("first token of such a prompt from disk after a restart, against not cached", pairs, 10)


def _rate_cached(worker: WorkerProcess, prompt: list[int], *, may_compute: bool = False) -> float:
    """Return the answers a second to a prompt that is cached but for its last token.

    Args:
        worker: Has the prompt in its cache.
        prompt: The prompt.
        may_compute: The worker may compute the prompt where that is quicker.
    """
    started = perf_counter()
    done = worker.ask(Generate(prompt=[*prompt[:-1], 200], max_tokens=1))
    seconds = perf_counter() - started
    if (cached := done["usage"]["cached_tokens"]) < len(prompt) - 1 and not may_compute:
        raise CliError(f"only {cached} of {len(prompt) - 1} tokens were cached: too little memory, or too slow a disk")
    return 1 / seconds


def _miss(worker: WorkerProcess, prompts: Prompts, count: int, rounds: int) -> Result:
    """Measure new short prompts, with the cache off and on."""
    for _ in range(0, _ENTRIES, _FILL_BATCH):
        worker.rate([Generate(prompt=prompts.next(_SHORT_PROMPT_TOKENS), max_tokens=1) for _ in range(_FILL_BATCH)])

    def requests() -> list[Generate]:
        return [Generate(prompt=prompts.next(_SHORT_PROMPT_TOKENS), max_tokens=1) for _ in range(_PROMPTS_PER_TURN)]

    def off() -> float:
        return _rate(worker, [replace(request, cache="off") for request in requests()])

    def on() -> float:
        return _rate(worker, requests())

    pairs = measure_pairs(rounds * max(1, count // _PROMPTS_PER_TURN), off, on)
    name = f"a prompt of {_SHORT_PROMPT_TOKENS} tokens that {_ENTRIES} entries do not know"
    return extra_latency(name, pairs, 1, "with the cache off")


def _rate(worker: WorkerProcess, requests: list[Generate]) -> float:
    """Return the requests a second, sent one after another."""
    return len(requests) / sum(1 / worker.rate([request]) for request in requests)
