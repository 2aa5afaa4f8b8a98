"""What an answer is besides text: choices, channels, log-probabilities; and what a worker has to list for them."""

from typing import Any

from .. import lines
from ..failure import Failure
from ..play import Play
from .registry import case, variants

_THOUGHT = (0, "reasoning")


@case("N-3", "K-1", "O-1")
def choices_are_told_apart(play: Play) -> None:
    """The events of several answers interleave in any way, and each has its own text and its own end."""
    worker = play.start()
    id = play.request("a", n=3).id
    for number in range(5):
        for choice in (2, 0, 1):
            worker.say(lines.token(id, f"{choice}.{number} ", choice=choice))
    worker.say(lines.token(id, "more"), lines.result(id, "stop", "length", "stop"))
    texts = [f"{choice}." + f" {choice}.".join(map(str, range(5))) + " " for choice in range(3)]
    play.driver.expect_done(
        "a",
        text=f"{texts[0]}more",
        texts={(1, "content"): texts[1], (2, "content"): texts[2]},
        choices=["stop", "length", "stop"],
    )


@case("N-3", "N-6", "T-1")
def an_error_ends_all_choices(play: Play) -> None:
    """There is one terminal for all."""
    worker = play.start()
    id = play.request("a", n=2).id
    worker.say(lines.token(id, "so far"), lines.error(id, "engine_error"))
    play.driver.expect_failed("a", "engine_error", text="so far")


@case("C-3", "C-5", "N-3")
def a_choice_that_has_ended_keeps_its_end(play: Play) -> None:
    """A cancel ends those that go on."""
    worker = play.start()
    id = play.request("a", n=2).id
    worker.say(lines.token(id, "a"), lines.token(id, "b", choice=1))
    play.driver.expect_text("a", "a")
    play.driver.do(do="cancel", name="a")
    cancel = worker.expect("cancel")
    worker.say(lines.cancelled(cancel.id, 1), lines.result(id, "stop", "cancelled"))
    play.driver.expect_done("a", text="a", texts={(1, "content"): "b"}, choices=["stop", "cancelled"])


@variants({"tool-calls": "tool_calls", "timeout": "timeout", "capacity": "capacity"}, "P-4", "N-5", "N-9")
def a_finish_reason_is_passed_on(play: Play, reason: str) -> None:
    """Those that are newer than 1.0, too."""
    worker = play.start()
    id = play.request("a", timeout_ms=60_000).id
    worker.say(lines.token(id, "a"), lines.result(id, reason))
    play.driver.expect_done("a", text="a", finish_reason=reason)


@case("K-1", "K-5", "K-6")
def channels_are_told_apart(play: Play) -> None:
    """A thought is no part of the answer, wherever it comes."""
    worker = play.start()
    id = play.request_chat("a", reasoning="on").id
    worker.say(lines.token(id, "", channel="reasoning"), lines.token(id, "Let me ", channel="reasoning"))
    worker.say(lines.token(id, "see.\n", channel="reasoning"))
    play.driver.expect_text("a", "Let me see.\n", _THOUGHT)
    worker.say(lines.token(id, "", channel="reasoning"), lines.token(id, "\nFour"))
    worker.say(lines.token(id, " Or", channel="reasoning"), lines.token(id, ".", channel="content"), lines.result(id))
    play.driver.expect_done("a", text="\nFour.", texts={_THOUGHT: "Let me see.\n Or"})


@case("K-5", "N-3")
def choices_and_channels_mix(play: Play) -> None:
    """Each choice has its own channels."""
    worker = play.start()
    id = play.request_chat("a", reasoning="on", n=2).id
    worker.say(lines.token(id, "hm", channel="reasoning"), lines.token(id, "ah", choice=1, channel="reasoning"))
    worker.say(lines.token(id, "four", choice=1), lines.token(id, "m", channel="reasoning"), lines.token(id, "4"))
    worker.say(lines.result(id, "stop", "stop"))
    texts = {_THOUGHT: "hmm", (1, "reasoning"): "ah", (1, "content"): "four"}
    play.driver.expect_done("a", text="4", texts=texts, choices=["stop", "stop"])


