"""Chat templates: the model's own, or one from the request, and what each accepts. Jinja runs in a sandbox process."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgspec import Struct, field

from lmwire_protocol import RequestError

from ..sandbox import LimitExceeded, Sandbox

if TYPE_CHECKING:
    from ..models.tokenizer import Tokenizer

RESERVED_VARIABLES: Final = frozenset({"messages", "tools", "add_generation_prompt"})
"""Template variables that `template_args` cannot set: the request's own fields set them."""
ROLE_CONTENT_LINES: Final = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}{{ '\\n' if not loop.last }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '\\n' if messages }}assistant:{% endif %}"
)
"""The template of models without one: a line for each message."""
SANDBOXES: Final = {given: Sandbox() for given in (False, True)}
"""A sandbox for templates from requests (True) and one for models' templates (False), so that a slow template from a
request delays only requests of that kind."""

T = TypeVar("T")
Messages = Sequence[dict[str, Any]]
Tools = Sequence[dict[str, Any]] | None
"""Tools in OpenAI's form, as templates take them."""


class TemplateError(Exception):
    """An error that a template raised.

    Args:
        message: The template's message.
        raised_on_purpose: The template called `raise_exception` to refuse the messages.
    """

    def __init__(self, message: str, *, raised_on_purpose: bool) -> None:
        super().__init__(message)
        self.raised_on_purpose = raised_on_purpose


class Probe(NamedTuple):
    """A small conversation, whose text shows a feature of a template. The fields are those of `ChatTemplate.render`."""

    messages: Messages
    tools: Tools = None
    add_generation_prompt: bool = True
    variables: Mapping[str, Any] = MappingProxyType({})


class ChatTemplate(Struct, frozen=True, eq=False, weakref=True):
    """A program that renders a conversation in the model's format."""

    renderer: Callable[..., str]
    """Renders; takes `messages`, `tools`, `add_generation_prompt` and further variables by name."""
    source: str = ""
    """Jinja source; empty for a program in Python."""
    variables: frozenset[str] | None = None
    """Names of the variables that the template reads; None if unknown, for a program in Python."""
    from_request: bool = False
    """True if the template came with the request."""
    opened_renderer: Callable[..., tuple[str, str]] | None = None
    """Renders for `open_turn` in one call; None to call `renderer` twice."""
    no_tools: Sequence[dict[str, Any]] | None = None
    """The tools of a request without any: an empty list for a template that demands a list."""
    batch_renderer: Callable[[Sequence[dict[str, Any]]], list[str | None]] | None = None
    """Renders several small conversations in one call; None for those that it does not render."""
    ahead: dict[str, str] = field(default_factory=dict[str, str])
    """The texts of small conversations that `render_ahead` rendered."""

    @property
    def writes_special_tokens(self) -> bool:
        """Return whether the template writes the tokens around a text, so that the tokenizer must not add them."""
        return self.source != ROLE_CONTENT_LINES

    def render(
        self, messages: Messages, tools: Tools = None, *, add_generation_prompt: bool = True, **variables: Any
    ) -> str:
        """Return the rendered conversation.

        Args:
            messages: The messages, in OpenAI's form.
            tools: The tools, in OpenAI's form.
            add_generation_prompt: Open the assistant's turn at the end.
            **variables: Further template variables.

        Raises:
            RequestError: invalid_request: the template failed or exceeded a limit. The message has the reason.
        """
        values = self._values(messages, tools, variables)
        return self._run(self.renderer, values | {"add_generation_prompt": add_generation_prompt})

    def open_turn(self, messages: Messages, tools: Tools = None, **variables: Any) -> tuple[str, str]:
        """Return the conversation rendered with `add_generation_prompt`, and the part that this adds at the end.

        Args:
            messages: The messages, in OpenAI's form.
            tools: The tools, in OpenAI's form.
            **variables: Further template variables.

        Raises:
            RequestError: As from `render`.
        """
        if self.opened_renderer is not None:
            return self._run(self.opened_renderer, self._values(messages, tools, variables))
        from ..sandbox.jinja import find_opening  # few models need it in this process

        opened = self.render(messages, tools, **variables)
        return opened, find_opening(opened, self.try_render(messages, tools, add_generation_prompt=False, **variables))

    def try_render(
        self, messages: Messages, tools: Tools = None, *, add_generation_prompt: bool = True, **variables: Any
    ) -> str:
        """Return the rendered conversation, or an empty text if the template fails.

        Args:
            messages: The messages, in OpenAI's form.
            tools: The tools, in OpenAI's form.
            add_generation_prompt: Open the assistant's turn at the end.
            **variables: Further template variables.

        Raises:
            RequestError: invalid_request: the template exceeded a limit.
        """
        values = self._values(messages, tools, variables)
        try:
            return self.renderer(**values, add_generation_prompt=add_generation_prompt)
        except LimitExceeded as limit:
            raise self._limit_error(limit) from None
        except Exception:
            return ""

    def render_ahead(self, probes: Iterable["Probe"]) -> None:
        """Render small conversations in one call, so that `probe` has their texts.

        Args:
            probes: The conversations.
        """
        values = [self._probe_values(probe) for probe in probes]
        if values and self.batch_renderer is not None:
            texts = zip(values, self.batch_renderer(values), strict=True)
            self.ahead.update({repr(given): text for given, text in texts if text is not None})

    def probe(self, probe: "Probe") -> str:
        """Return a small conversation as from `try_render`.

        Args:
            probe: The conversation.

        Raises:
            RequestError: invalid_request: the template exceeded a limit.
        """
        if (text := self.ahead.get(repr(self._probe_values(probe)))) is not None:
            return text
        opens = probe.add_generation_prompt
        return self.try_render(probe.messages, probe.tools, add_generation_prompt=opens, **probe.variables)

    def _probe_values(self, probe: "Probe") -> dict[str, Any]:
        values = self._values(probe.messages, probe.tools, probe.variables)
        return values | {"add_generation_prompt": probe.add_generation_prompt}

    def check_variables(self, variables: Iterable[str]) -> None:
        """Refuse variables that this template ignores, or that have a field of their own.

        Raises:
            RequestError: invalid_request.
        """
        for name in variables:
            field = f"template_args.{name}"
            if name in RESERVED_VARIABLES:
                problem = f"{field}: is written by the request's own field `{name}`"
                raise RequestError("invalid_request", problem, field=field)
            if self.variables is not None and name not in self.variables:
                known = ", ".join(sorted(self.variables - RESERVED_VARIABLES)) or "none"
                problem = f"{field}: the chat template has no such variable; it has: {known}"
                raise RequestError("invalid_request", problem, field=field)

    def _values(self, messages: Messages, tools: Tools, variables: Mapping[str, Any]) -> dict[str, Any]:
        tools = self.no_tools if tools is None else tools
        values = {"messages": messages, "tools": tools, **variables}
        if self.variables is not None and {"functions", "datetime"} <= self.variables:  # FireFunction
            functions = json.dumps([tool["function"] for tool in tools or ()], indent=4)
            values = {"functions": functions, "datetime": date.today().isoformat()} | values
        return values

    def _run(self, write: Callable[..., T], values: dict[str, Any]) -> T:
        try:
            return write(**values)
        except LimitExceeded as limit:
            raise self._limit_error(limit) from None
        except Exception as error:  # templates are programs, and raise what they like
            # The messages are at fault if the template refuses them on purpose, and otherwise the template.
            refused = isinstance(error, TemplateError) and error.raised_on_purpose
            words = f"fails on these messages: {error or type(error).__name__}"
            raise self._error("chat_template" if self.from_request and not refused else "messages", words) from None

    def _limit_error(self, limit: LimitExceeded) -> RequestError:
        return self._error("chat_template" if self.from_request else "messages", str(limit))

    def _error(self, field: str, words: str) -> RequestError:
        whose = "the given" if self.from_request else "this model's"
        return RequestError("invalid_request", f"{field}: {whose} chat template {words}", field=field)


