"""The mock's lane by itself: choices, channels, tool calls, log-probabilities, and what it refuses."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from lmwire_protocol import FEATURES, Chat, Generate, Load, RequestError, Tokenize, decode_command
from lmwire_worker.lane import CallPiece, Failed, Outcome, Piece
from lmwire_worker.mock import MockEngine, MockLane
from lmwire_worker.mock.replies import Answer, Call, Failure, Reply
from lmwire_worker.mock.scenario import Match, Rule, Script

Json = dict[str, Any]
KEY = 7
WEATHER = {"type": "function", "function": {"name": "weather"}}


@dataclass
class Told:
    """What a choice has told."""

    content: str = ""
    reasoning: str = ""
    calls: dict[int, list[CallPiece]] = field(default_factory=lambda: defaultdict(list))
    pieces: list[Piece] = field(default_factory=list)
    finish_reason: str | None = None

    @property
    def whole_calls(self) -> list[tuple[str | None, str]]:
        return [
            (pieces[0].name, "".join(piece.arguments for piece in pieces))
            for pieces in self.calls.values()
            if pieces[-1].complete
        ]


def gather(outcomes: Sequence[Outcome], choice: int = 0) -> Told:
    told = Told()
    for outcome in outcomes:
        if isinstance(outcome, CallPiece) and outcome.choice == choice:
            assert told.finish_reason is None
            told.calls[outcome.index].append(outcome)
        elif isinstance(outcome, Piece) and outcome.choice == choice:
            assert told.finish_reason is None
            told.pieces.append(outcome)
            setattr(told, outcome.channel, getattr(told, outcome.channel) + outcome.text)
            told.finish_reason = outcome.finish_reason
    return told


def lane(*rules: Rule) -> MockLane:
    return MockLane(Load(path="mock"), 0, Script(rules))


def play(mock: MockLane, request: Generate | Chat, *, raw: bool = False, steps: int = 100) -> list[Outcome]:
    """What a request gives in so many steps, or up to its end."""
    mock.add(KEY, request, 1, raw=raw)
    outcomes: list[Outcome] = []
    ended = 0
    for _ in range(steps):
        came = mock.step()
        outcomes += came
        ended += sum(1 for outcome in came if isinstance(outcome, Piece) and outcome.finish_reason is not None)
        if ended == request.n:
            return outcomes
    return outcomes


def chat(text: str = "a b", **fields: Any) -> Chat:
    command = decode_command({"cmd": "chat", "messages": [{"role": "user", "content": text}], **fields})
    assert isinstance(command, Chat)
    return command


def answer(reply: Reply, request: Generate | Chat | None = None, *, match: Match = Match()) -> Told:  # noqa: B008
    return gather(play(lane(Rule(reply, match)), request or chat()))


def refused(request: Generate | Chat, *rules: Rule) -> RequestError:
    with pytest.raises(RequestError) as error:
        lane(*rules).add(KEY, request, 1)
    return error.value


# Choices.


def test_each_choice_is_an_answer_with_its_own_end() -> None:
    reply = Reply(choices=[Answer(text="one two"), Answer(text="uno", finish_reason="length")])
    outcomes = play(lane(Rule(reply)), Generate(prompt="x", n=3))
    told = [gather(outcomes, choice) for choice in range(3)]
    assert [choice.content for choice in told] == ["one two", "uno", "one two"]
    assert [choice.finish_reason for choice in told] == ["stop", "length", "stop"]


def test_choices_go_forward_side_by_side() -> None:
    outcomes = play(lane(), Generate(prompt="a b", n=2))
    pieces = [outcome for outcome in outcomes if isinstance(outcome, Piece)]
    assert [(piece.choice, piece.text) for piece in pieces] == [(0, "a "), (1, "a "), (0, "b"), (1, "b")]


def test_a_choice_that_a_stop_string_ends_lets_the_others_go_on() -> None:
    reply = Reply(choices=[Answer(text="a stop b"), Answer(text="a b c")])
    outcomes = play(lane(Rule(reply)), Generate(prompt="x", n=2, stop=["stop"]))
    first, second = gather(outcomes, 0), gather(outcomes, 1)
    assert (first.content, first.pieces[-1].stop) == ("a ", "stop")
    assert (second.content, second.pieces[-1].stop) == ("a b c", None)


def test_the_lane_has_room_again_when_the_last_choice_has_ended() -> None:
    mock = lane()
    for _ in range(2):
        play(mock, Generate(prompt="a b", n=2))


def test_an_error_comes_when_all_choices_have_said_what_they_say() -> None:
    mock = lane(Rule(Reply(choices=[Answer(text="a"), Answer(text="a b c")], error=Failure("engine_error"))))
    mock.add(KEY, Generate(prompt="x", n=2), 1)
    outcomes: list[Outcome] = []
    while not (outcomes and isinstance(outcomes[-1], Failed)):
        outcomes += mock.step()
    assert [gather(outcomes, choice).content for choice in range(2)] == ["a", "a b c"]


# Channels.


def test_a_thought_comes_first_and_is_counted() -> None:
    told = answer(Reply(reasoning="Let me think.", text="Four."))
    assert (told.reasoning, told.content) == ("Let me think.", "Four.")
    assert [piece.thought for piece in told.pieces] == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("fields", "thought"),
    [({}, "x y z"), ({"reasoning": "off"}, ""), ({"reasoning_budget": 2}, "x y "), ({"reasoning_budget": 0}, "")],
)
def test_the_thought_keeps_to_the_request(fields: Json, thought: str) -> None:
    told = answer(Reply(reasoning="x y z", text="done"), chat(**fields))
    assert (told.reasoning, told.content) == (thought, "done")


def test_one_that_has_to_think_thinks_the_prompt() -> None:
    told = answer(Reply(), chat("to be", reasoning="on"))
    assert (told.reasoning, told.content) == ("to be", "to be")


def test_what_generate_gives_is_content() -> None:
    assert answer(Reply(reasoning="Hm. ", text="Four."), Generate(prompt="x")).content == "Hm. Four."


def test_a_stop_string_is_found_in_a_thought_and_never_across_its_end() -> None:
    assert answer(Reply(reasoning="a b c"), chat(stop=["b "])).reasoning == "a "
    told = answer(Reply(reasoning="end", text="less"), chat(stop=["endless"]))
    assert (told.reasoning, told.content) == ("end", "less")


# Tool calls.

CALL = Call("weather", {"city": "Rome", "days": 2})
TEXT = '{"city":"Rome","days":2}'
BROKEN = Call("weather", '{"city": tr')


def with_tools(**fields: Any) -> Chat:
    return chat(tools=[WEATHER], **fields)


def test_a_call_comes_in_pieces() -> None:
    told = answer(Reply(text="I look.", tool_calls=[CALL]), with_tools())
    pieces = told.calls[0]
    assert [piece.arguments for piece in pieces] == ["", '{"city":', '"Rome",', '"days":', "2}", ""]
    assert [piece.name for piece in pieces] == ["weather", *[None] * 5]
    assert [piece.complete for piece in pieces] == [*[None] * 5, True]
    assert pieces[0].call_id and not pieces[1].call_id
    assert (told.content, told.finish_reason) == ("I look.", "tool_calls")


def test_each_token_of_a_call_is_told_and_counted() -> None:
    told = answer(Reply(tool_calls=[CALL]), with_tools())
    assert [(piece.text, piece.token_ids, piece.generated) for piece in told.pieces if piece.generated] == [
        ("", [id], 1) for id in range(6)
    ]


def test_calls_have_ids_of_their_own_unless_they_are_given() -> None:
    calls = answer(Reply(tool_calls=[CALL, CALL, Call("weather", id="mine")]), with_tools()).calls
    ids = [pieces[0].call_id for pieces in calls.values()]
    assert len(set(ids)) == 3
    assert ids[2] == "mine"


def test_a_call_that_is_no_json_comes_back_as_text() -> None:
    told = answer(Reply(text="Hm. ", tool_calls=[BROKEN]), with_tools())
    assert told.calls[0][-1].complete is False
    assert told.content == 'Hm. {"name":"weather","arguments":{"city": tr}'
    assert told.finish_reason == "stop"


def test_a_call_that_is_cut_off_comes_back_as_text() -> None:
    told = answer(Reply(tool_calls=[CALL]), with_tools(max_tokens=2))
    assert [piece.complete for piece in told.calls[0]] == [None, None, False]
    assert (told.content, told.finish_reason) == ('{"name":"weather","arguments":{"city":', "length")


def test_a_cancel_gives_back_what_may_have_become_a_stop_string() -> None:
    mock = lane(Rule(Reply(text="a st", then="wait")))
    assert gather(play(mock, chat(stop=["stop"]), steps=5)).content == "a "
    assert gather(mock.remove(KEY)).content == "st"


def test_a_cancel_within_a_call_gives_it_back() -> None:
    mock = lane(Rule(Reply(tool_calls=[CALL])))
    before = play(mock, with_tools(), steps=4)
    told = gather([*before, *mock.remove(KEY)])
    assert told.calls[0][-1].complete is False
    assert told.content.startswith('{"name":"weather"')
    assert told.finish_reason is None


def test_a_text_that_may_become_a_stop_string_comes_before_the_call() -> None:
    outcomes = play(lane(Rule(Reply(text="st", tool_calls=[CALL]))), with_tools(stop=["stop"]))
    kinds = [type(outcome) for outcome in outcomes if isinstance(outcome, CallPiece) or getattr(outcome, "text", "")]
    assert kinds[:2] == [Piece, CallPiece]


@pytest.mark.parametrize("request_", [chat(), with_tools(tool_choice="none"), Generate(prompt="x")])
def test_a_call_that_nobody_reads_is_text(request_: Generate | Chat) -> None:
    told = answer(Reply(tool_calls=[CALL]), request_)
    assert told.content == f'{{"name":"weather","arguments":{TEXT}}}'
    assert (told.calls, told.finish_reason) == ({}, "stop")


def test_all_is_content_when_nothing_is_told_apart() -> None:
    reply = Reply(reasoning="Hm. ", text="I look. ", tool_calls=[CALL])
    told = gather(play(lane(Rule(reply)), with_tools(), raw=True))
    assert told.content == f'Hm. I look. {{"name":"weather","arguments":{TEXT}}}'
    assert sum(piece.thought for piece in told.pieces) == 0


def test_without_parallel_calls_the_answer_ends_behind_the_first_whole_one() -> None:
    reply = Reply(tool_calls=[BROKEN, CALL, CALL])
    assert len(answer(reply, with_tools()).whole_calls) == 2
    assert answer(reply, with_tools(parallel_tool_calls=False)).whole_calls == [("weather", TEXT)]


@pytest.mark.parametrize("tool_choice", ["required", {"name": "weather"}])
def test_a_call_that_has_to_come_needs_a_reply_that_has_it(tool_choice: Any) -> None:
    request = with_tools(tool_choice=tool_choice)
    assert answer(Reply(tool_calls=[CALL]), request).whole_calls == [("weather", TEXT)]
    for reply in (Reply(), Reply(text="No."), Reply(tool_calls=[BROKEN]), Reply(choices=[Answer(text="No.")])):
        error = refused(request, Rule(reply))
        assert (error.code, error.field) == ("unsupported", "tool_choice")


def test_another_call_than_the_named_one_is_refused() -> None:
    request = with_tools(tool_choice={"name": "weather"})
    assert refused(request, Rule(Reply(tool_calls=[CALL, Call("news")]))).field == "tool_choice"


def test_arguments_that_must_fit_a_schema_need_a_rule_that_looks_at_the_tools() -> None:
    strict = {"type": "function", "function": {"name": "weather", "strict": True}}
    reply = Reply(tool_calls=[CALL])
    error = refused(chat(tools=[strict]), Rule(reply))
    assert (error.code, error.field) == ("unsupported", "tools[0].function.strict")
    assert answer(reply, chat(tools=[strict]), match=Match(has=["tools"])).whole_calls == [("weather", TEXT)]


# Log-probabilities.


def test_every_token_is_certain_and_names_as_many_others_as_asked_for() -> None:
    told = answer(Reply(text="a b"), Generate(prompt="x", logprobs=True, top_logprobs=3))
    logprobs = [logprob for piece in told.pieces for logprob in piece.logprobs or []]
    assert [(logprob.token_id, logprob.token, logprob.logprob) for logprob in logprobs] == [(0, "a ", 0), (1, "b", 0)]
    assert [[(other.token, other.logprob) for other in logprob.top] for logprob in logprobs] == [
        [("a ", 0.0), ("b", -1000.0), ("<2>", -2000.0)],
        [("b", 0.0), ("<2>", -1000.0), ("<3>", -2000.0)],
    ]


@pytest.mark.parametrize("top", [0, 1, 20])
def test_the_others_are_counted(top: int) -> None:
    told = answer(Reply(), Generate(prompt="x", logprobs=True, top_logprobs=top))
    assert [len(logprob.top) for piece in told.pieces for logprob in piece.logprobs or []] == [top]


def test_every_token_id_has_one_those_of_calls_too() -> None:
    told = answer(Reply(reasoning="hm", text="x st", tool_calls=[CALL]), with_tools(logprobs=True, stop=["stop"]))
    assert all(len(piece.logprobs or []) == len(piece.token_ids) for piece in told.pieces)
    assert answer(Reply()).pieces[0].logprobs is None


# How long, and to what end.


@pytest.mark.parametrize(
    ("fields", "text", "reason"),
    [
        ({"min_tokens": 5}, "x y x y x ", "stop"),
        ({"min_tokens": 1}, "x y ", "stop"),
        ({"ignore_eos": True, "max_tokens": 3}, "x y x ", "length"),
        ({"ignore_eos": True, "stop": ["y x y"]}, "x ", "stop"),
        ({"stop": ["y"], "include_stop": True}, "x y", "stop"),
        ({"max_tokens": 0}, "", "length"),
    ],
)
def test_an_answer_is_as_long_as_it_has_to_be(fields: Json, text: str, reason: str) -> None:
    told = answer(Reply(text="x y "), chat(**fields))
    assert (told.content, told.finish_reason) == (text, reason)


def test_an_empty_answer_that_may_not_end_echoes() -> None:
    assert answer(Reply(tokens=[]), chat("a b ", min_tokens=3)).content == "a b a "


def test_what_changes_probabilities_changes_nothing_for_one_that_is_certain() -> None:
    settings: Json = {
        "temperature": 100,
        "top_p": 0.1,
        "xtc_probability": 1,
        "repetition_penalty": 10,
        "presence_penalty": 2,
        "frequency_penalty": 2,
        "logit_bias": {"0": -100},
        "seed": 3,
    }
    assert answer(Reply(), chat("a a a", **settings)).content == "a a a"


# Prompts.


def test_a_prefix_is_of_the_prompt_and_not_of_the_answer() -> None:
    request = chat("a b", prefix="Sure, here")
    assert lane().add(KEY, request, 1).prompt_tokens == 3
    assert answer(Reply(), request).content == "a b"


def test_a_conversation_can_end_with_nothing_said() -> None:
    assert answer(Reply(), chat("")).finish_reason == "stop"


def test_an_image_is_told_as_a_note_or_refused() -> None:
    parts = [{"type": "text", "text": "See: "}, {"type": "image", "media": {"url": "http://x/y.png"}}]
    fields: Json = {"messages": [{"role": "user", "content": parts}]}
    assert answer(Reply(), chat(**fields)).content == "See: \n[1 image was attached]"
    error = refused(chat(**fields, strict_media=True))
    assert (error.code, error.field) == ("unsupported", "messages[0].content[1]")


def test_a_message_that_calls_cannot_be_gone_on_with() -> None:
    call = {"id": "1", "name": "weather", "arguments": {}}
    messages = [{"role": "assistant", "tool_calls": [call]}]
    assert refused(chat(messages=messages, add_generation_prompt=False)).field == "add_generation_prompt"
    assert answer(Reply(text="So."), chat(messages=messages)).content == "So."


def test_words_are_tokens() -> None:
    mock = lane()
    assert mock.tokenize(Tokenize(prompt="to be or")) == ([0, 1, 2], "to be or")
    messages = chat("not to").messages
    assert mock.tokenize(Tokenize(messages=messages, prefix=" be")) == ([0, 1, 2], "not to be")


# What there is not.

UNSERVED = {
    "format": {"type": "json_object"},
    "chat_template": "{{ messages }}",
    "template_args": {"enable_thinking": False},
}


@pytest.mark.parametrize("name", UNSERVED)
def test_what_it_cannot_do_is_refused_unless_a_rule_looks_at_it(name: str) -> None:
    request = chat(**{name: UNSERVED[name]})
    for rules in ([], [Rule(Reply(text="{}"))]):
        error = refused(request, *rules)
        assert (error.code, error.field) == ("unsupported", name)
    assert answer(Reply(text="{}"), request, match=Match(has=[name])).content == "{}"


def test_a_template_of_the_hosts_own_cannot_be_counted() -> None:
    with pytest.raises(RequestError) as error:
        lane().tokenize(Tokenize(messages=chat().messages, chat_template="x"))
    assert (error.value.code, error.value.field) == ("unsupported", "chat_template")


def test_a_bias_for_a_token_that_there_is_not_is_refused() -> None:
    error = refused(chat(logit_bias={str(1 << 20): 1}))
    assert (error.code, error.field) == ("invalid_request", f"logit_bias.{1 << 20}")


def test_the_features_are_what_is_served() -> None:
    missing = {
        *("load.adapter_path", "load.draft_path", "load.kv_bits"),
        *("generate.format", "chat.format", "chat.chat_template", "chat.template_args"),
    }
    assert set(MockEngine().features) == set(FEATURES) - missing
    script = Script([Rule(Reply(text="{}"), Match(cmd="chat", has=["format"]))])
    assert set(MockEngine(script).features) == set(FEATURES) - missing | {"chat.format"}


def test_the_model_can_what_the_lane_can() -> None:
    opened = MockEngine().open(Load(path="mock"), lambda *progress: None, lambda: None)
    assert opened.model.capabilities == ["generate", "chat", "tokenize", "embed", "transcribe"]
