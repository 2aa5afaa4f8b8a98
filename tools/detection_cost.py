"""Measure what it costs at a load to find how a model writes its answers: `python tools/detection_cost.py TEMPLATE…`.

For each chat template, it prints the processor time of the sandbox and of the worker, and the duration, which a load
spends beside the reading of weights. Each is the least of some searches, in milliseconds. `jinja` is the least
processor time that plain Jinja takes to compile the template, to compare figures of machines.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import psutil
from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer as Backend
from tokenizers.models import WordLevel

from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.prompts.model_syntax import find_syntax
from lmwire_worker.prompts.reasoning import find_efforts

ROUNDS: Final = 10


class Cost(NamedTuple):
    """Times in milliseconds."""

    sandbox: float
    worker: float
    wall: float
    jinja: float


def measure(source: str) -> Cost:
    """Return the least cost of finding the syntax for a template.

    Args:
        source: The template.
    """
    _search("{{ messages }}")  # starts the sandbox and imports what it needs
    rounds: list[Cost] = []
    for number in range(ROUNDS):
        unseen = f"{source}{{# {number} #}}"  # a template that nothing remembers
        start = _sandbox_seconds(), time.process_time(), time.perf_counter()
        _search(unseen)
        spent, now = time.process_time(), time.perf_counter()  # before the sandbox's, which takes time here
        end = _sandbox_seconds(), spent, now
        times = [(after - before) * 1e3 for before, after in zip(start, end, strict=True)]
        rounds.append(Cost._make([*times, _plain_seconds(unseen) * 1e3]))
    return Cost._make(map(min, zip(*rounds, strict=True)))


def _plain_seconds(source: str) -> float:
    """Return the processor time that Jinja takes to compile a template; not a number if it cannot."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = str
    start = time.process_time()
    try:
        environment.from_string(source)
    except TemplateError:  # it has the tag `generation`
        return float("nan")
    return time.process_time() - start


def _search(source: str) -> None:
    tokens: dict[str, str] = dict.fromkeys(
        ("unk_token", "bos_token", "eos_token"), "?"
    )  # some templates fail without these
    tokenizer = Tokenizer(Backend(WordLevel({"?": 0}, "?")), special_tokens=tokens)
    tokenizer.chat_template = source
    find_efforts(tokenizer, find_syntax(tokenizer, "llama"))


def _sandbox_seconds() -> float:
    """Return the processor time of this process's children."""
    processes = psutil.Process().children()
    precise = [Path(f"/proc/{process.pid}/schedstat") for process in processes]
    if all(path.exists() for path in precise):  # Linux; the times of psutil are in hundredths of a second there
        return sum(int(path.read_text().split()[0]) for path in precise) / 1e9
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


def main(paths: Sequence[str]) -> None:
    """Print a line for each template."""
    print("characters  sandbox  worker    wall   jinja  template")
    for path in paths:
        source = Path(path).read_text()
        cost, name = measure(source), Path(path).name
        print(f"{len(source):10}  {cost.sandbox:7.1f}  {cost.worker:6.1f}  {cost.wall:6.1f}  {cost.jinja:6.1f}  {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
