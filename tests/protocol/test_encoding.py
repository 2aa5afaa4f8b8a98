"""The lines of workers and clients are short, contain whole text, and start with `id`."""

import base64
import json
from array import array
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_protocol import (
    CODES,
    Cancel,
    Chat,
    Command,
    Generate,
    Hello,
    Message,
    Ping,
    RequestError,
    TextPart,
    decode_command,
    decode_object,
    encode_calls,
    encode_command,
    encode_embedding,
    encode_event,
    encode_prompt_logprobs,
    encode_tokens,
    error_event,
    events,
    limits,
    truncate_text,
)
from lmwire_protocol.framing import Line

HEAVY = st.sampled_from(["a", "\x00", '"', "\\", "é", "\u0085", "\u2028", "\u2029", "\uffff", "😀"])
TEXTS = st.one_of(st.text(), st.builds(lambda unit, times: unit * times, HEAVY, st.integers(0, 20_000)))
IDS = st.text(min_size=1, max_size=32).filter(lambda text: len(text.encode()) <= limits.ID_BYTES)
TOKEN_IDS = st.one_of(
    st.lists(st.integers(0, 9_999_999), max_size=20),
    st.builds(lambda value, times: [value] * times, st.integers(0, 9_999_999), st.integers(0, 10_000)),
)
COMMANDS = st.sampled_from(
    [
        Ping(),
        Hello(client="x"),
        Cancel(target='"'),
        Generate(prompt="a\u2028b\nc", top_k=3, stop=["\n"]),
        Generate(prompt=[1, 2]),
        Chat(messages=[Message(role="user", content=[TextPart(text="é")])], max_tokens=0, temperature=0.5),
    ]
)


def lines_of(id: str, text: str, token_ids: list[int], **more: Any) -> list[bytes]:
    return encode_tokens(events.Token(id=id, token=text, token_ids=token_ids, **more)).splitlines(keepends=True)


def tokens(lines: list[bytes]) -> list[events.Token]:
    return [msgspec.json.decode(line, type=events.Token) for line in lines]


@given(IDS, TEXTS, TOKEN_IDS)
def test_every_token_line_is_short_and_splits_nowhere(id: str, text: str, token_ids: list[int]) -> None:
    for line in lines_of(id, text, token_ids):
        assert len(line) < limits.LINE_OUT_BYTES
        assert line.endswith(b"\n")
        assert len(line.decode().splitlines()) == 1


@given(IDS, TEXTS, TOKEN_IDS)
def test_text_and_ids_come_together_again(id: str, text: str, token_ids: list[int]) -> None:
    deltas = tokens(lines_of(id, text, token_ids))
    assert "".join(delta.token for delta in deltas) == text
    assert [token for delta in deltas for token in delta.token_ids] == token_ids
    assert {delta.id for delta in deltas} <= {id}


@given(IDS, TEXTS, TOKEN_IDS)
def test_no_event_exceeds_its_own_limits(id: str, text: str, token_ids: list[int]) -> None:
    for delta in tokens(lines_of(id, text, token_ids)):
        assert len(msgspec.json.encode(delta.token)) <= limits.TEXT_BYTES
        assert len(delta.token_ids) <= limits.TOKEN_IDS


ENTRIES = st.builds(
    lambda unit, tops: events.Logprob(1, unit * 256, -0.5, top=[events.TopLogprob(2, unit * 256, -1.0)] * tops),
    HEAVY,
    st.integers(0, 20),
)


@given(TEXTS, st.lists(ENTRIES, max_size=40))
def test_log_probabilities_stay_with_their_tokens_in_lines_that_are_short(
    text: str, logprobs: list[events.Logprob]
) -> None:
    ids = list(range(len(logprobs)))
    lines = lines_of("\x01" * 128, text, ids, choice=15, channel="reasoning", logprobs=logprobs)
    deltas = tokens(lines)
    assert max(map(len, lines)) < limits.LINE_OUT_BYTES
    assert all(len(delta.token_ids) == len(delta.logprobs or ()) for delta in deltas)
    assert all(delta.logprobs != [] for delta in deltas)  # absent where there are none
    assert "".join(delta.token for delta in deltas) == text
    assert [entry for delta in deltas for entry in delta.logprobs or ()] == logprobs
    assert {(delta.choice, delta.channel) for delta in deltas} == {(15, "reasoning")}


