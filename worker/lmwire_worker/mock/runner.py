"""A model runner without a model: it implements `engine.interface` for tests and benchmarks of the rest of the worker.

A prompt's tokens are its words. Without a scripted reply they are also the answer, repeated up to max_tokens, or once
without max_tokens. A token's id is its index in the answer, but for those of `tokenize`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, takewhile
from typing import Final

import msgspec

from lmwire_protocol import Chat, Embed, Generate, Load, Speak, Tokenize, Transcribe
from lmwire_protocol.events import CacheMiss, CacheStats
from lmwire_protocol.limits import LOGPROB_CHARACTERS

from ..engine.interface import (
    AdmittedRequest,
    Failed,
    InferenceCommand,
    MemoryUsage,
    ModelInfo,
    PrefillProgress,
    Preparation,
    RunnerEvent,
    TokenDelta,
)
from .choice import Choice, has_ended, score
from .draft import Draft
from .other_commands import embed, speak, transcribe
from .prompts import CONTEXT_LEN, Vocabulary, echo, prompt_words
from .refusals import check, check_fields
from .replies import Reply
from .scenario import Rule, Script

_BUDGET_BYTES: Final = 1 << 20
_PROMPTS: Final = 256
"""Each request is compared with all of them."""


class PromptCache:
    """Prompts, the most recently used last. A prompt takes the bytes of its text."""

    def __init__(self) -> None:
        self._prompts: dict[tuple[str, ...], bool] = {}
        """For each prompt, whether it is pinned."""
        self._stats = CacheStats(0, _BUDGET_BYTES, 0, 0, 0, 0, 0, 0)

    def begin(self, request: Generate | Chat, prompt: Sequence[str]) -> int:
        """Return the number of cached words of a request's prompt, and cache the prompt.

        Args:
            request: The request.
            prompt: Its words.
        """
        if request.cache == "off":
            return 0
        known, longest = max(((_common(prompt, kept), kept) for kept in self._prompts), default=(0, ()))
        known = min(known, len(prompt) - 1)  # the last word is always computed
        if known:
            self._prompts[longest] = self._prompts.pop(longest)
            self._stats.hits += 1
            self._stats.saved_tokens += known
        else:
            self._stats.misses += 1
        self._keep(tuple(prompt), pinned=request.cache == "pin")
        return known

    def miss(self, request: Generate | Chat, prompt: Sequence[str]) -> CacheMiss | None:
        """Return where a request's prompt ceases to be known, if the request asks for that. Call it before `begin`."""
        if not request.cache_report or request.cache == "off":
            return None
        known = max((min(_common(prompt, kept), len(prompt) - 1) for kept in self._prompts), default=0)
        if known >= len(prompt) - 1:
            return None
        goes_on = any(_common(prompt, kept) == known < len(kept) for kept in self._prompts)
        return CacheMiss(known, prompt[known][:LOGPROB_CHARACTERS] if goes_on else None)

    def stats(self) -> CacheStats:
        """Return the statistics. Any thread may call it."""
        return msgspec.structs.replace(self._stats)

    def clear(self) -> int:
        """Empty the cache, and return the bytes freed."""
        freed = self._stats.bytes
        self._prompts.clear()
        self._stats.bytes = self._stats.entries = 0
        return freed

    def _keep(self, prompt: tuple[str, ...], *, pinned: bool) -> None:
        if prompt in self._prompts:
            pinned |= self._prompts.pop(prompt)
        else:
            self._stats.bytes += _size(prompt)
        self._prompts[prompt] = pinned
        while self._stats.bytes > _BUDGET_BYTES or len(self._prompts) > _PROMPTS:
            old = next((old for old, is_pinned in self._prompts.items() if not is_pinned), prompt)
            del self._prompts[old]
            self._stats.bytes -= _size(old)
            self._stats.evictions += 1
        self._stats.entries = len(self._prompts)


def _common(prompt: Sequence[str], kept: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt, kept, strict=False)))


def _size(prompt: Sequence[str]) -> int:
    return sum(len(word.encode()) for word in prompt)


_ROWS = 64
_PREFILL_TOKENS = 512
_NAP_SECONDS = 0.005
"""Longest step while no token is due. It limits the delay of a cancel."""
_ECHO = Rule(Reply())

_Acts = Iterator[list[RunnerEvent] | float]


class _Player:
    """One sequence of acts: an act is the events of a step, or a pause in seconds."""

    __slots__ = ("acts", "due")

    def __init__(self, acts: _Acts) -> None:
        self.acts = acts
        self.due = 0.0