@case("V-4")
def text_of_an_unknown_channel_is_not_the_answer(play: Play) -> None:
    """Nor is it a thought. The host may show it as what it is, or not at all."""
    worker = play.start()
    id = play.request_chat("a").id
    worker.say(lines.token(id, "a"), lines.token(id, "no", channel="new_channel"), lines.token(id, "b"))
    worker.say(lines.result(id))
    play.driver.expect_done("a", text="ab")


@case("V-4")
def an_unknown_finish_reason_of_a_choice_reads_as_other(play: Play) -> None:
    """As that of the whole does."""
    worker = play.start()
    id = play.request("a", n=2).id
    worker.say(lines.result(id, "stop", "new_reason"))
    play.driver.expect_done("a", choices=["stop", "other"])


@case("K-7", "N-3")
def log_probabilities_arrive(play: Play) -> None:
    """One for each token, of each choice, with as many others as were asked for."""
    worker = play.start()
    id = play.request("a", logprobs=True, top_logprobs=2, n=2).id
    half = {"bytes": [0xE6, 0xBC]}
    first = lines.logprob(7, " a", -0.25, top=[lines.logprob(7, " a", -0.25), lines.logprob(8, "\ufffd", -1.5, **half)])
    second = lines.logprob(8, "\ufffd", -1e-07, **half)
    unlikely = {"token_id": 9, "token": "z", "top": [lines.logprob(1, "y", 0.0), lines.logprob(2, "x", None)]}
    worker.say(
        lines.token(id, " a", [7], logprobs=[first]),
        lines.token(id, "z", [9], choice=1, logprobs=[unlikely]),
        lines.token(id, "", [8], logprobs=[second]),
        lines.token(id, "b", []),
        lines.token(id, "cd", [7, 9], logprobs=[first, unlikely]),
        lines.result(id, "stop", "stop"),
    )
    play.driver.expect_done(
        "a",
        text=" abcd",
        texts={(1, "content"): "z"},
        choices=["stop", "stop"],
        logprobs={0: [first, second, first, unlikely], 1: [unlikely]},
    )


@case("F-16", "V-4")
def what_is_new_can_be_null_or_have_unknown_fields(play: Play) -> None:
    """As all the others."""
    worker = play.start()
    id = play.request("a", logprobs=True, n=2).id
    nulls = {"choice": None, "channel": None, "new": {"deep": 1}}
    logprob = lines.logprob(1, "a", -1.0)
    odd = {**logprob, "bytes": None, "top": None, "new": [1]}
    done = lines.result(id, "stop", "stop")
    done["usage"]["reasoning_tokens"] = None
    ends = [{**choice, "stop": None, "new": 1} for choice in done["choices"]]
    worker.say(lines.token(id, "a", logprobs=[odd], **nulls), lines.token(id, "b", [], logprobs=None))
    worker.say({**done, "choices": ends})
    play.driver.expect_done("a", text="ab", choices=["stop", "stop"], logprobs={0: [logprob]})


@case("K-1")
def a_prompt_can_be_counted(play: Play) -> None:
    """The texts of `tokenize`, joined, are the prompt."""
    worker = play.start()
    id = play.request("a", "tokenize", prompt="to be").id
    worker.say(lines.token(id, "<s>to", [1, 2]), lines.token(id, " be", []), lines.token(id, "", [3]))
    worker.say({"event": "done", "id": id, "count": 3})
    play.driver.expect_done("a", text="<s>to be", finish_reason=None)


_NEWER = {
    "command": {"cmd": "tokenize", "prompt": "x"},
    "field": {"cmd": "generate", "prompt": "x", "n": 2},
    "value": {"cmd": "chat", "messages": [{"role": "developer", "content": "Be brief."}]},
}


@variants(_NEWER, "V-3")
def what_is_not_listed_is_not_sent(play: Play, command: dict[str, Any]) -> None:
    """A worker whose `features` lack what a request uses is not asked; the request fails."""
    worker = play.spawn()
    worker.say(lines.greeting(worker.expect("hello").id, features=[]))
    play.driver.expect_start("started")
    play.ask("a", **command)
    play.ask("b")
    id = worker.expect("generate").id
    worker.say(lines.result(id))
    play.driver.expect_done("b")
    if not play.driver.has_ended("a", play.timeout):
        raise Failure("a request that fails, for the worker cannot serve it", "it waits")
    play.driver.expect_failed("a", None)