def test_tokens_without_their_log_probabilities_are_written() -> None:
    deltas = tokens(lines_of("1", "ab", [1, 2, 3], logprobs=[events.Logprob(1, "a", -0.5)]))
    assert [token_id for delta in deltas for token_id in delta.token_ids] == [1, 2, 3]


@given(TEXTS)
def test_a_calls_arguments_come_together_again_and_its_end_comes_last(arguments: str) -> None:
    call = events.ToolCall(id="1", index=2, call_id="c", name="look", arguments=arguments, complete=True)
    lines = encode_calls(call).splitlines(keepends=True)
    deltas = [msgspec.json.decode(line, type=events.ToolCall) for line in lines]
    assert max(map(len, lines)) < limits.LINE_OUT_BYTES
    assert "".join(delta.arguments for delta in deltas) == arguments
    assert [delta.complete for delta in deltas] == [*[None] * (len(deltas) - 1), True]
    assert [(delta.call_id, delta.name) for delta in deltas] == [("c", "look"), *[(None, None)] * (len(deltas) - 1)]


@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize("size", [1, 2048, 2049, 8192])
def test_a_vectors_parts_come_in_order_in_short_lines(size: int, numbers: bool) -> None:
    vector = array("f", [-1.2345678e-38 / (at + 1) for at in range(size)])
    lines = encode_embedding("\x01" * 128, 2047, vector, numbers=numbers).splitlines(keepends=True)
    deltas = [msgspec.json.decode(line, type=events.Embedding) for line in lines]
    assert max(map(len, lines)) < limits.LINE_OUT_BYTES
    assert {(delta.index, delta.dims) for delta in deltas} == {(2047, size)}
    packed = array("f")
    for delta in deltas:
        assert delta.offset == len(packed)
        assert isinstance(delta.embedding, list) == numbers
        if isinstance(delta.embedding, str):
            packed.frombytes(base64.b64decode(delta.embedding))
        else:
            packed.extend(delta.embedding)
    assert packed == vector


def test_the_longest_segment_with_the_most_words_is_a_line() -> None:
    longest = events.Word("\x01" * 10, 12345.67, 12345.67)
    segment = events.Segment(
        id="\x01" * 128, index=99_999, start_s=1e4 / 3, end_s=1e4 / 3, text="\u2028" * 2000, words=[longest] * 200
    )
    assert len(encode_event(segment)) < limits.LINE_OUT_BYTES


def test_the_longest_text_with_the_most_ids_stays_under_the_limit() -> None:
    lines = lines_of("\x01" * 128, "\u2028" * 10_000, [9_999_999] * 10_000)
    assert max(map(len, lines)) < limits.LINE_OUT_BYTES


@given(TEXTS, TEXTS, IDS, IDS)
def test_an_error_always_fits_into_the_space_for_a_terminal(message: str, field: str, id: str, bad_id: str) -> None:
    for code in CODES:
        line = encode_event(error_event(RequestError(code, message, field=field), id=id, bad_id=bad_id))
        assert len(line) <= limits.TERMINAL_BYTES


@given(TEXTS)
def test_only_a_sentence_that_is_too_long_is_cut_and_ends_in_an_ellipsis(text: str) -> None:
    cut = truncate_text(text)
    assert len(msgspec.json.encode(cut)) <= limits.ERROR_BYTES
    assert cut == text or cut.endswith("…")


