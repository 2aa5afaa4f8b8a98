"""Compute a beginning that several requests share once: they wait for the one in work, and continue from its cache.

A request is never later for it. It waits only for a prompt that is ahead of it, and only if what is saved over all that
wait takes longer than the chunk of their own that they need afterwards. Otherwise it starts at once, with as much as
the other one has computed.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from .cache_manager import CacheManager
from .prefix_cache.store import common_length
from .request_table import ActiveRequest, RequestTable, Sequence

MIN_SHARED_TOKENS: Final = 64
"""Prompt tokens for which a request waits for another one's prefill. Fewer tokens are computed again as quickly."""


class Leader(Struct, frozen=True):
    """A prompt in the batch that begins like a waiting one."""

    row: Sequence
    """The prompt's row in the batch."""
    until: int
    """Number of tokens after which the waiting request may start. A longer prompt pauses there."""
    is_worth_waiting: bool
    """True if the request should wait for them."""


class SharedPrefill:
    """Finds the leaders of waiting requests, at one moment.

    Args:
        table: The requests.
        cache: Knows what may be shared.
        is_worth_a_chunk: Returns whether to compute that many tokens takes as long as a further chunk.
    """

    def __init__(self, table: RequestTable, cache: CacheManager, is_worth_a_chunk: Callable[[int], int]) -> None:
        self._table = table
        self._cache = cache
        self._is_worth_a_chunk = is_worth_a_chunk
        self._followers: dict[Sequence, list[int]] = {}
        """For each row in work, the tokens that it shares with each request that waits, if these are many."""

    def leader(self, request: ActiveRequest) -> Leader | None:
        """Return the prompt that shares the longest beginning with a request; None if none shares enough.

        A complete prompt, whose answer is in work, needs no wait. It is cached only if the model needs snapshots.
        """
        if not self._cache.may_share(request.first):
            return None
        rows = [row for row in self._table.in_batch if self._cache.may_share(row)]
        in_work = [(self._shared(request, row), row) for row in rows if _is_in_work(row)]
        shared, row = max(in_work, key=lambda pair: pair[0], default=(0, None))
        known = self._cache.known_tokens(request.first)
        if not self._cache.needs_snapshots:
            complete = [row for row in rows if not _is_in_work(row)]
            if longer := self._find_complete(request, complete, max(shared, known)):
                return longer
        if row is None or shared < MIN_SHARED_TOKENS or row.computed_tokens < known:
            return None
        ends = [tokens for tokens in self._followers_of(row) if tokens > shared - MIN_SHARED_TOKENS]
        end = min(ends)
        is_longer = len(row.prompt) > len(request.first.prompt) + MIN_SHARED_TOKENS
        if is_longer or self._cache.needs_snapshots:
            until, start = end, known if self._cache.needs_snapshots else row.computed_tokens
        else:
            until, start = len(row.prompt) - 1, known
        saved = (end - start) * len(ends)
        waits = row.computed_tokens < until and saved > 0 and self._is_worth_a_chunk(saved)
        return Leader(row, until, bool(waits))

    def _find_complete(self, request: ActiveRequest, rows: list[Sequence], known: int) -> Leader | None:
        """Return the complete prompt that shares the most tokens, if these are enough beyond the `known` ones."""
        end = known + MIN_SHARED_TOKENS
        beginning = _beginning(request.first, end)
        if beginning is None:
            return None
        # To find where two prompts differ takes many comparisons.
        similar = [row for row in rows if _beginning(row, end) == beginning]
        if not similar:
            return None
        row = max(similar, key=lambda row: self._shared(request, row))
        return Leader(row, len(row.prompt), is_worth_waiting=False)

    def _followers_of(self, row: Sequence) -> list[int]:
        if row not in self._followers:
            waiting = (request for request in self._table.waiting if self._cache.may_share(request.first))
            shared = (self._shared(request, row) for request in waiting)
            self._followers[row] = [tokens for tokens in shared if tokens >= MIN_SHARED_TOKENS]
        return self._followers[row]

    def _shared(self, request: ActiveRequest, row: Sequence) -> int:
        """Return the number of tokens with which both prompts begin, without the last one of each."""
        if row.key not in request.shared_tokens:
            prompt, other = (each.cache_key(each.prompt)[:-1] for each in (request.first, row))
            request.shared_tokens[row.key] = common_length(prompt, other, 0)
        return request.shared_tokens[row.key]


def _is_in_work(row: Sequence) -> bool:
    """Return whether a row's prompt is incomplete, and no answer has begun."""
    return row.computed_tokens < len(row.prompt) - 1 and not row.generated


def _beginning(row: Sequence, tokens: int) -> list[int] | None:
    """Return the first tokens of a prompt, as they are cached; None if it has no more than these."""
    return row.cache_key(row.prompt)[:tokens] if len(row.prompt) > tokens else None
