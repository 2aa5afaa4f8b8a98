"""Chat templates: a model's own, or one that a host gives in its place. Jinja runs in a sandbox process."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

from mlx_lm.tokenizer_utils import TokenizerWrapper
from transformers import PreTrainedTokenizerBase

from lmwire_protocol import RequestError

from ..sandbox import Exhausted, Sandbox
from ..sandbox.jinja import find_opening

RESERVED: Final = frozenset({"messages", "tools", "add_generation_prompt"})
"""Variables that have fields of their own."""
SANDBOXES: Final = {given: Sandbox() for given in (False, True)}
"""One for models' templates and one for requests' own: a request that keeps the latter busy holds up only its like."""

T = TypeVar("T")
Messages = Sequence[dict[str, Any]]
Tools = Sequence[dict[str, Any]] | None
"""In OpenAI's shape, as templates take them."""


class TemplateFault(Exception):
    """A template's own words.

    Args:
        words: Why it wrote nothing.
        refused: It refused the messages on purpose.
    """

    def __init__(self, words: str, *, refused: bool) -> None:
        super().__init__(words)
        self.refused = refused


@dataclass(frozen=True, eq=False)
class ChatTemplate:
    """A program that writes a conversation as the model knows it."""

    write: Callable[..., str]
    """Takes `messages`, `tools`, `add_generation_prompt` and further variables by name."""
    source: str = ""
    """Jinja; empty for a program in Python."""
    variables: frozenset[str] | None = None
    """Those that it reads; None when only calling it can tell."""
    given: bool = False
    """It came with the request."""
    write_opened: Callable[..., tuple[str, str]] | None = None
    """Does what `open_turn` returns at once; None where `write` is called twice."""

    def render(
        self, messages: Messages, tools: Tools = None, *, add_generation_prompt: bool = True, **variables: Any
    ) -> str:
        """Return what it writes.

        Raises:
            RequestError: invalid_request, with the template's own words, or with the limit that it came to.
        """
        values = {"messages": messages, "tools": tools, "add_generation_prompt": add_generation_prompt, **variables}
        return self._run(self.write, values)

    def open_turn(self, messages: Messages, tools: Tools = None, **variables: Any) -> tuple[str, str]:
        """Return what it writes with `add_generation_prompt`, and what that adds at its end, if anything.

        Raises:
            RequestError: As `render` does.
        """
        if self.write_opened is not None:
            return self._run(self.write_opened, {"messages": messages, "tools": tools, **variables})
        opened = self.render(messages, tools, **variables)
        return opened, find_opening(opened, self.attempt(messages, tools, add_generation_prompt=False, **variables))

    def attempt(
        self, messages: Messages, tools: Tools = None, *, add_generation_prompt: bool = True, **variables: Any
    ) -> str:
        """Return what it writes, or nothing when it fails.

        Raises:
            RequestError: invalid_request: it came to a limit.
        """
        values = {"messages": messages, "tools": tools, "add_generation_prompt": add_generation_prompt, **variables}
        try:
            return self.write(**values)
        except Exhausted as limit:
            raise self._exhausted(limit) from None
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

    def _run(self, write: Callable[..., T], values: dict[str, Any]) -> T:
        try:
            return write(**values)
        except Exhausted as limit:
            raise self._exhausted(limit) from None
        except Exception as error:  # templates are programs, and raise what they like
            # What a template refuses on purpose is the messages' fault; what else fails in it is its writer's.
            refused = isinstance(error, TemplateFault) and error.refused
            words = f"fails on these messages: {error or type(error).__name__}"
            raise self._problem("chat_template" if self.given and not refused else "messages", words) from None

    def _exhausted(self, limit: Exhausted) -> RequestError:
        return self._problem("chat_template" if self.given else "messages", str(limit))

    def _problem(self, field: str, words: str) -> RequestError:
        whose = "the given" if self.given else "this model's"
        return RequestError("invalid_request", f"{field}: {whose} chat template {words}", field=field)


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
    sandbox = SANDBOXES[given]
    try:
        found = sandbox.ask({"subject": "template", "source": source})
    except Exhausted as limit:
        found = {"error": f"it {limit}"}
    if "error" in found:
        line = found.get("line")
        problem = f"is not valid Jinja{f', line {line}' if line else ''}: {found['error']}"
        if given:
            raise RequestError("invalid_request", f"chat_template: {problem}", field="chat_template")
        raise RequestError("unsupported", f"this model's chat template {problem}; give a chat_template")

    def ask(subject: str, values: dict[str, Any]) -> dict[str, Any]:
        answer = sandbox.ask({"subject": subject, "source": source, "values": {**dict(tokens), **values}})
        if "exhausted" in answer:
            raise Exhausted(answer["exhausted"])
        if "error" in answer:
            raise TemplateFault(answer["error"], refused=answer["refused"])
        return answer

    def write(**values: Any) -> str:
        return ask("render", values)["text"]

    def write_opened(**values: Any) -> tuple[str, str]:
        answer = ask("opened", values)
        return answer["text"], answer["opening"]

    return ChatTemplate(write, source, frozenset(found["variables"]), given, write_opened)


def _find_renderer(tokenizer: TokenizerWrapper) -> Callable[..., str] | None:
    """mlx-lm's, or that of the model's own tokenizer class, for models whose template is no Jinja."""
    if tokenizer._chat_template is not None:
        return tokenizer._chat_template
    inner = tokenizer._tokenizer
    own = type(inner).apply_chat_template is not PreTrainedTokenizerBase.apply_chat_template
    return inner.apply_chat_template if own else None


@lru_cache(maxsize=1)
def _python(renderer: Callable[..., Any], own: bool) -> ChatTemplate:
    def write(*, messages: Messages, **values: Any) -> str:
        return renderer(messages, **values, **({"tokenize": False} if own else {}))

    return ChatTemplate(write)
