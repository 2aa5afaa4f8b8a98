"""Choices, channels and log-probabilities of an answer, and the features that a worker lists for them."""

from typing import Any

from .. import wire
from ..case_failure import CaseFailure
from ..context import CaseContext
from .registry import case, variants

_REASONING = (0, "reasoning")


@case("N-3", "K-1", "O-1")
def keeps_choices_apart(context: CaseContext) -> None:
    """Give each of several answers its own text and its own end, in whatever way their events interleave."""
    worker = context.start()
    id = context.request("a", n=3).id
    for number in range(5):
        for choice in (2, 0, 1):
            worker.write(wire.token(id, f"{choice}.{number} ", choice=choice))
    worker.write(wire.token(id, "more"), wire.result_done(id, "stop", "length", "stop"))
    texts = [f"{choice}." + f" {choice}.".join(map(str, range(5))) + " " for choice in range(3)]
    context.driver.expect_done(
        "a",
        text=f"{texts[0]}more",
        texts={(1, "content"): texts[1], (2, "content"): texts[2]},
        choices=["stop", "length", "stop"],
    )


@case("N-3", "N-6", "T-1")
def ends_all_choices_with_an_error(context: CaseContext) -> None:
    """End a request with several choices at its only terminal."""
    worker = context.start()
    id = context.request("a", n=2).id
    worker.write(wire.token(id, "so far"), wire.error(id, "engine_error"))
    context.driver.expect_failed("a", "engine_error", text="so far")


@case("C-3", "C-5", "N-3")
def keeps_the_end_of_a_choice_after_a_cancel(context: CaseContext) -> None:
    """Keep the finish reason of each choice: a cancel ends only those that are still running."""
    worker = context.start()
    id = context.request("a", n=2).id
    worker.write(wire.token(id, "a"), wire.token(id, "b", choice=1))
    context.driver.expect_text("a", "a")
    context.driver.cancel("a")
    cancel = worker.expect("cancel")
    worker.write(wire.cancel_done(cancel.id, 1), wire.result_done(id, "stop", "cancelled"))
    context.driver.expect_done("a", text="a", texts={(1, "content"): "b"}, choices=["stop", "cancelled"])


@variants({"tool-calls": "tool_calls", "timeout": "timeout", "capacity": "capacity"}, "P-4", "N-5", "N-9")
def passes_a_finish_reason_on(context: CaseContext, reason: str) -> None:
    """Pass on finish reasons that are newer than 1.0."""
    worker = context.start()
    id = context.request("a", timeout_ms=60_000).id
    worker.write(wire.token(id, "a"), wire.result_done(id, reason))
    context.driver.expect_done("a", text="a", finish_reason=reason)


@case("K-1", "K-5", "K-6")
def keeps_channels_apart(context: CaseContext) -> None:
    """Keep reasoning out of the answer, wherever it comes."""
    worker = context.start()
    id = context.request_chat("a", reasoning="on").id
    worker.write(wire.token(id, "", channel="reasoning"), wire.token(id, "Let me ", channel="reasoning"))
    worker.write(wire.token(id, "see.\n", channel="reasoning"))
    context.driver.expect_text("a", "Let me see.\n", _REASONING)
    worker.write(wire.token(id, "", channel="reasoning"), wire.token(id, "\nFour"))
    worker.write(
        wire.token(id, " Or", channel="reasoning"), wire.token(id, ".", channel="content"), wire.result_done(id)
    )
    context.driver.expect_done("a", text="\nFour.", texts={_REASONING: "Let me see.\n Or"})


@case("K-5", "N-3")
def keeps_the_channels_of_each_choice_apart(context: CaseContext) -> None:
    """Give each choice its own channels."""
    worker = context.start()
    id = context.request_chat("a", reasoning="on", n=2).id
    worker.write(wire.token(id, "hm", channel="reasoning"), wire.token(id, "ah", choice=1, channel="reasoning"))
    worker.write(wire.token(id, "four", choice=1), wire.token(id, "m", channel="reasoning"), wire.token(id, "4"))
    worker.write(wire.result_done(id, "stop", "stop"))
    texts = {_REASONING: "hmm", (1, "reasoning"): "ah", (1, "content"): "four"}
    context.driver.expect_done("a", text="4", texts=texts, choices=["stop", "stop"])


