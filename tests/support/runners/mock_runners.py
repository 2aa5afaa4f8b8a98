"""The mock's runner by itself, and the output of a request in it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from lmwire_protocol import Chat, Generate, Load, RequestError, decode_command
from lmwire_worker.engine.interface import RunnerEvent, TokenDelta, ToolCallDelta
from lmwire_worker.mock import MockRunner
from lmwire_worker.mock.replies import Reply
from lmwire_worker.mock.scenario import Match, Rule, Script

KEY = 7


@dataclass
class Collected:
    """Output of one choice."""

    content: str = ""
    reasoning: str = ""
    calls: dict[int, list[ToolCallDelta]] = field(default_factory=lambda: defaultdict(list))
    deltas: list[TokenDelta] = field(default_factory=list)
    finish_reason: str | None = None

    @property
    def whole_calls(self) -> list[tuple[str | None, str]]:
        return [
            (deltas[0].name, "".join(delta.arguments for delta in deltas))
            for deltas in self.calls.values()
            if deltas[-1].complete
        ]


def gather(outcomes: Sequence[RunnerEvent], choice: int = 0) -> Collected:
    """Return the output of one choice in these events."""
    result = Collected()
    for outcome in outcomes:
        if isinstance(outcome, ToolCallDelta) and outcome.choice == choice:
            assert result.finish_reason is None
            result.calls[outcome.index].append(outcome)
        elif isinstance(outcome, TokenDelta) and outcome.choice == choice:
            assert result.finish_reason is None
            result.deltas.append(outcome)
            setattr(result, outcome.channel, getattr(result, outcome.channel) + outcome.text)
            result.finish_reason = outcome.finish_reason
    return result


def runner(*rules: Rule) -> MockRunner:
    """Return a runner that answers by these rules."""
    return MockRunner(Load(path="mock"), 0, Script(rules))


def play(mock: MockRunner, request: Generate | Chat, *, raw: bool = False, steps: int = 100) -> list[RunnerEvent]:
    """Return the events of a request up to its end, but of at most `steps` steps."""
    mock.add(KEY, request, 1, plain_text=raw)
    outcomes: list[RunnerEvent] = []
    ended = 0
    for _ in range(steps):
        came = mock.step()
        outcomes += came
        ended += sum(1 for outcome in came if isinstance(outcome, TokenDelta) and outcome.finish_reason is not None)
        if ended == request.n:
            return outcomes
    return outcomes


def chat(text: str = "a b", **fields: Any) -> Chat:
    """Return a conversation of one message."""
    command = decode_command({"cmd": "chat", "messages": [{"role": "user", "content": text}], **fields})
    assert isinstance(command, Chat)
    return command


def answer(reply: Reply, request: Generate | Chat | None = None, match: Match | None = None) -> Collected:
    """Return the output of the first choice if the mock has this reply."""
    return gather(play(runner(Rule(reply, match or Match())), request or chat()))


def refused(request: Generate | Chat, *rules: Rule) -> RequestError:
    """Return the error with which a runner with these rules refuses a request."""
    with pytest.raises(RequestError) as error:
        runner(*rules).add(KEY, request, 1)
    return error.value
