"""From a request to its prompt: the text, its tokens, and the places of media among them.

The chat template writes a conversation. What it knows no form for is put into the messages' text: tools and calls,
system messages, other roles.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby, takewhile
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from lmwire_protocol import Chat, Generate, RequestError, Tokenize, Tool

from ..media import MediaKind
from ..models.tokenizer import Tokenizer
from ..output_parsing import FAMILIES, REASONING, Syntax, start_state
from ..tool_parsers import ToolFormat, WrittenCall
from .chat_template import Tools, select_template
from .infill import InfillPrompts
from .python_tool_signatures import signature
from .reasoning import ReasoningSwitch
from .template_traits import ANSWER, USER, TemplateTraits, probe_template, writes_placeholder, writes_role
from .tokenization import Encoder, check_token_ids
from .turns import MEDIA_MARKERS, ROLES, Turn, read_turns


class MediaExpander(Protocol):
    """The media of one multimodal model, as its prompts need it."""

    @property
    def placeholders(self) -> Mapping[MediaKind, str]:
        """The text that stands for one media input in a rendered conversation, for each kind that the model takes."""
        ...

    def expand_placeholders(self, text: str, media_inputs: Sequence[Any], /) -> str:
        """Return a rendered conversation with each placeholder replaced by the text of its media input.

        Args:
            text: The rendered conversation.
            media_inputs: The request's media, in order.

        Raises:
            RequestError: invalid_request: the numbers of placeholders and of media inputs differ.
        """
        ...

    def find_layout(self, tokens: list[int], media_inputs: Sequence[Any], /) -> Any:
        """Return the places of the media inputs among a prompt's tokens, or None without media."""
        ...


class Prompt(Struct, frozen=True):
    """The input to the model."""

    tokens: list[int]
    """Token ids; at least one."""
    text: str
    """The text of the tokens; empty if `generate` has token ids."""
    opening: str = ""
    """The end of the text that belongs to the assistant's turn; empty for `generate`."""
    media_layout: Any = None
    """The places of media among the tokens, from `MediaExpander.find_layout`; None without media."""
    effort_budget: int | None = None
    """The reasoning budget that stands for an effort which the template does not take, in tokens; None without."""


def build_prompt(
    request: Generate | Chat | Tokenize,
    encoder: Encoder,
    vocab_size: int,
    syntax: Syntax,
    media: MediaExpander | None = None,
    media_inputs: Sequence[Any] = (),
    infill: InfillPrompts | None = None,
) -> Prompt:
    """Return the prompt of a request.

    Args:
        request: The request.
        encoder: The model's tokenizer, with its limits.
        vocab_size: Size of the model's vocabulary, in tokens.
        syntax: The model's output syntax.
        media: The media of a multimodal model; None for a text model.
        media_inputs: The request's images and sounds, in order.
        infill: Builds the prompts with a gap; None for a model that fills none.

    Raises:
        RequestError: invalid_request, unsupported, context_overflow, out_of_memory.
    """
    if isinstance(request, Generate) and request.suffix is not None:
        if infill is None:
            problem = "suffix: this model's vocabulary has no tokens around a gap; load a model that fills gaps"
            raise RequestError("unsupported", f"{problem}, such as Qwen2.5-Coder", field="suffix")
        return Prompt(infill.build(request, request.suffix), "")
    if isinstance(request, Generate) and not isinstance(request.prompt, str):
        return Prompt(check_token_ids(list(request.prompt), vocab_size, "prompt"), "")
    if isinstance(request, Tokenize) and request.token_ids is not None:
        tokens = check_token_ids(request.token_ids, vocab_size, "token_ids")
        return Prompt(tokens, encoder.decode(tokens, "token_ids"))
    field, opening, effort_budget = "messages", "", None
    if isinstance(request, Generate | Tokenize) and isinstance(request.prompt, str):
        field, text = "prompt", request.prompt
        wants_special_tokens = isinstance(request, Generate) or request.add_special_tokens
        adds_special_tokens = wants_special_tokens and not _has_bos_token(text, encoder.tokenizer)
    else:
        assert isinstance(request, Chat | Tokenize)
        renderer = ConversationRenderer(request, encoder.tokenizer, syntax, media)
        text, opening = renderer.render()
        effort_budget = renderer.effort_budget
        adds_special_tokens = renderer.adds_special_tokens
        if media and media_inputs:
            text = media.expand_placeholders(text, media_inputs)
    tokens = _tokenize(request, text, field, encoder, adds_special_tokens=adds_special_tokens, cuts=not media_inputs)
    _check_tokens(tokens, vocab_size, field)
    layout = media.find_layout(tokens, media_inputs) if media else None
    return Prompt(tokens, text, opening, layout, effort_budget)