@case("V-4")
def shows_no_text_of_an_unknown_channel(context: CaseContext) -> None:
    """Add the text of an unknown channel neither to the answer nor to the reasoning."""
    worker = context.start()
    id = context.request_chat("a").id
    worker.write(wire.token(id, "a"), wire.token(id, "no", channel="new_channel"), wire.token(id, "b"))
    worker.write(wire.result_done(id))
    context.driver.expect_done("a", text="ab")


@case("V-4")
def reads_an_unknown_finish_reason_of_a_choice_as_other(context: CaseContext) -> None:
    """Map an unknown finish reason of one choice to `other`, like that of the whole answer."""
    worker = context.start()
    id = context.request("a", n=2).id
    worker.write(wire.result_done(id, "stop", "new_reason"))
    context.driver.expect_done("a", choices=["stop", "other"])


@case("K-7", "N-3")
def passes_log_probabilities_on(context: CaseContext) -> None:
    """Pass on the log-probabilities of each token of each choice, with the alternatives."""
    worker = context.start()
    id = context.request("a", logprobs=True, top_logprobs=2, n=2).id
    half = {"bytes": [0xE6, 0xBC]}
    first = wire.logprob(7, " a", -0.25, top=[wire.logprob(7, " a", -0.25), wire.logprob(8, "\ufffd", -1.5, **half)])
    second = wire.logprob(8, "\ufffd", -1e-07, **half)
    unlikely = {"token_id": 9, "token": "z", "top": [wire.logprob(1, "y", 0.0), wire.logprob(2, "x", None)]}
    worker.write(
        wire.token(id, " a", [7], logprobs=[first]),
        wire.token(id, "z", [9], choice=1, logprobs=[unlikely]),
        wire.token(id, "", [8], logprobs=[second]),
        wire.token(id, "b", []),
        wire.token(id, "cd", [7, 9], logprobs=[first, unlikely]),
        wire.result_done(id, "stop", "stop"),
    )
    context.driver.expect_done(
        "a",
        text=" abcd",
        texts={(1, "content"): "z"},
        choices=["stop", "stop"],
        logprobs={0: [first, second, first, unlikely], 1: [unlikely]},
    )


@case("F-16", "V-4")
def accepts_nulls_and_unknown_fields_in_newer_members(context: CaseContext) -> None:
    """Read members that are newer than 1.0 like all others."""
    worker = context.start()
    id = context.request("a", logprobs=True, n=2).id
    nulls: dict[str, Any] = {"choice": None, "channel": None, "new": {"deep": 1}}
    logprob = wire.logprob(1, "a", -1.0)
    odd = {**logprob, "bytes": None, "top": None, "new": [1]}
    done = wire.result_done(id, "stop", "stop")
    done["usage"]["reasoning_tokens"] = None
    ends = [{**choice, "stop": None, "new": 1} for choice in done["choices"]]
    worker.write(wire.token(id, "a", logprobs=[odd], **nulls), wire.token(id, "b", [], logprobs=None))
    worker.write({**done, "choices": ends})
    context.driver.expect_done("a", text="ab", choices=["stop", "stop"], logprobs={0: [logprob]})


@case("K-1")
def joins_the_texts_of_tokenize(context: CaseContext) -> None:
    """Join the texts of `tokenize` to the prompt."""
    worker = context.start()
    id = context.request("a", "tokenize", prompt="to be").id
    worker.write(wire.token(id, "<s>to", [1, 2]), wire.token(id, " be", []), wire.token(id, "", [3]))
    worker.write({"event": "done", "id": id, "count": 3})
    context.driver.expect_done("a", text="<s>to be", finish_reason=None)


_NEWER = {
    "command": {"cmd": "tokenize", "prompt": "x"},
    "field": {"cmd": "generate", "prompt": "x", "n": 2},
    "value": {"cmd": "chat", "messages": [{"role": "developer", "content": "Be brief."}]},
}


@variants(_NEWER, "V-3")
def sends_nothing_that_the_worker_does_not_list(context: CaseContext, command: dict[str, Any]) -> None:
    """Fail a request that uses features which the worker does not list, and send nothing of it."""
    worker = context.spawn()
    worker.write(wire.hello_done(worker.expect("hello").id, features=[]))
    context.driver.expect_start("started")
    context.ask("a", **command)
    context.ask("b")
    id = worker.expect("generate").id
    worker.write(wire.result_done(id))
    context.driver.expect_done("b")
    if not context.driver.has_ended("a", context.timeout):
        raise CaseFailure("a request that fails, since the worker cannot serve it", "it waits")
    context.driver.expect_failed("a", None)
