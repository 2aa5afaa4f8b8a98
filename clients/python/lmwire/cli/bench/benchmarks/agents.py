"""`lmwire bench agents`: requests that share long beginnings, against the model libraries' own servers.

Histories are scripted: each turn adds an answer of fixed words instead of what the model said. So every server gets the
same prompts, and the fewest tokens that must be computed are known.
"""

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import uvloop

from .. import workload
from ..pairing import latency_ratio
from ..programs.http_servers import Answer, HttpServer, Message, installed_peers, lmwire_server, peer_server
from ..results import Result

AGENTS: Final = 8
TURNS: Final = 4
QUESTIONS: Final = 32
_HISTORY_FACTOR: Final = 8
_DOCUMENT_FACTOR: Final = 2
_MESSAGE_TOKENS: Final = 64
"""Length of each message after the shared beginning, in tokens."""
_WORDS: Final = "read the file and run its tests then tell what failed and mend it with care "
_CONTEXT_LEN: Final = 1_000_000
_WALL_TARGET: Final = 1.3
_BURST_TARGET: Final = 3.0
_NEEDED_TARGET: Final = 1 / 1.1
"""Lowest share of the computed tokens that had to be computed."""

Conversation = list[list[Message]]
"""The prompt of each turn of one agent. Each contains the one before it."""


class Run(NamedTuple):
    """The answers of one server to conversations that ran at once."""

    answers: list[list[Answer]]
    """The answers of each conversation, by turn."""

    @property
    def wall_s(self) -> float:
        """Time from the first request to the end of the last answer, in seconds."""
        return max(turns[-1].ended for turns in self.answers) - min(turns[0].written for turns in self.answers)

    @property
    def first_turn_s(self) -> float:
        """Median time to the first token of the first turns, in seconds."""
        return median(turns[0].first_token_s for turns in self.answers)

    @property
    def later_turns_s(self) -> float:
        """The same of all later turns."""
        return median(answer.first_token_s for turns in self.answers for answer in turns[1:])

    @property
    def computed_tokens(self) -> int:
        """Prompt tokens that were not cached."""
        return sum(answer.prompt_tokens - answer.cached_tokens for turns in self.answers for answer in turns)


class Scenario(NamedTuple):
    """Conversations that start together."""

    name: str
    agents: int
    turns: int
    beginning_tokens: int
    """Length of the beginning that they share, in tokens."""
    first_token_target: float = 1.0
    runs_alone: bool = False
    """True if each server runs without the other, since the caches of both would fill a GPU."""

    def conversations(self, start: str, words_per_token: float) -> list[Conversation]:
        """Return new conversations.

        Args:
            start: The first words, so that nothing of the prompts is cached.
            words_per_token: Words that make a token, on average.
        """
        shared = f"{start}: " + _words(int(self.beginning_tokens * words_per_token))
        return [self._conversation(shared, agent, words_per_token) for agent in range(self.agents)]

    def _conversation(self, shared: str, agent: int, words_per_token: float) -> Conversation:
        per_message = int(_MESSAGE_TOKENS * words_per_token)
        messages: list[Message] = [{"role": "system", "content": shared}]
        turns: Conversation = []
        for turn in range(self.turns):
            if turn:
                messages.append({"role": "assistant", "content": f"{turn} by {agent}: " + _words(per_message)})
            messages.append({"role": "user", "content": f"{agent} asks {turn}: " + _words(per_message)})
            turns.append([*messages])
        return turns


def scenarios(shared_tokens: int) -> list[Scenario]:
    """Return what is measured.

    Args:
        shared_tokens: Length of the agents' system prompt, in tokens. Other lengths are multiples of it.
    """
    return [
        Scenario(f"{AGENTS} agents, {TURNS} turns", AGENTS, TURNS, shared_tokens),
        Scenario(f"1 agent, {TURNS} turns", 1, TURNS, _HISTORY_FACTOR * shared_tokens),
        Scenario(f"{QUESTIONS} questions", QUESTIONS, 1, _DOCUMENT_FACTOR * shared_tokens, _BURST_TARGET, True),
    ]


