"""A template whose calls no row reads gets a row derived from them that reads every call, or else the generic text."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lmwire_protocol import Chat, Function, Message, Tool
from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.output_parsing import OutputParser, Syntax
from lmwire_worker.prompts.builder import ConversationRenderer
from lmwire_worker.prompts.chat_template import select_template
from lmwire_worker.prompts.model_syntax import find_syntax
from lmwire_worker.tool_parsers import DERIVED, WrittenCall
from support.runners.answer_parts import cut, joined, tokenizer_with
from support.runners.constrained import Speaker, write_tokenizer

PROPERTIES = {"path": {"type": "string"}, "text": {"type": "string"}, "line": {"type": "integer"}}
EDIT = Tool(function=Function(name="edit_file", parameters={"type": "object", "properties": PROPERTIES}))
FIND = Tool(function=Function(name="find", parameters={"type": "object", "properties": PROPERTIES}))
NAME, ARGUMENTS = "{{ call.function.name }}", "{{ call.function.arguments | tojson }}"
VALUE = "{{ value if value is string else value | tojson }}"
HEAD = "{% for tool in tools or [] %}{{ tool.function | tojson }}\n{% endfor %}{% for m in messages %}<|{{ m.role }}|>"
TAIL = "{{ m.content or '' }}{% if m.tool_calls %}CALLS{% endif %}<|end|>\n{% endfor %}"
OPENED = "{% if add_generation_prompt %}<|assistant|>{% endif %}"

Calls = list[tuple[str, dict[str, Any]]]


def template(start: str, call: str, between: str, end: str) -> str:
    """Return a template that writes a turn's calls so."""
    more = f"{{% if not loop.last %}}{between}{{% endif %}}" if between else ""
    calls = f"{start}{{% for call in m.tool_calls %}}{call}{more}{{% endfor %}}{end}"
    return HEAD + TAIL.replace("CALLS", calls) + OPENED


def tags(head: str, item: str, tail: str, between: str = "") -> str:
    """Return a call with its arguments between tags."""
    more = f"{{% if not loop.last %}}{between}{{% endif %}}" if between else ""
    return f"{head}{{% for key, value in call.function.arguments.items() %}}{item}{more}{{% endfor %}}{tail}"


def opened(source: str) -> tuple[Tokenizer, Syntax]:
    tokenizer = tokenizer_with()
    tokenizer.chat_template = source
    return tokenizer, find_syntax(tokenizer, "llama")


def written(tokenizer: Tokenizer, calls: Calls) -> str:
    """Return an answer with calls, as the template writes it after its opening."""
    called = [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "", "tool_calls": called}]
    text = select_template(tokenizer, None, tools=True).render(messages, [], add_generation_prompt=False)
    return text.partition("<|assistant|>")[2].partition("<|end|>")[0]


def read(syntax: Syntax, pieces: Any) -> tuple[str, Calls]:
    """Return the text and the whole calls of an answer that comes in pieces."""
    parser = OutputParser(syntax, syntax.initial, [EDIT, FIND], True)
    parts = joined([part for piece in pieces for part in parser.push(piece)] + parser.end(True))
    calls = [(part[2], json.loads(part[3])) for part in parts if part[0] == "call" and part[4] == "whole"]
    return "".join(part[1] for part in parts if part[0] == "content"), calls


