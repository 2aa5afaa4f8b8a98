"""The grammar of a whole answer: any reasoning, then content or tool calls."""

import json
from dataclasses import dataclass
from typing import Final

from lmwire_protocol import Chat, Generate
from lmwire_protocol.formats import ChoiceFormat, Format, JsonObjectFormat, JsonSchemaFormat
from lmwire_protocol.messages import NamedTool

from ...output_parsing import Syntax
from .formats import check_format, format_grammar
from .lark_rules import LarkRules
from .message_frames import MessageFrame, find_frame
from .tool_calls import ToolCallGrammar, all_schemas, check_format_supported, strict_schemas
from .vocabulary import GrammarError, Vocabulary

MAX_SPACE: Final = 4
"""Maximum number of spaces and line breaks before reasoning, content and calls. Models write them there, and a bound
lets the answer go on."""
_SPACE: Final = f"/[ \\n]{{1,{MAX_SPACE}}}/"


@dataclass(frozen=True, slots=True)
class AnswerGrammar:
    """The grammar of a whole answer."""

    text: str
    """The grammar, in llguidance's JSON."""
    drops_space: bool
    """White space before the content is not part of it."""
    plain: str | None
    """The grammar of the same answers without reasoning, if nobody asked for it; else None."""


def answer_grammar(
    request: Generate | Chat, syntax: Syntax, starts_in_reasoning: bool, vocabulary: Vocabulary, opening: str = ""
) -> AnswerGrammar | None:
    """Return the grammar of a request's answers, or None if the answers are not constrained.

    Args:
        request: The request: its `format`, `tool_choice` and strict `tools` make the grammar.
        syntax: The model's output syntax.
        starts_in_reasoning: The answer starts inside reasoning.
        vocabulary: The model's vocabulary.
        opening: The part of the assistant's turn that the prompt contains.

    Raises:
        RequestError: invalid_request, unsupported.
    """
    content = None if request.format is None else format_grammar(request.format, vocabulary)
    found, alone = _call_grammar(request, syntax, vocabulary) if isinstance(request, Chat) else (None, False)
    calls = None if found is None else found.only_calls() if alone or request.format else found.among_text()
    if content is None and calls is None:
        return None
    if request.format is not None and alone:  # unused, since the answer is only calls, but must be valid
        check_format(request.format, vocabulary)
        content = None
    rules, frame = LarkRules(vocabulary), find_frame(syntax)
    is_begun = isinstance(request, Chat) and bool(request.prefix) and not starts_in_reasoning
    opening = opening.removesuffix(request.prefix) if isinstance(request, Chat) else opening
    space = rules.rule(f"{rules.terminal(_SPACE)}?") if frame.is_spaced and isinstance(request, Chat) else ""
    has_space = _may_begin_with_space(request.format if content else None, alone, vocabulary)
    drops_space = bool(space) and not is_begun and not has_space
    called = said = None
    if calls is not None:
        called = f"{space} {_empty_content(rules, frame, opening) if alone else ''} @calls"
    if content is not None:
        said = _framed_content(rules, syntax, frame, space if drops_space else "", opening)

    def rest(before_content: str) -> str:
        parts = (called, None if said is None else f"{before_content} {said}")
        return f"({' | '.join(filter(None, parts))})"

    first = "" if opening[-1:].isspace() or not opening or not drops_space else space
    reasoning = _reasoning_expression(rules, request, syntax, starts_in_reasoning, frame)
    start = plain = rest(first)
    begun = None
    if reasoning:
        reasoned = f"{reasoning} {rest(space if drops_space else '')}"
        if found and alone and syntax.tools and syntax.tools.ends_reasoning:
            begun = found.only_calls(is_begun=True)
            opens = "" if starts_in_reasoning else rules.literal(syntax.think_start or "")
            reasoned = f"({reasoned} | {opens} {rules.text_until(syntax.tools.start)} @begun)"
        start = reasoned if starts_in_reasoning else f"{first} {reasoned} | {plain}"
    # Some families write a space after the opening of the turn, which the template leaves to the model.
    head = frame.after_reasoning
    lead = rules.literal(" ") if head.endswith(" ") and opening.endswith(head[:-1]) else ""

    def whole(start: str) -> str:
        parts = {"answer": rules.grammar(f"{lead} ({start})"), "calls": calls, "begun": begun, "content": content}
        return json.dumps({"grammars": [{"name": name, "lark_grammar": text} for name, text in parts.items() if text]})

    is_unasked = isinstance(request, Chat) and request.reasoning == "auto" and not request.prefix
    has_choice = bool(reasoning) and not starts_in_reasoning and is_unasked
    return AnswerGrammar(whole(start), drops_space, whole(plain) if has_choice else None)