def select_template(tokenizer: "Tokenizer", request_template: str | None, *, tools: bool) -> ChatTemplate:
    """Return the template for a request.

    Args:
        tokenizer: The model's tokenizer, which has the model's templates.
        request_template: The request's own template, in Jinja; None to use the model's.
        tools: The request has tools. Some models have a separate template for these.

    A model without a template gets `ROLE_CONTENT_LINES`.

    Raises:
        RequestError: invalid_request: the request's template is not Jinja; unsupported: the model's is not.
    """
    tokens = tuple((name, text) for name, text in tokenizer.special_tokens_map.items() if isinstance(text, str))
    if request_template is not None:
        return _load_jinja(request_template, tokens, True)
    if not tokenizer.has_chat_template:
        return _load_jinja(ROLE_CONTENT_LINES, tokens, False)
    if tokenizer.renderer is not None:
        return _wrap_renderer(tokenizer.renderer, tokenizer.renders_tokens)
    try:
        source = tokenizer.get_chat_template(tools=tools)
    except ValueError as error:
        raise RequestError("unsupported", f"this model's chat templates: {error}") from None
    return _load_jinja(source, tokens, False)


@lru_cache(maxsize=4)
def _load_jinja(source: str, tokens: tuple[tuple[str, str], ...], from_request: bool) -> ChatTemplate:
    sandbox = SANDBOXES[from_request]
    try:
        found = sandbox.ask({"subject": "template", "source": source})
    except LimitExceeded as limit:
        found = {"error": f"it {limit}"}
    if "error" in found:
        line = found.get("line")
        problem = f"is not valid Jinja{f', line {line}' if line else ''}: {found['error']}"
        if from_request:
            raise RequestError("invalid_request", f"chat_template: {problem}", field="chat_template")
        raise RequestError("unsupported", f"this model's chat template {problem}; give a chat_template")

    def ask(subject: str, values: dict[str, Any]) -> dict[str, Any]:
        answer = sandbox.ask({"subject": subject, "source": source, "values": {**dict(tokens), **values}})
        if "exhausted" in answer:
            raise LimitExceeded(answer["exhausted"])
        if "error" in answer:
            raise TemplateError(answer["error"], raised_on_purpose=answer["refused"])
        return answer

    def write(**values: Any) -> str:
        return ask("render", values)["text"]

    def write_opened(**values: Any) -> tuple[str, str]:
        answer = ask("opened", values)
        return answer["text"], answer["opening"]

    def write_batch(batch: Sequence[dict[str, Any]]) -> list[str | None]:
        try:
            answer = sandbox.ask(
                {"subject": "batch", "source": source, "values": [{**dict(tokens), **v} for v in batch]}
            )
        except LimitExceeded:  # each alone may be within the limits
            return [None] * len(batch)
        return answer["texts"]

    variables = frozenset(found["variables"])
    return ChatTemplate(write, source, variables, from_request, write_opened, batch_renderer=write_batch)


@lru_cache(maxsize=1)
def _wrap_renderer(renderer: Callable[..., Any], renders_tokens: bool) -> ChatTemplate:
    def write(*, messages: Messages, **values: Any) -> str:
        return renderer(messages, **values, **({"tokenize": False} if renders_tokens else {}))

    return ChatTemplate(write)
