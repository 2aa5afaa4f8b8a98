"""Fields of responses that OpenAI's endpoints share: ids, token counts, and the progress of the prompt."""

import hashlib
import secrets
from collections.abc import Callable
from functools import partial
from time import monotonic, time
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from lmwire import TokenDelta, ToolCallDelta
from lmwire_protocol import __version__, events

from ..http.sse import WaitingEvent
from ..inference.timings import TimingsSoFar
from ..settings import Settings


class ResponseIdentity(NamedTuple):
    """The fields with which a completion and each of its chunks begin."""

    id: str
    created: int
    """Time of the request, in seconds since 1970."""
    model: str
    """The model's name in the request."""
    system_fingerprint: str


def new_id(kind: str) -> str:
    """Return a new id, such as `chatcmpl-…` for the kind `chatcmpl`."""
    return f"{kind}-{secrets.token_hex(16)}"


def new_identity(kind: str, model: str, settings: Settings) -> ResponseIdentity:
    """Return the identity of a new response.

    Args:
        kind: The kind of its id.
        model: The model's name in the request.
        settings: The server's settings.
    """
    return ResponseIdentity(new_id(kind), int(time()), model, system_fingerprint(model, settings))


def system_fingerprint(model: str, settings: Settings) -> str:
    """Return a text that changes when the same request with the same seed may have another answer.

    It depends on the version, on the model, and on the options that change answers.

    Args:
        model: The model's name in the request.
        settings: The server's settings.
    """
    options = (
        sorted(settings.load_options.items()),
        settings.worker_command,
        settings.worker_args,
        settings.generation_config,
        settings.default_max_tokens,
        settings.strict_tools,
        settings.reasoning,
        settings.force_reasoning,
    )
    return "fp_" + hashlib.sha256(repr((__version__, model, options)).encode()).hexdigest()[:10]


class PromptDetails(Struct, kw_only=True):
    """Details of the prompt's tokens."""

    cached_tokens: int
    cache_miss: events.CacheMiss | UnsetType = UNSET
    """The place at which the prompt ceased to be known to the cache; with `cache_report`."""


class CompletionDetails(Struct, kw_only=True):
    """Details of the answer's tokens."""

    reasoning_tokens: int
    accepted_prediction_tokens: int = 0
    """Tokens that the draft model proposed and the model accepted."""


class Usage(Struct, kw_only=True):
    """Token counts of a request."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails | UnsetType = UNSET
    """Absent until the request has ended."""
    completion_tokens_details: CompletionDetails | UnsetType = UNSET
    """Absent until the request has ended."""


def total_usage(*results: events.ResultDone) -> Usage:
    """Return the sum of the workers' reports, with the cache miss of a request that has one prompt."""
    used = [result.usage for result in results]
    miss = results[0].cache_miss if len(results) == 1 else None
    prompt = sum(each.prompt_tokens for each in used)
    completion = sum(each.completion_tokens for each in used)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        prompt_tokens_details=PromptDetails(
            cached_tokens=sum(each.cached_tokens for each in used), cache_miss=UNSET if miss is None else miss
        ),
        completion_tokens_details=CompletionDetails(
            reasoning_tokens=sum(each.reasoning_tokens for each in used),
            accepted_prediction_tokens=sum(each.draft_accepted for each in used),
        ),
    )


class UsageSoFar:
    """Token counts of a request while it runs, for vLLM's `continuous_usage_stats`.

    The worker reports a prompt's length before its first token. The token that ends an answer is in no delta, so the
    counts of a prompt are exact once it has ended.
    """

    def __init__(self) -> None:
        self._prompt_tokens: dict[int, int] = {}
        self._completion_tokens: dict[int, int] = {}

    def note_prompt(self, prompt: int, tokens: int) -> None:
        """Take in the length of a prompt.

        Args:
            prompt: The number of the prompt in the request.
            tokens: Its number of tokens.
        """
        self._prompt_tokens[prompt] = tokens

    def note_delta(self, prompt: int, delta: TokenDelta | ToolCallDelta) -> None:
        """Take in the tokens of a delta.

        Args:
            prompt: The number of the delta's prompt.
            delta: The delta.
        """
        if isinstance(delta, TokenDelta):
            self._completion_tokens[prompt] = self._completion_tokens.get(prompt, 0) + len(delta.token_ids)

    def note_end(self, prompt: int, used: events.Usage) -> None:
        """Take in the worker's counts for a prompt.

        Args:
            prompt: The number of the prompt.
            used: The counts.
        """
        self._prompt_tokens[prompt] = used.prompt_tokens
        self._completion_tokens[prompt] = used.completion_tokens

    def usage(self) -> Usage | None:
        """Return the sum of the counts; None until the length of a prompt is known."""
        if not self._prompt_tokens:
            return None
        prompt, completion = sum(self._prompt_tokens.values()), sum(self._completion_tokens.values())
        return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


