"""Workers with faults in choices, channels, log-probabilities and the ends of answers."""

import itertools
import math
from typing import Any

import msgspec

from lmwire_protocol import commands, events
from lmwire_worker.engine.interface import TokenDelta
from lmwire_worker.mock import draft
from lmwire_worker.scheduling.scheduler import Scheduler
from lmwire_worker.session.output_queue import OutputQueue
from lmwire_worker.session.request_registry import RequestRegistry
from support.protocol.mutation import mutant, replace, wrap
from worker_mutants.changes import change_deltas, change_results


@mutant("N-3", "n-3-choices")
def mixes_the_tokens_of_a_choice() -> None:
    first: dict[tuple[str, int], events.Token] = {}
    calls = itertools.count(1)

    def put_late(put: Any, self: OutputQueue, token: events.Token) -> None:
        late = first.pop((token.id, token.choice), None)
        if late is None and next(calls) % 5 == 0:
            first[token.id, token.choice] = token
            return
        put(self, token)
        if late:
            put(self, late)

    def end_late(put: Any, self: OutputQueue, id: str, line: bytes) -> None:
        for name in [name for name in first if name[0] == id]:
            self.put_tokens(first.pop(name))
        put(self, id, line)

    wrap(OutputQueue, "put_tokens", put_late)
    wrap(OutputQueue, "put_terminal", end_late)


@mutant("N-3", "n-3-choices")
def gives_the_text_of_one_choice_to_another() -> None:
    numbers = itertools.count(1)
    change_deltas(lambda delta: setattr(delta, "choice", delta.choice and next(numbers) % 2))


@mutant("N-3", "n-3-choices")
def counts_choices_from_one() -> None:
    change_deltas(lambda delta: setattr(delta, "choice", delta.choice + 1))


@mutant("N-3", "n-3-choices")
def leaves_out_how_a_choice_ended() -> None:
    change_results(lambda result: result.choices and result.choices.pop())


@mutant("#the-result", "n-3-choices")
def counts_the_tokens_of_one_choice_alone() -> None:
    def count_first(result: events.ResultDone) -> None:
        if result.choices:
            result.usage.completion_tokens = result.choices[0].completion_tokens

    change_results(count_first)


@mutant("K-2", "n-3-choices")
def counts_a_choice_short() -> None:
    def shorten(result: events.ResultDone) -> None:
        if result.choices and result.choices[1].completion_tokens:
            result.choices[1].completion_tokens -= 1
            result.usage.completion_tokens -= 1

    change_results(shorten)


@mutant("C-5", "c-3-choices")
def ends_one_choice_for_the_cancel_of_all() -> None:
    def forget(result: events.ResultDone) -> None:
        if result.choices and result.finish_reason == "cancelled":
            result.choices[1].finish_reason = "tool_calls"

    change_results(forget)


@mutant("#generate", "generate")
def reports_reasoning_of_a_model_without_it() -> None:
    change_deltas(lambda delta: setattr(delta, "channel", "reasoning"))


@mutant("R-4", "r-1-reasoning")
def counts_no_reasoning_tokens() -> None:
    change_results(lambda result: setattr(result.usage, "reasoning_tokens", 0))


@mutant("R-1", "r-1-reasoning")
def thinks_in_any_case() -> None:
    def think(write: Any, request: Any, answer: Any, prompt: Any) -> Any:
        return prompt if isinstance(request, commands.Chat) else write(request, answer, prompt)

    wrap(draft, "_thought", think)


@mutant("#token", "k-7-logprobs")
def loses_a_log_probability() -> None:
    numbers = itertools.count(1)
    change_deltas(lambda delta: delta.logprobs and next(numbers) % 5 == 0 and delta.logprobs.pop())


@mutant("#token", "k-7-logprobs")
def names_fewer_tokens_than_asked_for() -> None:
    change_deltas(lambda delta: [logprob.top and logprob.top.pop() for logprob in delta.logprobs or []])


@mutant("#token", "k-7-logprobs")
def names_the_least_probable_first() -> None:
    change_deltas(lambda delta: [logprob.top.reverse() for logprob in delta.logprobs or []])


@mutant("#token", "k-7-logprobs")
def sends_log_probabilities_unasked() -> None:
    def add(delta: TokenDelta) -> None:
        delta.logprobs = delta.logprobs or [events.Logprob(token_id, "", -1.0) for token_id in delta.token_ids]

    change_deltas(add)


@mutant("K-3", "k-3-include-stop")
def leaves_out_the_stop_string_that_was_to_stay() -> None:
    change_deltas(lambda delta: delta.stop and setattr(delta, "text", delta.text.removesuffix(delta.stop)))


@mutant("#the-generation-fields", "n-4-ends")
def ends_as_soon_as_it_likes() -> None:
    def plan_short(plan: Any, self: Any, request: Any, *arguments: Any, **options: Any) -> None:
        plan(self, msgspec.structs.replace(request, min_tokens=0, ignore_eos=False), *arguments, **options)
        self.is_cut = False
        self.count = min(self.count, 4)

    wrap(draft.Draft, "__init__", plan_short)


@mutant("N-5", "n-5-timeout")
def knows_no_time_limit() -> None:
    replace(RequestRegistry, "cancel_expired", lambda self: math.inf)


@mutant("#tokenize", "tokenize")
def returns_tokens_that_only_had_to_be_counted() -> None:
    def tell(tokenize: Any, self: Any, request: Any, command: Any) -> Any:
        return tokenize(self, request, msgspec.structs.replace(command, count_only=False))

    wrap(Scheduler, "_tokenize", tell)


@mutant("#tokenize", "tokenize-reasoning")
def counts_reasoning_that_is_not_in_the_prompt() -> None:
    def count(tokenize: Any, self: Any, request: Any, command: Any) -> Any:
        done = tokenize(self, request, command)
        return msgspec.structs.replace(done, count=done.count + 2) if command.reasoning == "off" else done

    wrap(Scheduler, "_tokenize", count)
