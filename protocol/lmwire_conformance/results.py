"""What holds for the account of every generation: its tokens, its text, its end."""

from typing import Any, Final

from lmwire_protocol import Generation

from .violation import Violation

RULES: Final = ("K-2", "K-3", "#the-generation-fields", "#the-result")
"""The rules that are checked here, on every `done` of every generation."""


def check(command: Generation, done: dict[str, Any], text: str, token_ids: list[int], line: bytes) -> None:
    """Holds the `done` of a generation against the request and against the token events before it.

    Raises:
        Violation: they do not fit together.
    """
    reason, stop = done["finish_reason"], done.get("stop")
    generated = done["usage"]["completion_tokens"]
    hidden = generated - len(token_ids)  # the end-of-turn token has no event
    if hidden not in ((0, 1) if reason == "stop" and stop is None else (0,)):
        raise Violation(("K-2",), f"as many completion tokens as token ids were shown, {len(token_ids)}", line)
    for string in command.stop:
        if string in text:
            raise Violation(("K-3",), f"no stop string in the text, but {string!r} is in {text!r}", line)
    if stop is not None and (stop not in command.stop or reason != "stop"):
        raise Violation(("#the-result",), "a `stop` that is one of the request's, with `finish_reason` `stop`", line)
    if command.max_tokens is not None and generated > command.max_tokens:
        raise Violation(("#the-generation-fields",), f"at most {command.max_tokens} tokens", line)
    if command.seed is not None and done["seed"] != command.seed:
        raise Violation(("#the-generation-fields",), f"the request's seed, {command.seed}", line)