class PromptProgress(Struct, kw_only=True):
    """Progress of the prompts, all of them together."""

    total: int
    """Number of tokens."""
    cache: int
    """Number of tokens that were cached."""
    processed: int
    """Number of tokens that are done, cached ones included."""
    time_ms: int
    """Time since the first prompt was begun, in milliseconds."""


class _KnownPrompt(PromptProgress, kw_only=True):
    """Progress of one prompt."""

    is_answered: bool = False
    """True once its answer has begun."""


class ProgressTracker:
    """The progress of one request's prompts. The waiting event reports it as soon as it changes.

    The first report is always sent: its `processed` is the part that was cached, as in llama.cpp's server. Of the later
    ones that wait to be sent, only the newest is.

    Args:
        is_wanted: Whether the request asks for it.
        encode: Returns the encoded waiting event for a progress, which is None if there is none to report.
        so_far: Gets the lengths of the prompts; None if the request does not ask for its usage while it runs.
        timings: Gets the progress of the prompts; None if the request does not ask for its times while it runs.
    """

    def __init__(
        self,
        *,
        is_wanted: bool,
        encode: Callable[[PromptProgress | None], bytes],
        so_far: UsageSoFar | None,
        timings: TimingsSoFar | None = None,
    ) -> None:
        self._is_wanted = is_wanted
        self._so_far = so_far
        self._timings = timings
        self._encode = encode
        self._started_at = 0.0
        self._prompts: dict[int, _KnownPrompt] = {}
        self._first: PromptProgress | None = None
        """The first report, until it is sent."""
        self._newest: PromptProgress | None = None
        """The newest of the later ones, until it is sent."""
        self.waiting = WaitingEvent(self._encode_unsent)

    def options(self, prompt: int = 0) -> dict[str, Any]:
        """Return the options of a generation with which its progress is tracked.

        Args:
            prompt: The number of the generation's prompt in the request.
        """
        is_tracked = self._is_wanted or self._so_far or self._timings
        return {"on_progress": partial(self._note, prompt)} if is_tracked else {}

    def begin_answer(self, prompt: int = 0) -> bytes:
        """Return the encoded reports up to the one that a prompt is done; empty if there are none to send.

        The worker reports at intervals, so the last part of a prompt can be missing. Its answer shows that it is done.

        Args:
            prompt: The number of the prompt whose answer has something to send.
        """
        if (known := self._prompts.get(prompt)) is None or known.is_answered:
            return b""
        known.is_answered = True
        if known.processed < known.total:
            self._report(prompt, known.total, known.total)
        if not (self._first or self._newest):
            return b""
        self.waiting.withdraw()
        return self._encode_unsent()

    def _note(self, prompt: int, progress: events.Progress) -> None:
        if progress.stage != "prefill" or progress.total is None:
            return
        if self._so_far:
            self._so_far.note_prompt(prompt, progress.total)
        if self._timings:
            self._timings.note_prompt(prompt, progress.current, progress.total)
        if self._is_wanted:
            self._report(prompt, progress.current, progress.total)

    def _report(self, prompt: int, current: int, total: int) -> None:
        now = monotonic()
        if is_first := not self._prompts:
            self._started_at = now
        if (known := self._prompts.get(prompt)) is None:
            known = self._prompts[prompt] = _KnownPrompt(total=total, cache=current, processed=0, time_ms=0)
        known.processed = current
        known.time_ms = round((now - self._started_at) * 1000)
        if is_first:
            self._first = self._sum()
        else:
            self._newest = self._sum()
        self.waiting.send_now()

    def _encode_unsent(self) -> bytes:
        """Return the encoded reports that have not been sent; without any, the waiting event that reports nothing."""
        unsent = [report for report in (self._first, self._newest) if report] or [None]
        self._first = self._newest = None
        return b"".join([self._encode(report) for report in unsent])

    def _sum(self) -> PromptProgress:
        prompts = self._prompts.values()
        return PromptProgress(
            total=sum(prompt.total for prompt in prompts),
            cache=sum(prompt.cache for prompt in prompts),
            processed=sum(prompt.processed for prompt in prompts),
            time_ms=max(prompt.time_ms for prompt in prompts),
        )
