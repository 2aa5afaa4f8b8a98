"""The text of a conversation: messages, tools and the reasoning switch, written by the chat template."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from lmwire_protocol import Chat, RequestError, Tokenize, Tool

from ..models.tokenizer import Tokenizer
from ..output_parsing import REASONING, Syntax
from ..tool_parsers import ToolFormat
from .chat_template import Tools, select_template
from .media_expander import MediaExpander
from .media_notes import MEDIA_MARKERS
from .reasoning import ReasoningSwitch
from .template_fallbacks import adapt_roles, can_put_calls_into_text, put_roles_into_text, put_tools_into_text
from .template_probe import ANSWER, USER, probe_template, writes_placeholder, writes_role
from .turns import Turn, read_turns

_CONTINUE: Final = "continue_final_message"
_END_MARKER: Final = "qvEndOfWhatIsContinued"
"""Follows the last message's text, to find where that ends in the rendered conversation."""


class ConversationRenderer:
    """Renders one request's messages with its chat template.

    Args:
        request: The request, with messages.
        tokenizer: The model's tokenizer, which has the model's own templates.
        syntax: The model's output syntax.
        media: The media of a multimodal model; None for a text model.

    Raises:
        RequestError: invalid_request, unsupported: the template cannot be used.
    """

    def __init__(
        self, request: Chat | Tokenize, tokenizer: Tokenizer, syntax: Syntax, media: MediaExpander | None
    ) -> None:
        callable_tools = isinstance(request, Tokenize) or request.tool_choice != "none"
        self._request = request
        self._syntax = syntax
        self._media = media
        self._tools: Sequence[Tool] = request.tools if callable_tools else ()
        self._template = select_template(tokenizer, request.chat_template, tools=bool(self._tools))
        self._traits = probe_template(self._template)
        self._template = self._traits.template
        self._reasoning = ReasoningSwitch(request.reasoning, request.reasoning_effort, self._traits, syntax)

    @property
    def effort_budget(self) -> int | None:
        """Return the reasoning budget that stands for an effort which the template does not take; None without."""
        return self._reasoning.effort_budget

    @property
    def adds_special_tokens(self) -> bool:
        """Return whether the tokenizer must add the tokens around a text, because the template does not."""
        return not self._template.writes_special_tokens

    def render(self) -> tuple[str, str]:
        """Return the prompt's text, and the end of it that belongs to the assistant's turn.

        Raises:
            RequestError: invalid_request, unsupported.
        """
        prefix = self._request.prefix
        variables = self._template_variables()
        turns, tools = self._read_turns()
        if self._request.continue_final_message:
            text, opening = self._render_continued(turns, tools, variables)
            return text + prefix, opening + prefix
        if not self._request.add_generation_prompt:
            messages = self._traits.message_format.messages(turns)
            return self._template.render(messages, tools, add_generation_prompt=False, **variables) + prefix, prefix
        text, opening = self._render_opened(turns, tools, variables)
        start = self._reasoning.opening_text(opening, prefix=prefix, may_call=bool(self._tools))
        if prefix and self._starts_in_header(opening + start + prefix):
            start += self._content_header(opening)
        return text + start + prefix, opening + start + prefix

    def _template_variables(self) -> dict[str, Any]:
        given = self._request.template_args
        self._template.check_variables(given)
        switch = self._reasoning.variables()
        for name in sorted(name for name in switch.keys() & given.keys() if switch[name] != given[name]):
            problem = f"template_args.{name}: contradicts `reasoning` or `reasoning_effort`; leave out one of them"
            raise RequestError("invalid_request", problem, field=f"template_args.{name}")
        return switch | given

    def _read_turns(self) -> tuple[list[Turn], list[dict[str, Any]] | None]:
        """Return the turns and the tools for the template. Tools that the turns describe are not among them."""
        strict_media = isinstance(self._request, Chat) and self._request.strict_media
        assert self._request.messages is not None
        placeholders = self._media.placeholders if self._media else {}
        turns = read_turns(self._request.messages, strict_media=strict_media, supported_kinds=placeholders)
        turns = put_roles_into_text(turns, partial(writes_role, self._template))
        for kind, placeholder in placeholders.items():
            if not writes_placeholder(self._template, kind, placeholder):
                turns = [
                    replace(turn, text=turn.text.replace(MEDIA_MARKERS[kind], f"{placeholder}\n")) for turn in turns
                ]
        tools = [_tool_schema(tool) for tool in self._tools] or None
        has_calls = any(turn.calls or turn.role == "tool" for turn in turns)
        if not self._tools and not has_calls:
            return adapt_roles(turns, self._traits), None
        shows_another = self._must_describe_format()
        describes = shows_another or not self._traits.tools
        calls = shows_another or not self._traits.calls
        results = shows_another or not self._traits.results
        if (describes and self._tools) or (has_calls and (calls or results)):
            described = self._tools if describes else ()
            turns = put_tools_into_text(turns, described, self._text_format(), calls=calls, results=results)
            tools = None if describes else tools
        if tools and self._traits.tools_need_system and (not turns or turns[0].role != "system"):
            turns = [Turn("system", ""), *turns]
        return adapt_roles(turns, self._traits), tools

    def _text_format(self) -> ToolFormat:
        """Return the format of the calls that the messages must describe or write, because the template does not.

        Raises:
            RequestError: unsupported: text cannot do that.
        """
        tool_format = self._syntax.tools
        if tool_format is None:
            problem = "tools: it is not known how this model writes a call, so none could be read; send no tools"
            raise RequestError("unsupported", problem, field="tools")
        if not can_put_calls_into_text(tool_format):
            field = "tools" if self._tools else "messages"
            problem = f"{field}: the chat template knows no tools, and this model's calls cannot be taught in text"
            raise RequestError("unsupported", problem, field=field)
        return tool_format

    def _must_describe_format(self) -> bool:
        """Return whether text must describe the format that calls are parsed in: the template shows another one."""
        tool_format = self._syntax.tools
        return (
            tool_format is not None
            and tool_format.name in ("json_tools", "gemma3_code")
            and tool_format.start not in self._template.source
        )

    def _render_opened(self, turns: Sequence[Turn], tools: Tools, variables: dict[str, Any]) -> tuple[str, str]:
        """Return the conversation with the assistant's turn opened, and the part that opens it."""
        form = self._traits.message_format
        text, opening = self._template.open_turn(form.messages(turns), tools, **variables)
        if opening or not turns:
            return text, opening
        # It always opens the turn, or closes the conversation differently: look after the last message.
        _, mark, opening = self._template.try_render(form.messages(_mark_end(turns)), tools, **variables).rpartition(
            _END_MARKER
        )
        return text, opening if mark and text.endswith(opening) else ""

    def _render_continued(self, turns: Sequence[Turn], tools: Tools, variables: dict[str, Any]) -> tuple[str, str]:
        """Return the conversation up to the last character of its last message, and the assistant's part of it.

        Raises:
            RequestError: invalid_request: the last message has no text to continue.
        """
        *before, last = turns
        if last.calls:
            problem = f"{_CONTINUE}: the last message calls tools, so there is no text to continue; leave it out"
            raise RequestError("invalid_request", problem, field=_CONTINUE)
        if last.role == "assistant" and last.reasoning and not last.text:
            return self._render_continued_reasoning(before, last.reasoning, tools, variables)
        form = self._traits.message_format
        marked = self._template.render(form.messages(_mark_end(turns)), tools, add_generation_prompt=False, **variables)
        text, mark, _ = marked.rpartition(_END_MARKER)
        if not mark:
            problem = f"{_CONTINUE}: the chat template leaves out the last message; leave this field out"
            raise RequestError("invalid_request", problem, field=_CONTINUE)
        if last.role != "assistant":
            return text, ""
        closed = self._template.try_render(form.messages(before), tools, add_generation_prompt=False, **variables)
        opening = text.removeprefix(closed)
        if last.text and self._syntax.start_state(opening.removesuffix(last.text)) == REASONING:
            # The template opens reasoning for an answer without any: close it before the text.
            head, ends = text.removesuffix(last.text), self._reasoning.closing_text(opening)
            added = f"{last.reasoning}{ends}{last.text}"
            return head + added, opening.removesuffix(last.text) + added
        return text, opening

    def _render_continued_reasoning(
        self, before: Sequence[Turn], reasoning: str, tools: Tools, variables: dict[str, Any]
    ) -> tuple[str, str]:
        """Return the conversation up to the last character of its last message, which is reasoning alone.

        Raises:
            RequestError: invalid_request: the model has no reasoning to continue.
        """
        if not self._syntax.has_reasoning:
            problem = f"{_CONTINUE}: the last message has reasoning alone, and this model does not reason; leave it out"
            raise RequestError("invalid_request", problem, field=_CONTINUE)
        text, opening = self._render_opened(before, tools, variables)
        opened = self._reasoning.open_reasoning(opening) + reasoning
        return text.removesuffix(opening) + opened, opened

    def _starts_in_header(self, opening: str) -> bool:
        """Return whether the answer starts in a message's header, where a prefix would not be part of the content."""
        return self._syntax.states[self._syntax.start_state(opening)].kind == "header"

    def _content_header(self, opening: str) -> str:
        """Return what the template writes between the opening and an assistant's text."""
        turns = [Turn("user", USER), Turn("assistant", ANSWER)]
        text = self._template.try_render(self._traits.message_format.messages(turns), add_generation_prompt=False)
        _, found, head = text.partition(ANSWER)[0].rpartition(opening)
        return head if found else ""


def _tool_schema(tool: Tool) -> dict[str, Any]:
    """Return a tool in OpenAI's form, as templates take it."""
    function = tool.function
    parameters = function.parameters or {"type": "object", "properties": {}}
    fields = {"name": function.name, "description": function.description, "parameters": parameters}
    return {"type": "function", "function": fields}


def _mark_end(turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns with the end marker after the last one's text."""
    return [*turns[:-1], replace(turns[-1], text=turns[-1].text + _END_MARKER)]
