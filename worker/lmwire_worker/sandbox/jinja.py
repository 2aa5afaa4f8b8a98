"""Chat templates in Jinja, in the same environment as in transformers, for which models' templates are written."""

import json
import sys
from collections.abc import Callable
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Final, NoReturn

from jinja2 import nodes
from jinja2.environment import Environment, Template
from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError
from jinja2.ext import Extension, loopcontrols
from jinja2.lexer import TokenStream
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from .template_compiler import compile_template
from .template_lexer import read_tokens

MAX_OUTPUT_CHARACTERS: Final = 64 * 2**20
"""Maximum length of a rendered template, in characters: twice the longest line of a request."""
MAX_BATCH_CHARACTERS: Final = 2**16
"""Maximum length of a text of several that are rendered together, in characters."""
MAX_INDENT: Final = 1000
"""Maximum indentation of JSON, in spaces."""
MAX_ERROR_CHARACTERS: Final = 4096
"""Maximum length of an error message, in characters."""


def find_variables(source: str) -> dict[str, Any]:
    """Return the `variables` that a template reads, or the `error` in it and its `line`."""
    try:
        _, variables = _compile(source)
    except Exception as error:  # nesting too deep for Python's compiler is not a TemplateSyntaxError
        return {"error": _error_message(error), "line": getattr(error, "lineno", None)}
    return {"variables": variables}


def render(source: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the `text` of a rendered template, or its `error`, and whether it `refused` the values on purpose.

    Args:
        source: The template.
        values: The values of its variables.
    """
    try:
        compiled, _ = _compile(source)
        return {"text": _render(compiled, values)}
    except MemoryError:
        return {"exhausted": "needs more memory than there is for it"}
    except Exception as error:  # templates are programs, and raise what they like
        return {"error": _error_message(error), "refused": type(error) is TemplateError}


def render_opened(source: str, values: dict[str, Any], between: Callable[[], object]) -> dict[str, Any]:
    """Render a template with and without `add_generation_prompt`, to find the `opening` that this variable adds.

    Args:
        source: The template.
        values: The values of the other variables.
        between: Called before the second rendering.

    Returns:
        The result of `render` and the `opening`. This is empty if nothing is added, or the second rendering fails.
    """
    opened = render(source, {**values, "add_generation_prompt": True})
    if "text" not in opened:
        return opened
    between()
    closed = render(source, {**values, "add_generation_prompt": False})
    if "exhausted" in closed:
        return closed
    return {**opened, "opening": find_opening(opened["text"], closed.get("text", ""))}


def render_batch(source: str, values: list[dict[str, Any]], between: Callable[[], object]) -> dict[str, Any]:
    """Return the `texts` of several renderings; each empty if it fails, and None if it is large or needs a retry.

    Args:
        source: The template.
        values: The values of the variables, for each rendering.
        between: Called before each rendering.
    """
    texts: list[str | None] = []
    for each in values:
        between()
        answer = render(source, each)
        text = answer.get("text", "")
        texts.append(None if "exhausted" in answer or len(text) > MAX_BATCH_CHARACTERS else text)
    return {"texts": texts}


def find_opening(opened: str, closed: str) -> str:
    """Return the text that an opened conversation adds to the closed one; empty if it does not start with that.

    Args:
        opened: The conversation rendered with `add_generation_prompt`.
        closed: The conversation rendered without it.
    """
    return opened[len(closed) :] if closed and opened.startswith(closed) else ""


def _render(template: Template, values: dict[str, Any]) -> str:
    pieces: list[str] = []
    size = 0
    # As in transformers: templates rely on `documents` being none if the request has none.
    for piece in template.generate({"documents": None, **values}):
        pieces.append(piece)
        size += len(piece)
        if size > MAX_OUTPUT_CHARACTERS:
            raise OverflowError(f"it writes more than {MAX_OUTPUT_CHARACTERS} characters")
    return "".join(pieces)


@lru_cache(maxsize=8)
def _compile(source: str) -> tuple[Template, list[str]]:
    environment = environment_of_templates()
    try:
        code, variables = compile_template(environment, source)
    except TemplateSyntaxError as error:
        error.translated = True  # its message then leaves out the place, which is reported beside it
        raise
    return Template.from_code(environment, code, environment.make_globals(None)), variables


def _error_message(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:MAX_ERROR_CHARACTERS]


@cache
def environment_of_templates() -> Environment:
    """Return the environment, with the filters and functions of transformers."""
    environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals |= {  # pyrefly: ignore[bad-assignment]
        "raise_exception": _raise_exception,
        "strftime_now": _strftime_now,
        "dict": _Dict(),
        "namespace": _Namespace,
    }
    return environment


class _Environment(ImmutableSandboxedEnvironment):
    """Reads tokens and calls macros faster, and limits the products of texts and lists."""

    intercepted_binops = frozenset("*")

    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        del state  # of a text that begins inside a tag, which templates do not
        return TokenStream(read_tokens(source), name, filename)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        for times, text in ((left, right), (right, left)):
            if isinstance(times, int) and hasattr(text, "__len__") and len(text) * times > MAX_OUTPUT_CHARACTERS:
                raise OverflowError(f"a product longer than {MAX_OUTPUT_CHARACTERS}")
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function, and a macro at once: how to call it takes Jinja longer to find out than most macros take."""
        if type(function) is not Macro:
            return super().call(context, function, *args, **kwargs)
        kwargs.pop("_loop_vars", None)
        kwargs.pop("_block_vars", None)
        return function(context.eval_ctx, *args, **kwargs)

    def handle_exception(self, source: str | None = None) -> NoReturn:
        """Raise the present exception as it is: nobody reads its traceback, which takes longer than the rendering."""
        del source
        error = sys.exception()
        assert error is not None
        raise error


class _Generation(Extension):
    """The tags `generation` and `endgeneration` around the assistant's text, which have no effect here."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Any) -> str:
        return caller()


class _Dict:
    """The builtin `dict` without its attributes."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


class _Namespace(Namespace):
    """Refuses names that start with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # so `namespace(self=...)` works
        self, *rest = args
        attributes = dict(*rest, **kwargs)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        problem = "Chat templates cannot store underscore-prefixed attributes on a namespace, but got"
        raise SecurityError(f"{problem} {name!r}. Please rename the attribute.")


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """Return JSON without escaped HTML, unlike Jinja's own filter."""
    if isinstance(indent, int | str) and (indent if isinstance(indent, int) else len(indent)) > MAX_INDENT:
        raise OverflowError(f"tojson: indents by more than {MAX_INDENT}")
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: Any) -> None:
    raise TemplateError(message)


def _strftime_now(format: str) -> str:
    return datetime.now().strftime(format)