def measure(folder: Path, tokens: int, rounds: int, shared_tokens: int) -> Iterator[Result]:
    """Measure `lmwire serve` against each other server that is installed.

    Args:
        folder: The model.
        tokens: Length of each answer, in tokens.
        rounds: How often everything is measured, in turns.
        shared_tokens: Length of the agents' system prompt, in tokens.
    """
    with tempfile.TemporaryDirectory() as copy:
        model = workload.copy_without_eos(folder, Path(copy), context=_CONTEXT_LEN)
        for name in installed_peers():
            with peer_server(name, model) as peer, lmwire_server(model) as server:
                words_per_token = 1000 / len(server.tokenize([{"role": "user", "content": _words(1000)}]))
                starts = _Starts(name, partial(nullcontext, peer), partial(nullcontext, server))
                for scenario in scenarios(shared_tokens):
                    if not scenario.runs_alone:
                        yield from _measure_turns(scenario, starts, tokens, rounds, words_per_token)
            starts = _Starts(name, partial(peer_server, name, model), partial(lmwire_server, model))
            for scenario in scenarios(shared_tokens):
                if scenario.runs_alone:
                    yield from _measure_turns(scenario, starts, tokens, rounds, words_per_token)


class _Starts(NamedTuple):
    """Functions that enter the servers of a comparison: those that run already, or new ones."""

    peer_name: str
    peer: Callable[[], AbstractContextManager[HttpServer]]
    lmwire: Callable[[], AbstractContextManager[HttpServer]]


def _measure_turns(
    scenario: Scenario, starts: _Starts, tokens: int, rounds: int, words_per_token: float
) -> Iterator[Result]:
    """Send the same conversations to both servers in turns. Other ones warm up a server before its first turn."""
    runs: list[tuple[Run, Run]] = []
    needed = 0
    for turn in range(rounds):
        conversations = scenario.conversations(f"{turn} {scenario.name}", words_per_token)
        warm_up = scenario.conversations(f"warm-up {turn}", words_per_token)
        is_cold = turn == 0 or scenario.runs_alone
        with starts.peer() as peer:
            theirs = _run(peer, conversations, tokens, warm_up if is_cold else [])
        with starts.lmwire() as server:
            ours = _run(server, conversations, tokens, warm_up if is_cold else [])
            needed = fewest_tokens([server.tokenize(prompt) for turns in conversations for prompt in turns])
        runs.append((theirs, ours))
    name, against = scenario.name, f"against {starts.peer_name}"
    walls = [(1 / theirs.wall_s, 1 / ours.wall_s) for theirs, ours in runs]
    yield latency_ratio(f"{name}, in all, {against}", walls, _WALL_TARGET)
    firsts = [(1 / theirs.first_turn_s, 1 / ours.first_turn_s) for theirs, ours in runs]
    yield latency_ratio(f"{name}, first token of the first turn, {against}", firsts, scenario.first_token_target)
    if scenario.turns > 1:
        later = [(1 / theirs.later_turns_s, 1 / ours.later_turns_s) for theirs, ours in runs]
        yield latency_ratio(f"{name}, first token of later turns, {against}", later, 1.0)
    by_peer, computed = (run.computed_tokens for run in runs[-1])
    detail = f"{computed:,} computed, {needed:,} at least, {by_peer:,} by {starts.peer_name}"
    yield Result(f"{name}, tokens needed of those computed, {against}", needed / computed, "x", _NEEDED_TARGET, detail)


def fewest_tokens(prompts: Sequence[list[int]]) -> int:
    """Return the fewest tokens to compute for prompts: each common beginning once, and of each its last token."""
    ordered = sorted(prompts)
    shared = sum(_common_tokens(one, other[:-1]) for one, other in pairwise(ordered))
    return sum(map(len, ordered)) - shared


def _common_tokens(one: list[int], other: list[int]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _run(
    server: HttpServer, conversations: Sequence[Conversation], tokens: int, warm_up: Sequence[Conversation]
) -> Run:
    async def converse(turns: Conversation) -> list[Answer]:
        return [await server.read(server.chat(messages, tokens), tokens) for messages in turns]

    async def all_at_once(conversations: Sequence[Conversation]) -> list[list[Answer]]:
        return await asyncio.gather(*map(converse, conversations))

    uvloop.run(all_at_once(warm_up))
    return Run(uvloop.run(all_at_once(conversations)))


def _words(count: int) -> str:
    """Return words that every tokenizer splits alike, wherever they stand."""
    words = _WORDS.split()
    return " ".join(words[index % len(words)] for index in range(count))
