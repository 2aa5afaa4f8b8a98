"""Several tokens of a row in one step: those that its grammar forces, and those that a draft proposes.

Forced tokens are not sampled. A proposal is sampled as in a step of its own, and the first token that differs from its
proposal is the row's last one in this step. So a draft affects how many tokens a step gives, and never which.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import mlx.core as mx

from ..sampling.logprobs import LogprobHandle
from .decoding import Decoding
from .pace import Pace
from .prompt_lookup import PromptLookup
from .rows import FollowingToken, RowState

if TYPE_CHECKING:
    Sampler = Callable[[mx.array, mx.array], tuple[mx.array, list[LogprobHandle | None]]]


MAX_PROPOSALS: Final = 4
"""Maximum number of tokens that a draft model proposes in one step."""
PATIENCE: Final = 3
"""Steps in which the first token that a draft model proposes may be wrong before it pauses."""


class Continuation(NamedTuple):
    """Tokens that may follow a row's newest one."""

    tokens: list[int]
    is_forced: bool = False
    """True if the grammar allows no others; False for proposals."""


def find_continuations(
    rows: Sequence[RowState], read_newest: Callable[[], list[int]], room: int, decoding: Decoding
) -> list[Continuation]:
    """Return what may follow the newest token of each row, without a draft model; nothing if that is not worth it.

    Args:
        rows: The rows.
        read_newest: Waits for their newest tokens, and returns them. Only a grammar or a text that repeats itself asks.
        room: Maximum number of tokens that follow.
        decoding: How the batch decodes.
    """
    answering = [state for state in rows if _is_answering(state)]
    constrained = [state for state in answering if state.row.constraint is not None]
    if 2 * len(constrained) < len(rows):
        constrained = []  # for few of the rows, no step should wait
    guesses = _look_up(answering, room) if decoding.looks_up else {}
    if not constrained and not _is_worth_it(decoding, rows, [], guesses):
        return []
    known = dict(zip(rows, read_newest(), strict=True))
    right = {state: guess for state, guess in guesses.items() if guess[0] == known[state]}
    for state in guesses.keys() - right.keys():
        if state.lookup is not None:
            state.lookup.pace.note(len(guesses[state]), 0)
    forced = {state: state.row.forced_tokens(known[state], _room_of(state, room)) for state in constrained}
    lengths = [*map(len, forced.values())]
    is_forced_alone = len(rows) == 1 and any(lengths)  # that always saves steps
    if not is_forced_alone and not _is_worth_it(decoding, rows, lengths, right):
        return []
    found: list[Continuation] = []
    for state in rows:
        if (tokens := forced.get(state)) and state.row.constraint is not None:
            tokens = state.row.constraint.skip(tokens)
        found.append(Continuation(tokens, is_forced=True) if tokens else Continuation(right.get(state, [])[1:]))
    return found if any(after.tokens for after in found) else []


def _is_worth_it(
    decoding: Decoding, rows: Sequence[RowState], forced: Sequence[int], guesses: dict[RowState, list[int]]
) -> bool:
    """Return whether a step should compute several tokens of some rows.

    Args:
        decoding: How the batch decodes.
        rows: The rows.
        forced: Number of tokens that are forced in each of some rows.
        guesses: The guesses for others, each with its newest token.
    """
    width = max([1, *(1 + count for count in forced), *map(len, guesses.values())])
    proposed = (min(state.lookup.pace.expected, len(guess)) for state, guess in guesses.items() if state.lookup)
    return width > 1 and decoding.is_worth_it(len(rows), width, (sum(forced) + sum(proposed)) / len(rows))


def _is_answering(state: RowState) -> bool:
    return len(state.tokens) >= len(state.prompt)  # the first step delivers nothing


def _room_of(state: RowState, room: int) -> int:
    return min(room, state.row.remaining_tokens - (not state.is_delivered))


def _look_up(rows: Sequence[RowState], room: int) -> dict[RowState, list[int]]:
    """Return, for rows whose text repeats itself, their newest token and those that may follow it, as guesses."""
    guesses: dict[RowState, list[int]] = {}
    for state in rows:
        if state.row.bans is None:  # what takes tokens back must see each alone
            state.lookup = state.lookup or PromptLookup()
            if guess := state.lookup.propose(state.tokens, _room_of(state, room) + 1):
                guesses[state] = guess
    return guesses


def wanted_proposals(rows: Sequence[RowState], room: int, decoding: Decoding) -> list[int]:
    """Return how many tokens a draft model should propose for each row; nothing if that is not worth it.

    Args:
        rows: The rows.
        room: Maximum number of tokens that follow.
        decoding: How the batch decodes.
    """
    wanted: list[int] = []
    gain = 0.0
    for state in rows:
        state.pace = state.pace or Pace(MAX_PROPOSALS, PATIENCE)
        may_follow = _is_answering(state) and state.row.bans is None  # what takes tokens back must see each alone
        wanted.append(min(_room_of(state, room), state.pace.next()) if may_follow else 0)
        gain += state.pace.expected if wanted[-1] else 0.0
    width = 1 + max(wanted)
    return wanted if width > 1 and decoding.is_worth_it(len(rows), width, gain / len(rows)) else []