def _has_bos_token(text: str, tokenizer: Tokenizer) -> bool:
    """Return whether a text starts with the beginning-of-text token, so that the tokenizer must not add another."""
    return tokenizer.bos_token is not None and text.startswith(tokenizer.bos_token)


def _tokenize(
    request: Generate | Chat | Tokenize,
    text: str,
    field: str,
    encoder: Encoder,
    *,
    adds_special_tokens: bool,
    cuts: bool,
) -> list[int]:
    """Return a text's tokens. If the request truncates and `cuts` is true, a large text's middle may be missing."""
    truncate = "none" if isinstance(request, Tokenize) else request.truncate
    if truncate != "none" and cuts:
        return encoder.encode_ends(text, field, add_special_tokens=adds_special_tokens, truncate=truncate)
    allow_overflow = isinstance(request, Tokenize) or truncate != "none"
    return encoder.encode(text, field, add_special_tokens=adds_special_tokens, allow_overflow=allow_overflow)


def _check_tokens(tokens: list[int], vocab_size: int, field: str) -> None:
    if not tokens:
        raise RequestError("invalid_request", f"{field}: comes to no tokens; give the model something", field=field)
    if max(tokens) >= vocab_size:
        problem = f"{field}: holds a special token that the tokenizer knows and this model, of {vocab_size}, does not"
        raise RequestError("invalid_request", problem, field=field)