def _empty_content(rules: LarkRules, frame: MessageFrame, opening: str) -> str:
    """Return an expression for the empty content that some families write before calls."""
    if not frame.writes_empty_content or frame.text_before_call is None:
        return ""
    start, end = frame.text_before_call
    return rules.literal(end) if opening.endswith(start) else f"({rules.literal(start + end)})?"


def _framed_content(rules: LarkRules, syntax: Syntax, frame: MessageFrame, space: str, opening: str) -> str:
    """Return an expression for the content, with the markers around it that the model writes or may write."""
    before = "" if opening.endswith(frame.before_content) else rules.literal(frame.before_content)
    if not syntax.content_markers or frame.before_content:
        return f"{before} @content"
    starts, ends = (" | ".join(map(rules.literal, marks)) for marks in zip(*syntax.content_markers, strict=True))
    return f"(({starts}) {space})? @content ({ends})?"


def _may_begin_with_space(format: Format | None, alone: bool, vocabulary: Vocabulary) -> bool:
    """Return whether white space at the start of the content is part of it.

    Args:
        format: The format of the content; None if there is none.
        alone: The answer is only calls.
        vocabulary: The model's vocabulary.
    """
    match format:
        case None:
            return not alone
        case JsonObjectFormat() | JsonSchemaFormat():
            return False
        case ChoiceFormat():
            return any(text[:1].isspace() for text in format.choices)
        case _:
            try:
                matcher = vocabulary.matcher(format_grammar(format, vocabulary))
            except GrammarError:
                return True  # the grammar of the whole answer reports it
            spaces = [vocabulary.tokens(f"a{space}")[-1] for space in " \n"]
            return any(matcher.validate_tokens([token]) for token in spaces)


def _call_grammar(request: Chat, syntax: Syntax, vocabulary: Vocabulary) -> tuple[ToolCallGrammar | None, bool]:
    """Return the builder of the tool calls' grammar, or None, and whether the answer must be calls only."""
    tools, choice = request.tools, request.tool_choice
    alone = choice == "required" or isinstance(choice, NamedTool)
    strict = [index for index, tool in enumerate(tools) if tool.function.strict]
    if not tools or choice == "none" or not (alone or strict or (request.format and syntax.tools)):
        return None, False
    path = "tool_choice" if alone else f"tools[{strict[0]}].function.strict" if strict else "tools"
    form = check_format_supported(syntax.tools, path)
    named = choice.name if isinstance(choice, NamedTool) else None
    schemas = all_schemas(tools, named, vocabulary) if alone else strict_schemas(tools, form, vocabulary)
    many = request.parallel_tool_calls and named is None
    return ToolCallGrammar(tools, schemas, form, find_frame(syntax), many, vocabulary), alone


def _reasoning_expression(
    rules: LarkRules, request: Generate | Chat, syntax: Syntax, starts_in_reasoning: bool, frame: MessageFrame
) -> str:
    """Return an expression for the reasoning at the start of an answer; empty if it cannot have any."""
    if syntax.think_start is None or syntax.think_end is None:
        return ""
    if not starts_in_reasoning and (isinstance(request, Generate) or request.reasoning == "off"):
        return ""
    rest = f"{rules.text_until(syntax.think_end)} {rules.literal(frame.after_reasoning)}"
    return rest if starts_in_reasoning else f"{rules.literal(syntax.think_start)} {rest}"