class Sampled(NamedTuple):
    """Tokens that a step sampled after the newest ones and those that followed them."""

    newest: mx.array
    """The next token of each row [B]."""
    handles: list[LogprobHandle | None]
    counts: list[int]
    """Number of tokens of each row that stay in the cache: its newest one before the step, and those that followed."""
    sampler: "Sampler | None"
    """The sampler, if it may go on."""


def sample_after(
    rows: Sequence[RowState],
    newest: Sequence[int],
    found: Sequence[Continuation],
    logits: mx.array,
    sampler: "Sampler | None",
    new_sampler: "Callable[[Sequence[RowState], Sequence[int]], Sampler]",
    ends: Collection[int],
) -> Sampled:
    """Sample the next token of each row, and add to the row what came before it.

    All places of a row are sampled at once if none depends on the tokens before it, and else one after the other.

    Args:
        rows: The rows.
        newest: Their newest tokens.
        found: What may follow them.
        logits: The model's logits [B, T, V] after the newest tokens and those.
        sampler: The sampler of all rows, which read no forced tokens; None if there is none yet.
        new_sampler: Returns the sampler of rows, and of how many tokens after their newest one each samples.
        ends: The tokens that end a turn or a gap. No proposal follows them.
    """
    lines = [[token, *after.tokens] for token, after in zip(newest, found, strict=True)]
    places = [len(after.tokens) if after.is_forced else 0 for after in found]
    """The place of each row whose logits are sampled next."""
    for state, line, place in zip(rows, lines, places, strict=True):
        state.tokens += line[:place]
    at_once = [
        bool(after.tokens) and not after.is_forced and state.samples_by_position
        for state, after in zip(rows, found, strict=True)
    ]
    if any(places) or any(at_once):
        sampler = None
    parts: list[mx.array] = []
    handles: list[LogprobHandle | None] = [None] * len(rows)
    origins = [0] * len(rows)
    """The index of each row's next token in all parts together."""
    going = [*range(len(rows))]
    while going:
        spans = [range(places[row], len(lines[row]) if at_once[row] else places[row] + 1) for row in going]
        picked = [(row, place) for row, span in zip(going, spans, strict=True) for place in span]
        ahead = [place - places[row] for row, place in picked]
        sampler = sampler or new_sampler([rows[row] for row, _ in picked], ahead)
        read = mx.array([lines[row][place] for row, place in picked])
        tokens, sampled_handles = sampler(_pick(logits, picked), read)
        waits = any(not found[row].is_forced and place + 1 < len(lines[row]) for row, place in picked)
        sampled = _values(tokens) if waits else []
        start, origin = 0, sum(map(len, parts))
        going_on: list[int] = []
        for row, span in zip(going, spans, strict=True):
            for index, place in enumerate(span, start):
                rows[row].tokens.append(lines[row][place])
                token = sampled[index] if waits and not found[row].is_forced else None
                if token is None or token in ends or lines[row][place + 1 : place + 2] != [token]:
                    origins[row], handles[row] = origin + index, sampled_handles[index]
                    break
                rows[row].following.append(FollowingToken(token, sampled_handles[index], drafted=True))
                places[row] += 1
            else:
                going_on.append(row)
            start += len(span)
        parts.append(tokens)
        if len(going_on) < len(going) and going_on:
            sampler = None
        going = going_on
    for state, after in zip(rows, found, strict=True):
        if after.is_forced:
            state.following = [FollowingToken(token) for token in after.tokens]
    all_rows = all(len(part) == len(rows) for part in parts) and not any(at_once)
    joined = parts[0] if len(parts) == 1 and len(parts[0]) == len(rows) else mx.concatenate(parts)[mx.array(origins)]
    return Sampled(joined, handles, [place + 1 for place in places], sampler if all_rows else None)


def _pick(logits: mx.array, places: Sequence[tuple[int, int]]) -> mx.array:
    """Return the logits [P, V] of some places of [B, T, V], each a row and the place in it."""
    rows, columns = zip(*places, strict=True)
    if rows == tuple(range(len(logits))) and len(set(columns)) == 1:
        return logits[:, columns[0]]
    if len(logits) == 1 and columns == tuple(range(logits.shape[1])):
        return logits[0]
    return logits[mx.array(rows), mx.array(columns)]


def note_proposals(rows: Sequence[RowState], found: Sequence[Continuation], counts: Sequence[int]) -> None:
    """Tell what proposed tokens for each row how many of them were right."""
    for state, after, count in zip(rows, found, counts, strict=True):
        if after.tokens and not after.is_forced:
            pace = state.lookup.pace if state.lookup is not None else state.pace
            assert pace is not None
            pace.note(len(after.tokens), count - 1)


def _values(tokens: mx.array) -> list[int]:
    values: Any = tokens.tolist()
    return values
