"""Find whether a request demands structured output. It is asked of every request, so it imports no grammar."""

from lmwire_protocol import Chat, Generate, Tokenize


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
