"""A lane without a model. It proves the contract of `lane.py`, and carries tests and benchmarks of all around it.

A prompt's tokens are its words. Without another reply they are the answer too, again and again up to max_tokens, or
once without. A token's id is its place among those of the answer.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from lmwire_protocol import Embed, Load, Tokenize, Transcribe
from lmwire_protocol.events import CacheStats

from ..engine.interface import (
    AdmittedRequest,
    Failed,
    InferenceCommand,
    MemoryUsage,
    ModelInfo,
    PrefillProgress,
    Preparation,
    RunnerEvent,
)
from .cache import PromptCache
from .choice import Choice, has_ended
from .draft import Draft
from .embed_and_transcribe import embed, transcribe
from .prompts import CONTEXT_LEN, echo, prompt_words, tokenize
from .refusals import check, check_fields
from .replies import Reply
from .scenario import Rule, Script

_ROWS = 64
_PREFILL_TOKENS = 512
_NAP_SECONDS = 0.005
"""How long a step lasts at most while no token is due: how late a cancel may be."""
_ECHO = Rule(Reply())

_Acts = Iterator[list[RunnerEvent] | float]


class _Player:
    """One sequence of acts: `acts` yields outcomes, for a step each, and numbers: seconds until the next."""

    __slots__ = ("acts", "due")

    def __init__(self, acts: _Acts) -> None:
        self.acts = acts
        self.due = 0.0


class _Row:
    """One request: what still happens to it. First it opens, then its choices play side by side, then it closes."""

    __slots__ = ("_scenes", "choices", "open", "players")

    def __init__(self, opening: _Acts, choices: list[Choice], closing: _Acts) -> None:
        self.choices = choices
        self.open = len(choices)
        self.players = [_Player(opening)]
        self._scenes = iter([[_Player(choice.play()) for choice in choices], [_Player(closing)]])

    def advance(self, now: float) -> list[RunnerEvent]:
        """What is due by now, of each choice one thing."""
        outcomes: list[RunnerEvent] = []
        while True:
            for player in self.players.copy():
                if player.due > now:
                    continue
                act = next(player.acts, None)
                if isinstance(act, list):
                    outcomes += act
                    if has_ended(act):
                        self.players.remove(player)
                        self.open -= 1
                elif act is None:
                    self.players.remove(player)
                else:
                    player.due = now + act
            if self.players or not self.open:
                return outcomes
            self.players = next(self._scenes)
            if outcomes:
                return outcomes


class _Errand:
    """One request that is no generation. It is over with its last act."""

    __slots__ = ("_next", "choices", "open", "players")

    def __init__(self, acts: _Acts) -> None:
        self.choices: list[Choice] = []
        self.players = [_Player(acts)]
        self._next = next(acts, None)
        self.open = 1

    def advance(self, now: float) -> list[RunnerEvent]:
        """What is due by now, one act at most."""
        (player,) = self.players
        while player.due <= now:
            act, self._next = self._next, next(player.acts, None)
            if isinstance(act, list):
                self.open = int(self._next is not None)
                return act
            player.due = now + (act or 0.0)
        return []


class MockRunner:
    """Plays replies.

    Args:
        load: what it was loaded with.
        step_seconds: how long each step takes at least.
        script: the replies to requests; what none is for is echoed.
    """

    max_batch_size = _ROWS
    batch_wait_s = 0.0

    def __init__(self, load: Load, step_seconds: float, script: Script) -> None:
        self.model = ModelInfo(
            path=load.path,
            model_type="mock",
            vocab_size=CONTEXT_LEN,
            layers=0,
            hidden_size=0,
            context_len=load.context_len or CONTEXT_LEN,
            weights_bytes=0,
            capabilities=["generate", "chat", "tokenize", "embed", "transcribe"],
            adapter_path=load.adapter_path,
        )
        self._step_seconds = step_seconds
        self._script = script
        self._cache = PromptCache()
        self._held: dict[int, _Row | _Errand] = {}

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        return None

    def add(
        self,
        key: int,
        request: InferenceCommand,
        seed: int,
        *,
        plain_text: bool = False,
        prepared: Preparation | None = None,
    ) -> AdmittedRequest:
        """Takes the words of the prompt, or of the last message."""
        if isinstance(request, Embed | Transcribe):
            reply = (self._script.rule_for(request) or _ECHO).reply
            acts = embed(key, request, reply) if isinstance(request, Embed) else transcribe(key, request, reply)
            self._held[key] = _Errand(chain(acts, [0.0], _close(key, reply)) if reply.has_no_end else acts)
            return AdmittedRequest(0)
        context_len = self.model.context_len
        prompt = prompt_words(request, context_len)
        total = len(prompt)
        again = echo(request, context_len)
        rule = self._script.rule_for(request) or _ECHO
        answers = rule.reply.answers(request.n)
        check(request, answers, rule.match.named)
        choices = [
            Choice(
                key,
                index,
                request,
                rule.reply,
                answer,
                Draft(request, rule.reply, answer, again, room=context_len - total, raw=plain_text),
            )
            for index, answer in enumerate(answers)
        ]
        cached = self._cache.begin(request, prompt)
        self._held[key] = _Row(_open(key, rule.reply, cached, total), choices, _close(key, rule.reply))
        return AdmittedRequest(total, cached)

    def step(self) -> list[RunnerEvent]:
        """What is due by now, of each choice one thing; waits a little when nothing is."""
        if self._step_seconds:
            time.sleep(self._step_seconds)
        now = time.monotonic()
        outcomes: list[RunnerEvent] = []
        for key, row in list(self._held.items()):
            outcomes += row.advance(now)
            if not row.open or (outcomes and outcomes[-1].key == key and isinstance(outcomes[-1], Failed)):
                del self._held[key]
        if not outcomes:
            due = min(player.due for row in self._held.values() for player in row.players)
            time.sleep(max(0.0, min(_NAP_SECONDS, due - now)))
        return outcomes

    def remove(self, key: int) -> Sequence[RunnerEvent]:
        """Forgets the request."""
        return [outcome for choice in self._held.pop(key).choices for outcome in choice.cancel()]

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """A prompt's words, and their places."""
        check_fields(request)
        return tokenize(request)

    def memory(self) -> MemoryUsage:
        """None is used."""
        return MemoryUsage()

    def cache_stats(self) -> CacheStats:
        """What is remembered of prompts."""
        return self._cache.stats()

    def clear_cache(self) -> int:
        """Forgets the prompts."""
        return self._cache.clear()

    def close(self) -> int:
        """Frees nothing."""
        return 0


def _open(key: int, reply: Reply, cached_tokens: int, prompt_tokens: int) -> _Acts:
    """What comes before the first token."""
    if reply.delay_ms:
        yield reply.delay_ms / 1000
    if not reply.progress and not reply.fails_at_once:
        for done in range(cached_tokens + _PREFILL_TOKENS, prompt_tokens + _PREFILL_TOKENS, _PREFILL_TOKENS):
            yield [PrefillProgress(key, min(done, prompt_tokens), prompt_tokens)]
    for stage in reply.progress:
        yield [PrefillProgress(key, stage.current, prompt_tokens if stage.total is None else stage.total)]
        if stage.delay_ms:
            yield stage.delay_ms / 1000


def _close(key: int, reply: Reply) -> _Acts:
    """What comes instead of an end."""
    if reply.error:
        yield [Failed(key, reply.error.to_error())]
    if reply.then == "hang":
        hang()
    yield float("inf")


def hang() -> None:
    """An evaluation that never ends."""
    while True:
        time.sleep(3600)
