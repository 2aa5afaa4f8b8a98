"""Chat templates: a model's own, or one that a host gives in its place. They run in a sandbox, transformers' own."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, cast

from jinja2 import Environment, TemplateError, meta
from mlx_lm.tokenizer_utils import TokenizerWrapper
from transformers import PreTrainedTokenizerBase
from transformers.utils.chat_template_utils import _compile_jinja_template

from lmwire_protocol import RequestError

OUTPUT_LIMIT: Final = 64 * 2**20
"""Characters that a template may write. A request's line has half as many at most."""
RESERVED: Final = frozenset({"messages", "tools", "add_generation_prompt"})
"""Variables that have fields of their own."""

Messages = Sequence[dict[str, Any]]
Tools = Sequence[dict[str, Any]] | None
"""In OpenAI's shape, as templates take them."""


@dataclass(frozen=True, eq=False)
class ChatTemplate:
    """A program that writes a conversation as the model knows it."""

    write: Callable[..., Iterable[str]]
    """Takes `messages`, `tools`, `add_generation_prompt` and further variables by name, and gives text in pieces."""
    source: str = ""
    """Jinja; empty for a program in Python."""
    variables: frozenset[str] | None = None
    """Those that it reads; None when only calling it can tell."""
    given: bool = False
    """It came with the request."""

    def render(
        self, messages: Messages, tools: Tools = None, *, add_generation_prompt: bool = True, **variables: Any
    ) -> str:
        """Raises RequestError: invalid_request, with the template's own words."""
        try:
            return self._render(messages, tools, add_generation_prompt, variables)
        except Exception as error:  # templates are programs, and raise what they like
            # What a template refuses on purpose is the messages' fault; what else fails in it is its writer's.
            field = "chat_template" if self.given and type(error) is not TemplateError else "messages"
            whose = "the given" if self.given else "this model's"
            problem = f"{field}: {whose} chat template fails on these messages: {error or type(error).__name__}"
            raise RequestError("invalid_request", problem, field=field) from None

    def attempt(
        self, messages: Messages, tools: Tools = None, *, add_generation_prompt: bool = True, **variables: Any
    ) -> str:
        """What it writes; nothing when it fails."""
        try:
            return self._render(messages, tools, add_generation_prompt, variables)
        except Exception:
            return ""

    def check(self, variables: Iterable[str]) -> None:
        """Refuses what this template would ignore, and what has a field of its own.

        Raises:
            RequestError: invalid_request.
        """
        for name in variables:
            field = f"template_args.{name}"
            if name in RESERVED:
                problem = f"{field}: is written by the request's own field `{name}`"
                raise RequestError("invalid_request", problem, field=field)
            if self.variables is not None and name not in self.variables:
                known = ", ".join(sorted(self.variables - RESERVED)) or "none"
                problem = f"{field}: the chat template has no such variable; it has: {known}"
                raise RequestError("invalid_request", problem, field=field)

    def _render(self, messages: Messages, tools: Tools, opens: bool, variables: dict[str, Any]) -> str:
        pieces: list[str] = []
        size = 0
        for piece in self.write(messages=messages, tools=tools, add_generation_prompt=opens, **variables):
            pieces.append(piece)
            size += len(piece)
            if size > OUTPUT_LIMIT:
                raise OverflowError(f"it writes more than {OUTPUT_LIMIT} characters")
        return "".join(pieces)


def find_template(tokenizer: TokenizerWrapper, given: str | None, *, tools: bool) -> ChatTemplate:
    """The template for a request: the given one, or the model's, which may have another one for requests with tools.

    Raises:
        RequestError: invalid_request when the given one is no Jinja, unsupported when the model has none that works.
    """
    tokens = tuple((name, text) for name, text in tokenizer.special_tokens_map.items() if isinstance(text, str))
    if given is not None:
        return _jinja(given, tokens, True)
    if not tokenizer.has_chat_template:
        problem = "this model has no chat template, so it cannot chat; use `generate` with a prompt of your own, or"
        raise RequestError("unsupported", f"{problem} give a chat_template")
    renderer = _find_renderer(tokenizer)
    if renderer is not None:
        return _python(renderer, own=tokenizer._chat_template is None)
    try:
        source = cast(PreTrainedTokenizerBase, tokenizer).get_chat_template(tools=[{}] if tools else None)
    except ValueError as error:
        raise RequestError("unsupported", f"this model's chat templates: {error}") from None
    return _jinja(source, tokens, False)


@lru_cache(maxsize=4)
def _jinja(source: str, tokens: tuple[tuple[str, str], ...], given: bool) -> ChatTemplate:
    try:
        tree = _environment().parse(source)
        variables = frozenset(meta.find_undeclared_variables(tree))
        compiled = _environment().from_string(tree)
    except Exception as error:  # a template too deep for Python's compiler is no TemplateSyntaxError
        line = getattr(error, "lineno", None)
        problem = f"is not valid Jinja{f', line {line}' if line else ''}: {error or type(error).__name__}"
        if given:
            raise RequestError("invalid_request", f"chat_template: {problem}", field="chat_template") from None
        raise RequestError("unsupported", f"this model's chat template {problem}; give a chat_template") from None

    def write(**values: Any) -> Iterable[str]:
        # Templates rely on `documents` being none where there are none, as transformers has it.
        return compiled.generate({"documents": None, **dict(tokens), **values})

    return ChatTemplate(write, source, variables, given)


@cache
def _environment() -> Environment:
    """Transformers' own, which models' templates are written for, except that it does not multiply texts for ever."""
    environment: Any = _compile_jinja_template("").environment.overlay()
    environment.intercepted_binops = frozenset("*")
    environment.binop_table = {**environment.binop_table, "*": _product}
    return environment


def _product(left: Any, right: Any) -> Any:
    for times, text in ((left, right), (right, left)):
        if isinstance(times, int) and hasattr(text, "__len__") and len(text) * times > OUTPUT_LIMIT:
            raise OverflowError(f"a product longer than {OUTPUT_LIMIT}")
    return left * right


def _find_renderer(tokenizer: TokenizerWrapper) -> Callable[..., str] | None:
    """mlx-lm's, or that of the model's own tokenizer class, for models whose template is no Jinja."""
    if tokenizer._chat_template is not None:
        return tokenizer._chat_template
    inner = tokenizer._tokenizer
    own = type(inner).apply_chat_template is not PreTrainedTokenizerBase.apply_chat_template
    return inner.apply_chat_template if own else None


@lru_cache(maxsize=1)
def _python(renderer: Callable[..., Any], own: bool) -> ChatTemplate:
    def write(*, messages: Messages, **values: Any) -> list[str]:
        return [renderer(messages, **values, **({"tokenize": False} if own else {}))]

    return ChatTemplate(write)