CALLS = [("edit_file", {"path": "src/a.py", "text": '    say("hi")\n', "line": 3}), ("find", {"path": "it's <b>"})]
KNOWN = {
    "an object in a list": template("<calls>[", f'{{"name": "{NAME}", "arguments": {ARGUMENTS}}}', ", ", "]</calls>"),
    "an object of other keys": template(
        "<use>", f'{{"tool": "{NAME}", "input": {ARGUMENTS}}}', "</use><use>", "</use>"
    ),
    "an object and its id": template(
        "[USE_TOOLS]", f'{{"name": "{NAME}", "arguments": {ARGUMENTS}, "id": "{{{{ call.id }}}}"}}', ", ", ""
    ),
    "the name before the object": template("", f"<|use|>{NAME}<|with|>{ARGUMENTS}<|done|>", "\n", ""),
    "numbered names": template(
        "<|uses|>", f"<|use|>{NAME}:{{{{ loop.index0 }}}}<|with|>{ARGUMENTS}<|done|>", "", "<|/uses|>"
    ),
    "a fence": template(">>> tools\n```json\n", f'{{"name": "{NAME}", "arguments": {ARGUMENTS}}}', "\n", "\n```"),
    "tags": template(
        "<do>\n", tags(f"<fn {NAME}>\n", f"<arg {{{{ key }}}}>\n{VALUE}\n</arg>\n", "</fn>\n"), "", "</do>"
    ),
    "tags with quotes": template(
        "<do>", tags(f'<fn id="{NAME}">', f'<arg id="{{{{ key }}}}">{VALUE}</arg>', "</fn>"), "", "</do>"
    ),
    "square tags": template("", tags(f"[do {NAME}]", f"[arg {{{{ key }}}}]{VALUE}[/arg]", "[/do]"), "\n", ""),
    "keys and values": template("", tags(f"<do>{NAME}\n", f"<k>{{{{ key }}}}</k><v>{VALUE}</v>\n", "</do>"), "\n", ""),
    "Python": template("<py>", tags(f"{NAME}(", "{{ key }}={{ value | tojson }}", ")", ", "), "\n", "</py>"),
}
"""Templates of formats that no row of the table reads, by what a call is in them."""


@pytest.mark.parametrize("what", KNOWN)
def test_a_row_is_derived_that_reads_and_writes_calls_as_the_template_does(what: str) -> None:
    tokenizer, syntax = opened(KNOWN[what])
    assert syntax.tools is not None and (syntax.tools.name, syntax.assumes_tools) == (DERIVED, False)
    text = written(tokenizer, CALLS)
    assert read(syntax, [text]) == read(syntax, text) == ("", CALLS)
    past = [WrittenCall(name, given, f"call_{number}") for number, (name, given) in enumerate(CALLS)]
    assert syntax.tools.write(past) == text
    said = "Let me see: <b> [x] {y}. "
    assert read(syntax, said + text) == (said, CALLS)


UNREADABLE = {
    "arguments before the name": template("<do>", f'{{"input": {ARGUMENTS}, "tool": "{NAME}"}}', "", "</do>"),
    "words alone": template("", f"I call {NAME} with {ARGUMENTS}", " and ", ""),
    "quoted strings between tags": template(
        "<do>", tags(f"<fn {NAME}>", "<arg {{ key }}>{{ value | tojson }}</arg>", "</fn>"), "", "</do>"
    ),
    "one argument": template("<do>", f"{NAME} {{{{ call.function.arguments.values() | first }}}}", "", "</do>"),
    "a new marker for each call": template(
        "", f"<do{{{{ loop.index }}}}>{NAME}<with>{ARGUMENTS}</do{{{{ loop.index }}}}>", "", ""
    ),
}
"""Templates whose calls no row can be derived from."""


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_template_that_defies_derivation_gets_the_generic_text(what: str) -> None:
    tokenizer, syntax = opened(UNREADABLE[what])
    assert syntax.tools is not None and (syntax.tools.name, syntax.assumes_tools) == ("json_tools", True)
    request = Chat(messages=[Message(role="user", content="Go.")], tools=[EDIT])
    prompt, _ = ConversationRenderer(request, tokenizer, syntax, None).render()
    assert '<tool_call>\n{"name": <function-name>' in prompt and "edit_file" in prompt


def test_a_sign_of_a_format_that_cannot_read_the_templates_calls_does_not_decide() -> None:
    calls = template("<tool_call>", f"{ARGUMENTS} for {NAME}", "</tool_call><tool_call>", "</tool_call>")
    assert opened(calls)[1].assumes_tools


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    return Speaker(write_tokenizer(tmp_path_factory.mktemp("model"), []))