class _Row:
    """The acts of one generation: the opening, then all choices side by side, then the closing."""

    __slots__ = ("_scenes", "choices", "open", "players")

    def __init__(self, opening: _Acts, choices: list[Choice], closing: _Acts) -> None:
        self.choices = choices
        self.open = len(choices)
        self.players = [_Player(opening)]
        self._scenes = iter([[_Player(choice.play()) for choice in choices], [_Player(closing)]])

    def advance(self, now: float) -> list[RunnerEvent]:
        """Return the events that are due, one act for each choice."""
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


class _SingleTask:
    """The acts of one `embed`, `transcribe` or `speak`. The request ends with the last act."""

    __slots__ = ("_next", "choices", "open", "players")

    def __init__(self, acts: _Acts) -> None:
        self.choices: list[Choice] = []
        self.players = [_Player(acts)]
        self._next = next(acts, None)
        self.open = 1

    def advance(self, now: float) -> list[RunnerEvent]:
        """Return the events that are due, one act at most."""
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
        load: The load.
        step_seconds: Shortest duration of a step.
        script: The replies to requests; other prompts are echoed.
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
            capabilities=["generate", "chat", "tokenize", "embed", "transcribe", "speak", "suffix"],
            adapter_path=load.adapter_path,
            chat_template_name=load.chat_template_name,
            tool_format=load.tool_format,
        )
        self._step_seconds = step_seconds
        self._script = script
        self._cache = PromptCache()
        self._vocabulary = Vocabulary()
        self._held: dict[int, _Row | _SingleTask] = {}

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        """Return None: no request needs a preparation."""
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
        """Choose the reply of a request. See `lmwire_worker.engine.interface.ModelRunner`."""
        if isinstance(request, Embed | Transcribe | Speak):
            reply = (self._script.rule_for(request) or _ECHO).reply
            acts = _single_task(key, request, reply)
            self._held[key] = _SingleTask(chain(acts, [0.0], _close(key, reply)) if reply.has_no_end else acts)
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
        scored = isinstance(request, Generate) and request.prompt_logprobs
        miss = None if scored else self._cache.miss(request, prompt)
        cached = 0 if scored else self._cache.begin(request, prompt)
        opening = _open(key, rule.reply, cached, total)
        if scored:
            opening = chain(opening, [[TokenDelta(key, prompt_logprobs=score(prompt, request.top_logprobs))]])
        self._held[key] = _Row(opening, choices, _close(key, rule.reply))
        return AdmittedRequest(total, cached, miss)

    def step(self) -> list[RunnerEvent]:
        """Return the events that are due, one act for each choice; wait a little if none is due."""
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
        """Drop a request, and return its delayed text."""
        return [outcome for choice in self._held.pop(key).choices for outcome in choice.cancel()]

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """Return the ids of a prompt's words and its text, or the text of ids."""
        check_fields(request)
        return self._vocabulary.tokenize(request)

    def memory(self) -> MemoryUsage:
        """Return zeros: the mock uses no model memory."""
        return MemoryUsage()

    def cache_stats(self) -> CacheStats:
        """Return the statistics of the prefix cache."""
        return self._cache.stats()

    def clear_cache(self) -> int:
        """Empty the prefix cache, and return the bytes freed."""
        return self._cache.clear()

    def release_caches(self) -> None:
        """Do nothing: the mock's cache takes no memory."""

    def close(self) -> int:
        """Return 0: the mock has nothing to free."""
        return 0


def _single_task(key: int, request: Embed | Transcribe | Speak, reply: Reply) -> _Acts:
    if isinstance(request, Embed):
        return embed(key, request, reply)
    return speak(key, request, reply) if isinstance(request, Speak) else transcribe(key, request, reply)


def _open(key: int, reply: Reply, cached_tokens: int, prompt_tokens: int) -> _Acts:
    """Yield the acts before the first token."""
    if reply.delay_ms:
        yield reply.delay_ms / 1000
    if not reply.progress and not reply.fails_at_once:
        for done in range(cached_tokens, prompt_tokens + _PREFILL_TOKENS, _PREFILL_TOKENS):
            yield [PrefillProgress(key, min(done, prompt_tokens), prompt_tokens)]
    for stage in reply.progress:
        yield [PrefillProgress(key, stage.current, prompt_tokens if stage.total is None else stage.total)]
        if stage.delay_ms:
            yield stage.delay_ms / 1000


def _close(key: int, reply: Reply) -> _Acts:
    """Yield the acts that replace an end."""
    if reply.error:
        yield [Failed(key, reply.error.to_error())]
    if reply.then == "hang":
        hang()
    yield float("inf")


def hang() -> None:
    """Block for ever, as an evaluation that never ends."""
    while True:
        time.sleep(3600)
