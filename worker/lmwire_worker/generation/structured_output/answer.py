"""The grammar of a whole answer: its thought, then what it says or what it calls."""

import json

from lmwire_protocol import Chat, Generate, Tokenize
from lmwire_protocol.messages import NamedTool

from ...output_parsing import Syntax
from .calls import Calls, check_form, enforced, offered
from .formats import check_format, format_grammar
from .frames import frame_of
from .rules import Rules
from .vocabulary import Vocabulary


def answer_grammar(request: Generate | Chat, syntax: Syntax, thinking: bool, vocabulary: Vocabulary) -> str | None:
    """The grammar of a request's answers, as llguidance's JSON; None when they may be anything.

    Args:
        request: What counts are its `format`, its `tool_choice` and the strict ones among its `tools`.
        syntax: The model's.
        thinking: The answer starts inside a thought.
        vocabulary: The model's.

    Raises:
        RequestError: invalid_request, unsupported.
    """
    content = None if request.format is None else format_grammar(request.format, vocabulary)
    calls, alone = _calls(request, syntax, vocabulary) if isinstance(request, Chat) else (None, False)
    if content is None and calls is None:
        return None
    if request.format is not None and alone:  # it says nothing about calls, but must be right
        check_format(request.format, vocabulary)
        content = None
    rules, frame = Rules(vocabulary), frame_of(syntax)
    said = None if content is None else f"{rules.literal(frame.content)} @content"
    called = None if calls is None else "@calls"
    thought = _thought(rules, request, syntax, thinking, rules.literal(frame.behind_thought))
    main = rules.grammar(f"{thought} ({' | '.join(filter(None, (called, said)))})")
    parts = {"answer": main, "calls": calls, "content": content}
    return json.dumps({"grammars": [{"name": name, "lark_grammar": text} for name, text in parts.items() if text]})


def is_constrained(request: Generate | Chat | Tokenize) -> bool:
    """Return whether a request's answers are held to a grammar."""
    if isinstance(request, Tokenize):
        return False
    tools = request.tools if isinstance(request, Chat) and request.tool_choice != "none" else ()
    must_call = bool(tools) and isinstance(request, Chat) and request.tool_choice != "auto"
    return request.format is not None or must_call or any(tool.function.strict for tool in tools)


def _calls(request: Chat, syntax: Syntax, vocabulary: Vocabulary) -> tuple[str | None, bool]:
    """The grammar of what an answer may call, and whether it may do nothing else."""
    tools, choice = request.tools, request.tool_choice
    alone = choice == "required" or isinstance(choice, NamedTool)
    strict = [index for index, tool in enumerate(tools) if tool.function.strict]
    if not tools or choice == "none" or not (alone or strict or (request.format and syntax.tools)):
        return None, False
    path = "tool_choice" if alone else f"tools[{strict[0]}].function.strict" if strict else "tools"
    form = check_form(syntax.tools, path)
    named = choice.name if isinstance(choice, NamedTool) else None
    schemas = enforced(tools, named, vocabulary) if alone else offered(tools, form, vocabulary)
    many = request.parallel_tool_calls and named is None
    calls = Calls(tools, schemas, form, frame_of(syntax), many, vocabulary)
    return calls.alone() if alone or request.format else calls.among_text(), alone


def _thought(rules: Rules, request: Generate | Chat, syntax: Syntax, thinking: bool, behind: str) -> str:
    """An expression for the thought that comes first, or that may come first."""
    if syntax.think_start is None or syntax.think_end is None:
        return ""
    if not thinking and (isinstance(request, Generate) or request.reasoning == "off"):
        return ""
    rest = f"{rules.text_until(syntax.think_end)} {behind}"
    return rest if thinking else f"({rules.literal(syntax.think_start)} {rest})?"
