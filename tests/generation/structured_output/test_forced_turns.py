"""A forced answer of each family: what its template writes for past calls is allowed, character for character."""

import json
from typing import Any, NamedTuple

import pytest

from lmwire_protocol import Chat, Function, Message, Tool
from lmwire_protocol.messages import CalledTool
from lmwire_worker.generation.structured_output.constraint_factory import ConstraintFactory
from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.output_parsing import REASONING, OutputParser, Syntax, start_state
from lmwire_worker.prompts.builder import build_prompt
from lmwire_worker.prompts.model_syntax import find_syntax
from lmwire_worker.prompts.tokenization import Encoder
from lmwire_worker.tool_parsers import ToolCallFragment
from support.models.family_turns import MESSAGE_ID, Turns
from support.models.family_variants import ALL_TURNS
from support.process.family_worker import tokenizer_of

EDIT = Tool(
    function=Function(
        name="edit",
        description="Edits a file.",
        parameters={
            "type": "object",
            "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
            "required": ["path", "line"],
            "additionalProperties": False,
        },
    )
)
FIND = Tool(
    function=Function(
        name="find",
        description="Finds words.",
        parameters={
            "type": "object",
            "properties": {
                "deep": {"type": "boolean"},
                "near": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "share": {"type": "number"},
                "words": {"type": "array", "items": {"type": "string"}},
                "zone": {"type": "string"},
            },
        },
    )
)
FOUND = {"deep": True, "near": None, "share": 0.5, "words": ["a b", "c"], "zone": 'say "Hi"\n  <b>'}
ASKED = Message(role="user", content="Edit it.")
THOUGHT = "Look at it first."


Called = tuple[str, dict[str, Any]]
"""The name of a function, and its arguments."""
EDITED: Called = ("edit", {"path": "a.c", "line": 2})
AGAIN: Called = ("edit", {"path": "b.c", "line": -3})


def without_nulls(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments without those of null, which MiniMax M3 leaves out."""
    return {name: value for name, value in arguments.items() if value is not None}


class Family(NamedTuple):
    """A model of a family."""

    turns: Turns
    tokenizer: Tokenizer
    syntax: Syntax

    def render(self, *messages: Message, **fields: Any) -> str:
        """Return the prompt's text."""
        request = Chat(messages=[ASKED, *messages], tools=[EDIT, FIND], **fields)
        return build_prompt(request, Encoder(self.tokenizer), len(self.tokenizer), self.syntax).text

    def calls(self, *called: Called) -> str:
        """Return calls as the template writes them."""
        has_ids = MESSAGE_ID in self.turns.call
        calls = [
            CalledTool(id=MESSAGE_ID if has_ids else f"functions.{name}:{index}", name=name, arguments=arguments)
            for index, (name, arguments) in enumerate(called)
        ]
        results = [Message(role="tool", content="Done.", tool_call_id=call.id) for call in calls[:1]]
        said = Message(role="assistant", content="", tool_calls=calls)
        start = self.render().removesuffix(self.turns.opens)
        past = self.render(said, *results, add_generation_prompt=False)
        assert past.startswith(start)
        after = self.turns.after_call("Done.", called[0][0])
        assert past.endswith(after)
        return past.removeprefix(start + self.turns.dropped).removesuffix(after)

    def matcher(self, **fields: Any) -> Any:
        """Return the matcher of an answer that must call a tool."""
        request = Chat(messages=[ASKED], tools=[EDIT, FIND], tool_choice="required", **fields)
        prompt = build_prompt(request, Encoder(self.tokenizer), len(self.tokenizer), self.syntax)
        thinking = start_state(self.syntax, prompt.opening) == REASONING
        factory = ConstraintFactory(self.tokenizer, len(self.tokenizer), self.tokenizer.eos_token_ids)
        constraint = factory.make_constraint(request, self.syntax, thinking, opening=prompt.opening)
        assert constraint is not None
        return constraint.matcher

    def reads(self, matcher: Any, text: str) -> str:
        """Return the part of a text that the matcher takes."""
        tokens = self.tokenizer.encode(text, add_special_tokens=False)
        return self.tokenizer.decode(tokens[: matcher.try_consume_tokens(tokens)])

    def parsed(self, text: str) -> list[Called]:
        """Return the calls in an answer."""
        prompt = build_prompt(
            Chat(messages=[ASKED], tools=[EDIT, FIND]), Encoder(self.tokenizer), len(self.tokenizer), self.syntax
        )
        parser = OutputParser(self.syntax, start_state(self.syntax, prompt.opening), [EDIT, FIND], parses_calls=True)
        pieces = [piece for piece in parser.push(text) + parser.end(True) if isinstance(piece, ToolCallFragment)]
        names = [piece.name for piece in pieces if piece.name]
        texts = ["".join(piece.arguments for piece in pieces if piece.index == index) for index in range(len(names))]
        return [(name, without_nulls(json.loads(text))) for name, text in zip(names, texts, strict=True)]


@pytest.fixture
def family(request: pytest.FixtureRequest) -> Family:
    turns = ALL_TURNS[request.param]
    tokenizer = tokenizer_of(turns)
    return Family(turns, tokenizer, find_syntax(tokenizer, turns.model_type))


each_family = pytest.mark.parametrize("family", ALL_TURNS, indirect=True)


@each_family
def test_calls_may_be_written_as_the_template_writes_them(family: Family) -> None:
    for called in ([EDITED], [("find", FOUND)], [EDITED, AGAIN])[: 2 if family.turns.single else 3]:
        calls = family.calls(*called)
        text = f"{family.turns.written(THOUGHT, is_kept=True)}{calls}".removeprefix(family.turns.opens)
        matcher = family.matcher()
        assert family.reads(matcher, text) == text
        assert matcher.is_accepting()
        assert family.parsed(text) == [(name, without_nulls(arguments)) for name, arguments in called]


@each_family
def test_a_forced_answer_cannot_end_before_its_call(family: Family) -> None:
    matcher = family.matcher()
    assert not matcher.is_accepting()
    thought = family.turns.written(THOUGHT, is_kept=True).removeprefix(family.turns.opens)
    assert family.reads(matcher, thought) == thought
    assert not matcher.is_accepting()


@pytest.mark.parametrize(
    ("header", "is_allowed"),
    [
        ("<|channel|>commentary to=functions.edit <|constrain|>json<|message|>", True),
        ("<|channel|>commentary to=functions.edit<|message|>", True),
        ("<|channel|>analysis to=functions.edit <|constrain|>json<|message|>", True),
        (" to=functions.edit<|channel|>commentary json<|message|>", True),
        (" to=functions.edit<|channel|>commentary <|constrain|>json<|message|>", True),
        ("<|channel|>commentary to=functions.edit<|channel|>commentary json<|message|>", False),
        ("<|channel|>commentary to=functions.edit json<|message|>", False),
        (" to=functions.edit<|message|>", False),
        (" to=functions.edit <|constrain|>json<|message|>", False),
        ("to=functions.edit<|channel|>commentary json<|message|>", False),
        ("<|channel|>final to=functions.edit<|message|>", False),
    ],
)
@pytest.mark.parametrize("family", ["harmony"], indirect=True)
def test_the_recipient_stands_before_or_after_the_channel_in_a_header_of_gpt_oss(
    family: Family, header: str, is_allowed: bool
) -> None:
    text = f'{header}{{"path":"a.c","line":2}}'
    assert (family.reads(family.matcher(), text) == text) == is_allowed