# The text of a conversation.

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
        self._request = request
        self._syntax = syntax
        self._media = media
        self._tools: Sequence[Tool] = request.tools if isinstance(request, Tokenize) else request.callable_tools
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
        return tool_format is not None and (
            (self._syntax.assumes_tools and not self._template.from_request)
            or (tool_format.name in ("json_tools", "gemma3_code") and tool_format.start not in self._template.source)
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
        if last.text and start_state(self._syntax, opening.removesuffix(last.text)) == REASONING:
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
        return self._syntax.states[start_state(self._syntax, opening)].kind == "header"

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


# Conversations for templates without tools, without system messages, or with strictly alternating roles.

_BREAK = "\n\n"


def can_put_calls_into_text(tool_format: ToolFormat) -> bool:
    """Return whether the prompt's text can describe this format of tool calls to the model."""
    return tool_format.name not in FAMILIES


def put_tools_into_text(
    turns: Sequence[Turn], tools: Sequence[Tool], tool_format: ToolFormat, *, calls: bool = True, results: bool = True
) -> list[Turn]:
    """Return the turns with tools in the system text, calls in the assistant's text and results in the user's text.

    Args:
        turns: The conversation.
        tools: The tools to describe; empty to describe none.
        tool_format: The format of calls.
        calls: Put calls into text. Otherwise, the template writes them.
        results: Put results into text. Otherwise, the template writes them.
    """
    python = _is_python(tool_format)
    folded = _leading_system_turns(turns)
    rest = turns[len(folded) :]
    if tools:
        folded.append(Turn("system", _python_tools(tools) if python else _json_tools(tools, tool_format)))
    for role, group in groupby(rest, key=lambda turn: turn.role):
        if role == "tool" and results:
            folded.append(Turn("user", "\n".join(_result_text(turn, python=python) for turn in group)))
        elif calls:
            folded += [_put_calls_into_text(turn, tool_format) for turn in group]
        else:
            folded += group
    return folded


def put_roles_into_text(turns: Sequence[Turn], writes_role: Callable[[str], bool]) -> list[Turn]:
    """Return the turns with roles that the template does not know in the user's text.

    Args:
        turns: The conversation.
        writes_role: Returns whether the template writes messages of a role.
    """
    unknown = {turn.role for turn in turns if turn.role not in ROLES}
    unknown = {role for role in unknown if not writes_role(role)}
    return [
        replace(turn, role="user", text=f"{turn.role}: {turn.text}") if turn.role in unknown else turn for turn in turns
    ]


def adapt_roles(turns: Sequence[Turn], traits: TemplateTraits) -> list[Turn]:
    """Return the turns with roles that the template accepts.

    System messages become one at the front, or part of the user's text. Neighbours of one role are joined if needed.
    If the template demands a user's turn before the assistant's first, an empty one opens the conversation.
    """
    front = _leading_system_turns(turns)
    rest = list(turns[len(front) :])
    if not traits.late_system:
        rest = [replace(turn, role="user") if turn.role == "system" else turn for turn in rest]
    if rest and rest[0].role == "assistant" and not traits.assistant_first:
        rest = [Turn("user", ""), *rest]
    if front:
        system = Turn("system", _BREAK.join(turn.text for turn in front if turn.text))
        rest = [system, *rest] if traits.system else _prepend_to_user(system.text, rest)
    return rest if traits.same_role_neighbours else _join_neighbours(rest)


def _leading_system_turns(turns: Sequence[Turn]) -> list[Turn]:
    """Return the system messages at the start of a conversation."""
    return list(takewhile(lambda turn: turn.role == "system", turns))


def _prepend_to_user(text: str, turns: list[Turn]) -> list[Turn]:
    if not text:
        return turns or [Turn("user", "")]
    if turns and turns[0].role == "user":
        return [replace(turns[0], text=_BREAK.join(filter(None, (text, turns[0].text)))), *turns[1:]]
    return [Turn("user", text), *turns]


def _join_neighbours(turns: Sequence[Turn]) -> list[Turn]:
    joined: list[Turn] = []
    for turn in turns:
        if joined and _are_neighbours(joined[-1], turn):
            before = joined.pop()
            text = _BREAK.join(text for text in (before.text, turn.text) if text)
            reasoning = _BREAK.join(text for text in (before.reasoning, turn.reasoning) if text)
            joined.append(replace(turn, text=text, reasoning=reasoning))
        else:
            joined.append(turn)
    return joined


def _are_neighbours(before: Turn, turn: Turn) -> bool:
    return turn.role == before.role and turn.role in ("user", "assistant") and not (before.calls or turn.calls)


def _put_calls_into_text(turn: Turn, tool_format: ToolFormat) -> Turn:
    if not turn.calls:
        return turn
    calls = tool_format.write([WrittenCall(call.name, call.arguments, call.id) for call in turn.calls])
    text = turn.text.removesuffix("\n")
    return replace(turn, text=f"{text}\n{calls}" if text else calls, calls=())


def _json_tools(tools: Sequence[Tool], tool_format: ToolFormat) -> str:
    described = "\n".join(_json(_described_tool(tool)) for tool in tools)
    if tool_format.name == "json_tools":
        how = (
            "To call a function, answer with its name and its arguments as JSON between these marks, and nothing else:"
        )
        example = (
            f'{tool_format.start}\n{{"name": <function-name>, "arguments": <args-json-object>}}\n{tool_format.end}'
        )
    else:
        how = "To call a function, answer with its name and its arguments in this form, and nothing else:"
        example = tool_format.write([WrittenCall("function-name", {"argument-name": "value"}, "000000000")])
    return (
        "# Tools\n\nYou may call these functions, each described by a line of JSON:\n"
        f"<tools>\n{described}\n</tools>\n\n{how}\n{example}\n"
        "Its result comes between <tool_response> and </tool_response>."
    )


def _described_tool(tool: Tool) -> dict[str, object]:
    function = tool.function
    fields = {"name": function.name, "description": function.description, "parameters": function.parameters}
    return {name: value for name, value in fields.items() if value}


def _python_tools(tools: Sequence[Tool]) -> str:
    """Return Google's instruction for Gemma 3, and the tools as Python functions.

    Google's text ends with a request to think before a ```tool_call```. It is left out: calls come in ```tool_code```.

    See https://www.philschmid.de/gemma-function-calling.
    """
    signatures = _BREAK.join(signature(tool.function) for tool in tools)
    return (
        "At each turn, if you decide to invoke any of the function(s), it should be wrapped with ```tool_code```. "
        "The python methods described below are imported and available, you can only use defined methods. "
        "The generated code should be readable and efficient. "
        "The response to a method will be wrapped in ```tool_output``` "
        "use it to call more tools or generate a helpful, friendly response.\n\n"
        f"The following Python methods are available:\n\n```python\n{signatures}\n```"
    )


def _result_text(turn: Turn, *, python: bool) -> str:
    if python:
        return f"```tool_output\n{turn.text}\n```"
    return f"<tool_response>\n{turn.text}\n</tool_response>"


def _is_python(tool_format: ToolFormat) -> bool:
    return tool_format.name == "gemma3_code"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
