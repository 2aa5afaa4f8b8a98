"""Chat templates in Jinja, in the environment that transformers gives them and models' templates are written for."""

import json
from collections.abc import Callable
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Final

import jinja2
from jinja2 import meta, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

OUTPUT_LIMIT: Final = 64 * 2**20
"""Characters that a template may write. A request's line has half as many at most."""
INDENT_LIMIT: Final = 1000
"""Spaces by which JSON may be indented."""
ERROR_LIMIT: Final = 4096
"""Characters of an error that are passed on."""


def inspect(source: str) -> dict[str, Any]:
    """Return the variables that a template reads, or what is wrong with it and in which line."""
    try:
        _, variables = _compile(source)
    except Exception as error:  # a template too deep for Python's compiler is no TemplateSyntaxError
        return {"error": _words(error), "line": getattr(error, "lineno", None)}
    return {"variables": variables}


def render(source: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return what a template writes, or its error and whether the template raised that on purpose."""
    try:
        compiled, _ = _compile(source)
        return {"text": _write(compiled, values)}
    except MemoryError:
        return {"exhausted": "needs more memory than there is for it"}
    except Exception as error:  # templates are programs, and raise what they like
        return {"error": _words(error), "refused": type(error) is jinja2.TemplateError}


def render_opened(source: str, values: dict[str, Any], between: Callable[[], object]) -> dict[str, Any]:
    """Return what a template writes with `add_generation_prompt`, and as `opening` what that adds at its end.

    Args:
        source: The template.
        values: Its variables, without that one.
        between: Called before the template writes again, without `add_generation_prompt`.

    Returns:
        As `render` does. The opening is empty where the template adds nothing or fails the second time.
    """
    opened = render(source, {**values, "add_generation_prompt": True})
    if "text" not in opened:
        return opened
    between()
    closed = render(source, {**values, "add_generation_prompt": False})
    if "exhausted" in closed:
        return closed
    return {**opened, "opening": find_opening(opened["text"], closed.get("text", ""))}


def find_opening(opened: str, closed: str) -> str:
    """Return what an opened conversation has after the closed one; nothing where it does not begin with that."""
    return opened[len(closed) :] if closed and opened.startswith(closed) else ""


def _write(template: jinja2.Template, values: dict[str, Any]) -> str:
    pieces: list[str] = []
    size = 0
    # Templates rely on `documents` being none where there are none, as transformers has it.
    for piece in template.generate({"documents": None, **values}):
        pieces.append(piece)
        size += len(piece)
        if size > OUTPUT_LIMIT:
            raise OverflowError(f"it writes more than {OUTPUT_LIMIT} characters")
    return "".join(pieces)


@lru_cache(maxsize=8)
def _compile(source: str) -> tuple[jinja2.Template, list[str]]:
    tree = _environment().parse(source)
    variables = sorted(meta.find_undeclared_variables(tree))
    return _environment().from_string(tree), variables


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:ERROR_LIMIT]


@cache
def _environment() -> jinja2.Environment:
    environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals |= {
        "raise_exception": _raise_exception,
        "strftime_now": _strftime_now,
        "dict": _Dict(),
        "namespace": _Namespace,
    }
    return environment


class _Environment(ImmutableSandboxedEnvironment):
    """Multiplies texts and lists up to a limit."""

    intercepted_binops = frozenset("*")

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        for times, text in ((left, right), (right, left)):
            if isinstance(times, int) and hasattr(text, "__len__") and len(text) * times > OUTPUT_LIMIT:
                raise OverflowError(f"a product longer than {OUTPUT_LIMIT}")
        return super().call_binop(context, operator, left, right)


class _Generation(Extension):
    """The tags `generation` and `endgeneration`, which mark what an assistant writes, and write nothing."""

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
    """Takes no names that begin with an underscore."""

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
        raise jinja2.exceptions.SecurityError(f"{problem} {name!r}. Please rename the attribute.")


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """Jinja's own filter escapes HTML."""
    if isinstance(indent, int | str) and (indent if isinstance(indent, int) else len(indent)) > INDENT_LIMIT:
        raise OverflowError(f"tojson: indents by more than {INDENT_LIMIT}")
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: Any) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(format: str) -> str:
    return datetime.now().strftime(format)