@pytest.mark.parametrize("what", KNOWN)
def test_a_forced_call_is_written_in_the_derived_format_and_read_back(what: str, speaker: Speaker) -> None:
    _, syntax = opened(KNOWN[what])
    assert syntax.tools is not None
    wanted = {"path": {"type": "string", "minLength": 1, "maxLength": 9}, "line": {"type": "integer", "maximum": 9}}
    parameters = {"type": "object", "properties": wanted, "required": ["path", "line"], "additionalProperties": False}
    tools = [Tool(function=Function(name="edit_file", parameters=parameters))]
    message = Message(role="user", content="Go.")
    request = Chat(messages=[message], tools=tools, tool_choice="required", parallel_tool_calls=False)
    for answer in speaker.in_format(syntax.tools).say_each(request, range(3)):
        text, calls = read(syntax, [answer])
        assert (text.strip(), [(name, set(arguments)) for name, arguments in calls]) == (
            "",
            [("edit_file", set(wanted))],
        )


words = st.sampled_from(["call", "tool", "use", "do"])
marks = st.builds(
    lambda form, word: form.format(word),
    st.sampled_from(["<{}>", "<|{}|>", "[{}]", "<{}:x>", "@{}\n", "{}: ", "«{}»", ""]),
    words,
)
gaps = st.sampled_from(["", "\n", " ", ", ", "; "])


@st.composite
def call_bodies(draw: st.DrawFn) -> str:
    """Return a call in JSON, before or after its name, or in tags, with marks and separators that may be missing."""
    before, between, after = draw(marks), draw(marks), draw(marks)
    name, arguments = draw(
        st.sampled_from(
            [
                (f'{{"name": "{NAME}", ', f'"arguments": {ARGUMENTS}}}'),
                (f'{{"function": "{NAME}", ', f'"args": {ARGUMENTS}}}'),
                (f'{{"args": {ARGUMENTS}, ', f'"function": "{NAME}"}}'),
                (NAME, ARGUMENTS),
                (ARGUMENTS, NAME),
            ]
        )
    )
    if draw(st.booleans()):
        return before + name + (between if name == NAME else "") + arguments + after
    item, gap = draw(st.sampled_from(["<p={}>V</p>", "<{}>V</{}>", "{}: V;", "<k>{}</k><v>V</v>"])), draw(gaps)
    item = item.replace("{}", "{{ key }}").replace("V", VALUE)
    return tags(before + NAME + between, item + gap, after)


templates = st.builds(template, marks, call_bodies(), gaps, marks)
values = st.one_of(
    st.lists(st.sampled_from(["alpha", " ", "\n", '"', "'", "{", "}", ",", "<b>", "bravo"]), max_size=5).map("".join),
    st.integers(-9, 999),
)


@given(st.data())
def test_an_unknown_template_is_read_right_or_gets_the_generic_text(data: st.DataObject) -> None:
    tokenizer, syntax = opened(data.draw(templates))
    assert syntax.tools is not None
    if syntax.assumes_tools:
        assert syntax.tools.name == "json_tools"
        return
    path, line = data.draw(values), data.draw(st.integers(-9, 999))
    calls: Calls = [("edit_file", {"path": str(path), "line": line}), ("find", {"path": "x"})]
    text = written(tokenizer, calls)
    marks = [syntax.tools.start, syntax.tools.end]
    assume(not any(mark and mark in str(path) for mark in marks))
    if syntax.tools.name == DERIVED:
        assert read(syntax, [text]) == ("", calls)
    cuts = data.draw(st.lists(st.integers(0, 400), max_size=5))
    short = text[: data.draw(st.integers(0, len(text)))]
    for answer in (text, short):
        assert read(syntax, [answer]) == read(syntax, answer) == read(syntax, cut(answer, cuts))
    found, whole = read(syntax, [short])
    for word in ("alpha", "bravo"):
        assert (found + str(whole)).count(word) >= short.count(word)
