"""Checks of the result of every generation: its tokens, text, calls and finish reasons."""

from collections.abc import Callable
from typing import Any, Final

from lmwire_protocol import Chat, Generation, NamedTool

from ..violation import Violation
from .answers import ReceivedAnswer, ReceivedAnswers

RULES: Final = (
    "A-3",
    "K-2",
    "K-3",
    "K-5",
    "N-3",
    "N-5",
    "P-1",
    "P-3",
    "P-4",
    "Q-1",
    "R-4",
    "#the-generation-fields",
    "#the-result",
)
"""The rules that this module checks on every `done` of every generation."""

_INTERRUPTED: Final = ("cancelled", "timeout")
"""Finish reasons that can come at any moment, even while the engine hangs."""


def check(command: Generation, done: dict[str, Any], answers: ReceivedAnswers, line: bytes) -> None:
    """Check the `done` of a generation against the request and the events before it.

    Args:
        command: The request.
        done: The reply.
        answers: The answers from the events before it.
        line: The reply as the worker wrote it.

    Raises:
        Violation: They contradict each other.
    """
    ends = _ends(command, done, line)
    for answer, end in zip(answers.all, ends, strict=True):
        for holds in _CHECKS:
            holds(command, answer, end, line)
    _check_usage(answers, ends, done["usage"], line)
    _check_cached(command, done["usage"], line)
    if command.seed is not None and done["seed"] != command.seed:
        raise Violation(("#the-generation-fields",), f"the request's seed, {command.seed}", line)


def _ends(command: Generation, done: dict[str, Any], line: bytes) -> list[dict[str, Any]]:
    """Return the end of each choice, in the form of `choices`."""
    ends = done.get("choices")
    if command.n == 1:
        if ends is not None:
            raise Violation(("#the-result",), "no `choices`, as there is one answer", line)
        return [{**done, "completion_tokens": done["usage"]["completion_tokens"]}]
    if ends is None or len(ends) != command.n:
        raise Violation(("N-3", "#the-result"), f"`choices`, {command.n} of them", line)
    if (ends[0]["finish_reason"], ends[0].get("stop")) != (done["finish_reason"], done.get("stop")):
        raise Violation(("#the-result",), "`finish_reason` and `stop` as the first choice has them", line)
    return ends


def _check_tokens(command: Generation, answer: ReceivedAnswer, end: dict[str, Any], line: bytes) -> None:
    generated = end["completion_tokens"]
    hidden = generated - len(answer.token_ids)  # the end-of-turn token has no event
    if hidden not in ((0, 1) if _model_ended(end) else (0,)):
        raise Violation(("K-2",), f"as many completion tokens as token ids were shown, {len(answer.token_ids)}", line)
    if end["finish_reason"] == "timeout" and command.timeout_ms is None:
        raise Violation(("N-5",), "no `timeout`, as there is no timeout_ms", line)
    if command.max_tokens is not None and generated > command.max_tokens:
        raise Violation(("#the-generation-fields",), f"at most {command.max_tokens} tokens", line)
    early = command.ignore_eos or generated < command.min_tokens
    if early and end["finish_reason"] == "stop" and _model_ended(end) and not _is_constrained(command):
        raise Violation(("#the-generation-fields",), "no end of the turn before min_tokens, or with ignore_eos", line)


def _check_stop(command: Generation, answer: ReceivedAnswer, end: dict[str, Any], line: bytes) -> None:
    stop = end.get("stop")
    if stop is not None and (stop not in command.stop or end["finish_reason"] != "stop"):
        raise Violation(("#the-result",), "a `stop` that is one of the request's, with `finish_reason` `stop`", line)
    texts = list(answer.texts.values())
    if stop is not None and command.include_stop:
        if not any(text.endswith(stop) for text in texts):
            raise Violation(("K-3",), f"the stop string {stop!r} at the end of the text", line)
        texts = [text.removesuffix(stop) for text in texts]
    for string in command.stop:
        for text in texts:
            if string in text:
                raise Violation(("K-3",), f"no stop string in the text, but {string!r} is in {text!r}", line)


def _check_calls(command: Generation, answer: ReceivedAnswer, end: dict[str, Any], line: bytes) -> None:
    whole = [call for call in answer.calls if call.complete]
    reason = end["finish_reason"]
    if reason == "tool_calls" and not whole:
        raise Violation(("P-4",), "a whole call", line)
    if reason == "stop" and _model_ended(end) and whole:
        raise Violation(("P-4",), "`tool_calls`, as there was a whole call", line)
    if reason not in _INTERRUPTED and any(call.complete is None for call in answer.calls):
        raise Violation(("P-3", "Q-1"), "a last event of each call", line)
    if any(call.complete is False for call in answer.calls) and not answer.call_text:
        raise Violation(("P-3", "K-5"), "the text of the incomplete call, marked with `call`", line)
    if not isinstance(command, Chat):
        return
    if len(whole) > 1 and not command.parallel_tool_calls:
        raise Violation(("P-4",), "one call, as parallel_tool_calls is off", line)
    if command.tool_choice == "required" and reason == "stop" and _model_ended(end):
        raise Violation(("P-1",), "a call, as one is required", line)
    if isinstance(command.tool_choice, NamedTool) and any(call.name != command.tool_choice.name for call in whole):
        raise Violation(("P-1",), f"calls of {command.tool_choice.name!r} alone", line)


_CHECKS: Final[tuple[Callable[[Generation, ReceivedAnswer, dict[str, Any], bytes], None], ...]] = (
    _check_tokens,
    _check_stop,
    _check_calls,
)


def _check_usage(answers: ReceivedAnswers, ends: list[dict[str, Any]], usage: dict[str, Any], line: bytes) -> None:
    total = sum(end["completion_tokens"] for end in ends)
    if usage["completion_tokens"] != total:
        raise Violation(("#the-result",), f"the choices' completion tokens together, {total}", line)
    reasoning = usage.get("reasoning_tokens", 0)
    if reasoning > total or (reasoning == 0 and any(answer.texts.get("reasoning") for answer in answers.all)):
        raise Violation(("R-4",), "reasoning tokens if there is reasoning, at most the completion tokens", line)


def _check_cached(command: Generation, usage: dict[str, Any], line: bytes) -> None:
    if usage["cached_tokens"] > usage["prompt_tokens"]:
        raise Violation(("#the-result",), f"at most the prompt's tokens, {usage['prompt_tokens']}, as cached", line)
    if usage["cached_tokens"] and command.cache == "off":
        raise Violation(("A-3",), "no cached tokens, as `cache` is off", line)


def _model_ended(end: dict[str, Any]) -> bool:
    """Return whether the model ended its turn, or a call did."""
    return end["finish_reason"] in ("stop", "tool_calls") and end.get("stop") is None


def _is_constrained(command: Generation) -> bool:
    """Return whether a constraint can leave only the end of the turn to the model ([N-4])."""
    return command.format is not None or (isinstance(command, Chat) and bool(command.tools))
