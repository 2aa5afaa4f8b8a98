"""The grammar of a whole answer: any reasoning, then content or tool calls."""

import json

from lmwire_protocol import Chat, Generate, Tokenize
from lmwire_protocol.messages import NamedTool

from ...output_parsing import Syntax
from .formats import check_format, format_grammar
from .lark_rules import LarkRules
from .message_frames import find_frame
from .tool_calls import ToolCallGrammar, all_schemas, check_format_supported, strict_schemas
from .vocabulary import Vocabulary


def answer_grammar(
    request: Generate | Chat, syntax: Syntax, starts_in_reasoning: bool, vocabulary: Vocabulary
) -> str | None:
    """Return the grammar of a request's answers in llguidance's JSON, or None if the answers are not constrained.

    Args:
        request: The request: its `format`, `tool_choice` and strict `tools` make the grammar.
        syntax: The model's output syntax.
        starts_in_reasoning: The answer starts inside reasoning.
        vocabulary: The model's vocabulary.

    Raises:
        RequestError: invalid_request, unsupported.
    """
    content = None if request.format is None else format_grammar(request.format, vocabulary)
    calls, alone = _call_grammar(request, syntax, vocabulary) if isinstance(request, Chat) else (None, False)
    if content is None and calls is None:
        return None
    if request.format is not None and alone:  # unused, since the answer is only calls, but must be valid
        check_format(request.format, vocabulary)
        content = None
    rules, frame = LarkRules(vocabulary), find_frame(syntax)
    said = None if content is None else f"{rules.literal(frame.before_content)} @content"
    called = None if calls is None else "@calls"
    reasoning = _reasoning_expression(rules, request, syntax, starts_in_reasoning, rules.literal(frame.after_reasoning))
    main = rules.grammar(f"{reasoning} ({' | '.join(filter(None, (called, said)))})")
    parts = {"answer": main, "calls": calls, "content": content}
    return json.dumps({"grammars": [{"name": name, "lark_grammar": text} for name, text in parts.items() if text]})


def is_constrained(request: Generate | Chat | Tokenize) -> bool:
    """Return whether a grammar constrains a request's answers."""
    if isinstance(request, Tokenize):
        return False
    tools = request.tools if isinstance(request, Chat) and request.tool_choice != "none" else ()
    must_call = bool(tools) and isinstance(request, Chat) and request.tool_choice != "auto"
    return request.format is not None or must_call or any(tool.function.strict for tool in tools)


def is_forced(request: Generate | Chat) -> bool:
    """Return whether all answers of a request must have a format, or call tools."""
    must_call = isinstance(request, Chat) and bool(request.tools) and request.tool_choice not in ("auto", "none")
    return request.format is not None or must_call


def _call_grammar(request: Chat, syntax: Syntax, vocabulary: Vocabulary) -> tuple[str | None, bool]:
    """Return the grammar of an answer's tool calls, or None, and whether the answer must be calls only."""
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
    calls = ToolCallGrammar(tools, schemas, form, find_frame(syntax), many, vocabulary)
    return calls.only_calls() if alone or request.format else calls.among_text(), alone


def _reasoning_expression(
    rules: LarkRules, request: Generate | Chat, syntax: Syntax, starts_in_reasoning: bool, after: str
) -> str:
    """Return an expression for the reasoning at the start of an answer; empty if it cannot have any."""
    if syntax.think_start is None or syntax.think_end is None:
        return ""
    if not starts_in_reasoning and (isinstance(request, Generate) or request.reasoning == "off"):
        return ""
    rest = f"{rules.text_until(syntax.think_end)} {after}"
    return rest if starts_in_reasoning else f"({rules.literal(syntax.think_start)} {rest})?"
