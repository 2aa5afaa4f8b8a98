"""Formats that nobody wrote: whatever markers and shape a record has, no word of an answer is lost."""

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from lmwire_protocol import Function, Tool
from lmwire_worker.output_parsing import OutputParser, Syntax
from lmwire_worker.tool_parsers import GemmaCall, JsonCall, PythonCall, TaggedCall, ToolFormat, WrittenCall
from support.runners.answer_parts import TAGS, cut, joined, tokenizer_with

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS = [Tool(function=Function(name=name, parameters=PARAMETERS)) for name in ("lookup", "other")]
MANY = 6 * settings().max_examples
"""An example takes half a millisecond."""
WORDS = ("alpha", "bravo", "charlie", "delta", "echo")

names = st.sampled_from(["call", "tool", "use", "act"])
brackets = st.sampled_from(["<{}>", "<|{}|>", "[{}]", "<{}:x>", "{} >> ", "\n{}:\n"])
markers = st.builds(lambda form, name: form.format(name), brackets, names)


@st.composite
def tagged(draw: st.DrawFn) -> TaggedCall:
    outer, inner = draw(st.permutations(["f", "call", "invoke"]))[:2]
    line = draw(st.sampled_from(["", "\n"]))
    return TaggedCall(
        head=f'<{outer}="{{}}">{line}',
        tag=f"<{inner}={{}}>{line}",
        end=f"{line}</{inner}>\n",
        tail=f"</{outer}>",
    )


@st.composite
def json_calls(draw: st.DrawFn) -> JsonCall:
    if draw(st.booleans()):
        return JsonCall(middle=draw(st.sampled_from([', "arguments": ', ', "parameters": '])))
    between = draw(st.sampled_from(["<sep>", " => ", "[ARGS]", "\n```json\n"]))
    before, after = draw(st.sampled_from([("<c>", "</c>"), ("@", ";"), ("", "")]))
    return JsonCall(before, between, after, names=re.compile(r"\w+"))


shapes = st.one_of(tagged(), json_calls(), st.just(PythonCall()), st.just(GemmaCall("<q>")))


@st.composite
def formats(draw: st.DrawFn) -> ToolFormat:
    start = draw(markers)
    end = draw(st.one_of(st.just(""), markers.filter(lambda marker: marker != start)))
    return ToolFormat("generated", start, end, draw(shapes), between_calls=draw(st.sampled_from(["", "\n", ", "])))


def parts(tool_format: ToolFormat, pieces: list[str], *, finished: bool) -> list[tuple[str, ...]]:
    syntax = Syntax.of(tokenizer_with(*TAGS), "llama", tool_format)
    parser = OutputParser(syntax, syntax.initial, TOOLS, True)
    fragments = [fragment for piece in pieces for fragment in parser.push(piece)]
    return joined(fragments + parser.end(finished))


def texts_of(tool_format: ToolFormat) -> st.SearchStrategy[str]:
    """Return answers of words, markers, and calls that may be cut off."""
    calls = st.builds(
        lambda name, word, keep: tool_format.write([WrittenCall(name, {"city": word, "days": 3}, "id0000000")])[:keep],
        st.sampled_from(["lookup", "other"]),
        st.sampled_from(WORDS),
        st.sampled_from([None, None, -1, -3, 12, 20]),
    )
    words = st.sampled_from([f" {word} " for word in WORDS])
    marks = st.sampled_from([tool_format.start, tool_format.end, *TAGS, "\n"])
    return st.lists(st.one_of(words, calls, marks), max_size=8).map("".join)


@settings(max_examples=MANY)
@given(st.data())
def test_no_word_of_an_answer_is_lost_in_any_format(data: st.DataObject) -> None:
    tool_format = data.draw(formats())
    text = data.draw(texts_of(tool_format))
    finished = data.draw(st.booleans())
    read = parts(tool_format, [text], finished=finished)
    found = " ".join(word for part in read for word in part)
    for word in WORDS:
        assert found.count(word) >= text.count(word)
    assert (
        parts(tool_format, cut(text, data.draw(st.lists(st.integers(0, 400), max_size=5))), finished=finished) == read
    )
    assert parts(tool_format, list(text), finished=finished) == read


@settings(max_examples=MANY)
@given(formats(), st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
def test_a_written_call_is_read_back_in_any_format(tool_format: ToolFormat, words: list[str]) -> None:
    if isinstance(tool_format.shape, JsonCall) and not tool_format.shape.before:
        words = words[:1]  # nothing tells a second call from the text between two
    calls = [WrittenCall("lookup", {"city": word, "days": 3}, "id0000000") for word in words]
    read = [part for part in parts(tool_format, [tool_format.write(calls)], finished=True) if part[0] == "call"]
    assert [json.loads(part[3]) for part in read] == [{"city": word, "days": 3} for word in words]