def test_the_result_of_the_most_choices_with_the_longest_stop_strings_is_a_line() -> None:
    longest = "\x01" * 511
    chosen = Generate(prompt="a", n=16, stop=[longest]).stop[0]
    choice = events.Choice(finish_reason="tool_calls", completion_tokens=limits.MAX_INT, stop=chosen)
    done = events.ResultDone(
        id="\x01" * 128,
        finish_reason="tool_calls",
        stop=chosen,
        seed=limits.MAX_INT,
        usage=events.Usage(limits.MAX_INT, limits.MAX_INT, limits.MAX_INT, limits.MAX_INT),
        timings=events.Timings(**dict.fromkeys(events.Timings.__struct_fields__, 1e15 / 7)),
        choices=[choice] * 16,
    )
    assert len(encode_event(done)) < limits.LINE_OUT_BYTES


@pytest.mark.parametrize("text", ["\x01" * 512, "\u2028" * 200 + "\x01" * 400])
def test_a_stop_string_that_many_choices_could_not_all_name_in_a_line_is_refused(text: str) -> None:
    assert Generate(prompt="a", stop=[text]).stop == [text]
    with pytest.raises(ValueError, match=r"stop\[0\]: .* 3,072 bytes in JSON"):
        Generate(prompt="a", n=2, stop=[text])


def test_a_sentence_with_lone_surrogates_is_still_written() -> None:
    assert truncate_text("no such file: \udcff") == "no such file: ?"


def test_absent_fields_are_left_out_of_events() -> None:
    line = encode_event(events.Error(error="No.", code="internal", retryable=False))
    assert json.loads(line) == {"event": "error", "error": "No.", "code": "internal", "retryable": False}


def test_numbers_that_are_not_finite_are_written_as_null() -> None:
    timings = events.Timings(queued_ms=0.0, total_ms=1.0, prompt_tps=float("inf"), decode_tps=float("nan"))
    assert json.loads(msgspec.json.encode(timings)) == {
        "queued_ms": 0.0,
        "total_ms": 1.0,
        "prompt_tps": None,
        "decode_tps": None,
    }


@given(IDS, COMMANDS)
def test_a_command_line_starts_with_its_id_and_reads_back(id: str, command: Command) -> None:
    line = encode_command(id, command)
    assert line.startswith(b'{"id":' + msgspec.json.encode(id) + b',"cmd":')
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    fields = decode_object(Line(line[:-1]))
    assert fields["id"] == id
    assert decode_command(fields) == command


def test_defaults_are_left_out_of_a_command_line() -> None:
    assert encode_command("1", Ping()) == b'{"id":"1","cmd":"ping"}\n'
    assert encode_command("1", Generate(prompt="a", top_k=0)) == b'{"id":"1","cmd":"generate","prompt":"a"}\n'


def test_a_number_that_json_cannot_carry_is_refused_and_not_left_out() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="temperature"):
            encode_command("1", Generate(prompt="x", temperature=value))
        with pytest.raises(ValueError, match=r"logit_bias\.7: "):
            encode_command("1", Generate(prompt="x", logit_bias={7: value}))
        with pytest.raises(ValueError, match=r"template_args\.list\[1\]: "):
            encode_command("1", Chat(messages=[Message("user", "x")], template_args={"list": [None, value]}))


@pytest.mark.parametrize("count", [1, 3, 5000])
def test_the_log_probabilities_of_a_prompt_fill_as_many_lines_as_they_need(count: int) -> None:
    top = [events.TopLogprob(token_id=9, token="\x00" * 30, logprob=-2.0, bytes=None)] * 5
    given = [events.Logprob(token_id=place, token="a", logprob=-1.5, bytes=None, top=top) for place in range(count)]
    lines = encode_prompt_logprobs("r", given).splitlines(keepends=True)
    assert all(len(line) <= limits.LINE_OUT_BYTES for line in lines)
    read = [msgspec.json.decode(line, type=events.Token) for line in lines]
    assert [logprob for token in read for logprob in token.prompt_logprobs or ()] == given
    assert (len(lines) > 1) == (count == 5000)
