"""Requests that share a long beginning compute it once, on simulated devices: a clock gives the time of each pass."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from lmwire.cli.bench.benchmarks.agents import fewest_tokens
from lmwire_protocol import Generate
from lmwire_worker.generation import runner as runner_module
from lmwire_worker.generation.prefill_policy import FIRST_CHUNK, FIRST_CHUNK_PER_SHAPE, PrefillPolicy
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.generation.shared_prefill import SharedPrefill
from support.nightly import nightly_but
from support.runners.clock import Clock
from support.runners.generation_runners import Answer, Driver, RunnerOf

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Device:
    """The costs of a model, in seconds."""

    fixed_s: float
    """A pass, whatever it computes."""
    token_s: float
    """A token of it."""
    first_chunk: int = FIRST_CHUNK


SLOW = Device(fixed_s=0.002, token_s=5e-4)
"""A model on a processor: what is computed counts."""
FAST = Device(fixed_s=0.008, token_s=8e-6, first_chunk=FIRST_CHUNK_PER_SHAPE)
"""A model on a GPU: a pass of a few tokens takes as long as one of hundreds."""


@dataclass(frozen=True)
class Arrival:
    at_s: float
    request: Any


@dataclass
class Run:
    """The answers to requests, in the order of their arrival."""

    answers: list[Answer] = field(default_factory=list)
    first_s: list[float] = field(default_factory=list)
    """Time from the arrival to the first token."""
    computed: int = 0
    """Prompt tokens that were not cached."""


class Simulation:
    """A runner whose passes take the time of a device.

    Args:
        runner: Runs the requests.
        clock: The time that the runner measures.
    """

    def __init__(self, runner: GenerationRunner, clock: Clock) -> None:
        self.runner = runner
        self.clock = clock
        self.device = SLOW

    def run(self, arrivals: Sequence[Arrival], device: Device) -> Run:
        """Start with nothing cached and nothing measured, and answer the requests as they come."""
        self.runner.clear_cache()
        self.runner.policy = PrefillPolicy()
        self.runner.policy.last_chunk = device.first_chunk
        self.runner.prefills_next, self.runner.decode_s = True, 0.0
        self.device = device
        driver, run, start = Driver(self.runner), Run(), self.clock.now
        waiting = list(enumerate(arrivals))
        first: dict[int, float] = {}
        admitted = {}
        while waiting or driver.running:
            while waiting and (start + waiting[0][1].at_s <= self.clock.now or not driver.running):
                key, arrival = waiting.pop(0)
                self.clock.now = max(self.clock.now, start + arrival.at_s)
                driver.add(key, arrival.request, seed=key)
                admitted[key] = self.runner.table[key].admitted
            driver.step()
            for key, answer in driver.answers.items():
                if answer.generated and key not in first:
                    first[key] = self.clock.now
        run.answers = [driver.answers[key] for key in range(len(arrivals))]
        run.first_s = [first[key] - start - arrival.at_s for key, arrival in enumerate(arrivals)]
        run.computed = sum(
            len(arrival.request.prompt) - admitted[key].cached_tokens for key, arrival in enumerate(arrivals)
        )
        return run


@pytest.fixture
def simulation(
    request: pytest.FixtureRequest, runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Simulation]:
    runner, clock = runner_of(getattr(request, "param", "qwen3")), Clock()
    monkeypatch.setattr(runner, "policy", runner.policy)  # restored at the end
    monkeypatch.setattr(runner.cache.prefix_cache, "verify_interval", 1 << 30)
    simulation = Simulation(runner, clock)
    runner.may_pad()  # tries the model, which takes no time here
    kind = type(runner.network)
    plain = kind.__call__

    def compute(self: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        clock.now += simulation.device.fixed_s + inputs.size * simulation.device.token_s
        return plain(self, inputs, *args, **options)

    monkeypatch.setattr(kind, "__call__", compute)
    monkeypatch.setattr(runner_module, "time", SimpleNamespace(perf_counter=clock))
    yield simulation
    runner.clear_cache()


def tokens(count: int, seed: int) -> list[int]:
    chance = random.Random(seed)
    return [chance.randrange(5, 250) for _ in range(count)]


def burst(requests: int, shared: int, own: int, at_s: float = 0.0, **fields: Any) -> list[Arrival]:
    """Return requests that arrive at once, whose prompts share their first tokens."""
    beginning = tokens(shared, 0)
    return [
        Arrival(at_s, Generate(prompt=beginning + tokens(own, 1 + number), max_tokens=4, **fields))
        for number in range(requests)
    ]


def replace_request(arrival: Arrival, **fields: Any) -> Arrival:
    return Arrival(arrival.at_s, replace(arrival.request, **fields))


def mixed(seed: int) -> list[Arrival]:
    """Return requests at random times, some of which begin alike."""
    chance, now, arrivals = random.Random(seed), 0.0, []
    beginnings = [tokens(chance.choice([50, 100, 300, 800]), 900 + number) for number in range(2)]
    for number in range(10):
        now += chance.choice([0, 0, 0.002, 0.02, 0.1])
        own = tokens(chance.choice([10, 60, 400]), 5000 + 100 * seed + number)
        arrivals.append(Arrival(now, Generate(prompt=chance.choice(beginnings) + own, max_tokens=4)))
    return arrivals


def fewest(arrivals: Sequence[Arrival]) -> int:
    return fewest_tokens([list(arrival.request.prompt) for arrival in arrivals])


def same(one: Run, other: Run) -> None:
    for answer, expected in zip(one.answers, other.answers, strict=True):
        assert answer.error is None
        assert (answer.token_ids, answer.text) == (expected.token_ids, expected.text)


def without_sharing(simulation: Simulation, arrivals: Sequence[Arrival], device: Device) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SharedPrefill, "leader", lambda *_: None)
        return simulation.run(arrivals, device)


SCENARIOS = {"questions": burst(32, 1000, 60), "few": burst(4, 300, 60), "agents": burst(8, 600, 40)}


@pytest.mark.parametrize("device", [SLOW, FAST], ids=["slow", "fast"])
@pytest.mark.parametrize("name", nightly_but({"few", "agents"}, SCENARIOS))
def test_a_shared_beginning_is_computed_once_and_no_first_token_comes_later(
    simulation: Simulation, name: str, device: Device
) -> None:
    arrivals = SCENARIOS[name]
    shared, apart = (run(arrivals, device) for run in (simulation.run, partial(without_sharing, simulation)))
    assert shared.computed <= 1.1 * fewest(arrivals) < apart.computed
    assert all(ours <= theirs for ours, theirs in zip(shared.first_s, apart.first_s, strict=True))
    same(shared, apart)


@pytest.mark.parametrize("device", [SLOW, FAST], ids=["slow", "fast"])
def test_first_tokens_of_a_mix_come_sooner_together(simulation: Simulation, device: Device) -> None:
    for seed in range(4):
        shared = simulation.run(mixed(seed), device)
        apart = without_sharing(simulation, mixed(seed), device)
        assert shared.computed <= apart.computed
        assert sum(shared.first_s) <= sum(apart.first_s)
        same(shared, apart)


def test_a_later_turn_computes_what_is_new(simulation: Simulation) -> None:
    first = burst(8, 600, 40)
    later = [
        Arrival(100.0, replace(each.request, prompt=[*each.request.prompt, *tokens(80, 100 + number)]))
        for number, each in enumerate(first)
    ]
    assert simulation.run(first + later, SLOW).computed <= 1.1 * fewest(first + later)


def test_requests_that_sample_share_a_beginning_too(simulation: Simulation) -> None:
    arrivals = burst(8, 600, 40, temperature=0.9, logprobs=True, top_logprobs=3, n=2)
    shared, apart = simulation.run(arrivals, SLOW), without_sharing(simulation, arrivals, SLOW)
    assert shared.computed <= 1.1 * fewest(arrivals)
    same(shared, apart)


@pytest.mark.parametrize("simulation", ["gemma3_text", "qwen3_next"], indirect=True)
def test_models_that_need_snapshots_share_a_beginning_too(simulation: Simulation) -> None:
    arrivals = burst(8, 600, 40)
    shared, apart = simulation.run(arrivals, SLOW), without_sharing(simulation, arrivals, SLOW)
    assert shared.computed <= 1.1 * fewest(arrivals)
    same(shared, apart)


def test_when_the_first_request_is_cancelled_another_one_continues_its_work(simulation: Simulation) -> None:
    arrivals = burst(6, 1000, 60)
    expected = without_sharing(simulation, arrivals, SLOW).answers
    runner = simulation.runner
    runner.clear_cache()
    driver = Driver(runner)
    for key, arrival in enumerate(arrivals):
        driver.add(key, arrival.request, seed=key)
    while (done := runner.table[0].first.computed_tokens) < 500:
        driver.step()
    admitted = [runner.table[key].admitted for key in range(len(arrivals))]
    driver.remove(0)
    driver.finish()
    assert [each.cached_tokens for each in admitted[1:]] == [done, *[1000] * 4]
    for key in range(1, len(arrivals)):
        assert driver.answers[key].token_ids == expected[key].token_ids


def test_a_request_shares_the_prompt_of_an_answer_that_goes_on(simulation: Simulation) -> None:
    long, short = burst(2, 600, 40, ignore_eos=True)
    arrivals = [replace_request(long, max_tokens=200), Arrival(100 * FAST.fixed_s, short.request)]
    shared, apart = simulation.run(arrivals, FAST), without_sharing(simulation, arrivals, FAST)
    assert shared.computed <= 1.1 * fewest(arrivals)
    same(shared, apart)


def test_of_two_answers_the_one_whose_prompt_is_more_alike_is_shared(simulation: Simulation) -> None:
    beginning, go_on = tokens(600, 0), {"max_tokens": 200, "ignore_eos": True}
    prompts = [beginning[:100] + tokens(600, 1), beginning + tokens(40, 2), beginning + tokens(40, 3)]
    arrivals = [
        Arrival(number // 2 * 100 * FAST.fixed_s, Generate(prompt=prompt, **go_on))
        for number, prompt in enumerate(prompts)
    ]
    assert simulation.run(arrivals, FAST).computed <= 1.1 * fewest(arrivals)


def test_a_prompt_is_stored_once_with_its_answer(simulation: Simulation) -> None:
    simulation.run(burst(1, 600, 40), FAST)
    stats = simulation.runner.cache_stats()
    assert stats is not None
    assert stats.entries == 1


def test_a_request_that_may_not_use_the_cache_waits_for_none(simulation: Simulation) -> None:
    arrivals = burst(4, 600, 40)
    apart = [replace_request(each, cache="off") for each in arrivals]
    assert simulation.run(apart, SLOW).computed == 4 * 640


def test_a_short_prompt_starts_in_the_middle_of_a_long_one(simulation: Simulation) -> None:
    """The long one pauses where the beginning ends, and goes on beside the short one."""
    beginning = tokens(800, 0)
    long, short = (Generate(prompt=beginning + tokens(own, own), max_tokens=4) for own in (3000, 20))
    arrivals = [Arrival(0.0, long), Arrival(0.0, short)]
    run = simulation.run(arrivals, SLOW)
    assert run.computed <= 1.1 * fewest(arrivals)
    assert run.first_s[1] < run.first_s[0] / 2
