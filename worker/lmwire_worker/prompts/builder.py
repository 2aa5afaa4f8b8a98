"""Requests to prompts: the text that a model is given, and its tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from mlx_lm.tokenizer_utils import TokenizerWrapper

from lmwire_protocol import Chat, Generate, RequestError, Tokenize, Tool

from ..output_parsing import Syntax
from ..tool_parsers import ToolFormat
from .chat_template import Tools, find_template
from .media_notes import MARKS
from .reasoning import Reasoning
from .template_fallbacks import fold_roles, fold_tools, takes_folding
from .template_probe import ANSWER, USER, find_traits, takes_part
from .tokenization import Encoder
from .turns import Turn, read_turns

if TYPE_CHECKING:
    from ..multimodal.media_input import Picture
    from ..multimodal.placeholders import ImageLayout
    from ..multimodal.processor import Sight

_END: Final = "qvEndOfWhatIsContinued"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is given."""

    tokens: list[int]
    """At least one."""
    text: str
    """What the tokens stand for; empty for token ids."""
    opening: str = ""
    """The end of the text: as much as the assistant's turn has of it. Empty for `generate`."""
    images: "ImageLayout | None" = None
    """Those among the tokens."""


def read_prompt(
    request: Generate | Chat | Tokenize,
    encoder: Encoder,
    vocab_size: int,
    syntax: Syntax,
    sight: "Sight | None" = None,
    pictures: "Sequence[Picture]" = (),
) -> Prompt:
    """The prompt of a request.

    Args:
        request: The request.
        encoder: The model's tokenizer, with its bounds.
        vocab_size: Of the model.
        syntax: The model's marks.
        sight: Of a model that sees.
        pictures: The request's images, in their order.

    Raises:
        RequestError: invalid_request, unsupported, context_overflow, out_of_memory.
    """
    tokenizer = encoder.tokenizer
    if isinstance(request, Generate) and not isinstance(request.prompt, str):
        return Prompt(_checked(list(request.prompt), vocab_size), "")
    if isinstance(request, Generate | Tokenize) and isinstance(request.prompt, str):
        text, opening, field = request.prompt, "", "prompt"
        # A prompt that brings its own beginning-of-text token gets no second one.
        begins = tokenizer.bos_token is None or not text.startswith(tokenizer.bos_token)
    else:
        assert isinstance(request, Chat | Tokenize)
        text, opening = _Conversation(request, tokenizer, syntax, sight).render()
        if sight and pictures:
            text = sight.expand(text, pictures)
        field, begins = "messages", False  # templates write that token themselves
    if isinstance(request, Tokenize) or request.truncate == "none" or pictures:  # one with images is never cut
        tokens = encoder.encode(text, begins=begins, whole=isinstance(request, Tokenize) or request.truncate != "none")
    else:
        tokens = encoder.encode_ends(text, begins=begins, truncate=request.truncate)
    if not tokens:
        raise RequestError("invalid_request", f"{field}: comes to no tokens; give the model something", field=field)
    if max(tokens) >= vocab_size:
        problem = f"{field}: holds a special token that the tokenizer knows and this model, of {vocab_size}, does not"
        raise RequestError("invalid_request", problem, field=field)
    return Prompt(tokens, text, opening, sight.layout(tokens, pictures) if sight else None)


def _checked(tokens: list[int], vocab_size: int) -> list[int]:
    if max(tokens) >= vocab_size:
        index = next(index for index, token in enumerate(tokens) if token >= vocab_size)
        problem = f"prompt[{index}]: {tokens[index]} is no token of this model, whose vocabulary has {vocab_size}"
        raise RequestError("invalid_request", problem, field=f"prompt[{index}]")
    return tokens


class _Conversation:
    """A request's messages on their way into its template."""

    def __init__(
        self, request: Chat | Tokenize, tokenizer: TokenizerWrapper, syntax: Syntax, sight: "Sight | None"
    ) -> None:
        callable_tools = isinstance(request, Tokenize) or request.tool_choice != "none"
        self._request = request
        self._syntax = syntax
        self._sight = sight
        self._tools: Sequence[Tool] = request.tools if callable_tools else ()
        self._template = find_template(tokenizer, request.chat_template, tools=bool(self._tools))
        self._traits = find_traits(self._template)
        self._reasoning = Reasoning(request.reasoning, self._template, self._traits.shape, syntax)

    def render(self) -> tuple[str, str]:
        """The prompt's text, and the part of it that is the assistant's turn."""
        prefix = self._request.prefix
        variables = self._variables()
        turns, tools = self._turns()
        if not self._request.add_generation_prompt:
            text, opening = self._continued(turns, tools, variables)
            return text + prefix, opening + prefix
        text, opening = self._opened(turns, tools, variables)
        start = self._reasoning.start(opening, prefix=prefix, calls=bool(self._tools))
        if prefix and self._in_header(opening + start + prefix):
            start += self._answer_head(opening)
        return text + start + prefix, opening + start + prefix

    def _variables(self) -> dict[str, Any]:
        given = self._request.template_args
        self._template.check(given)
        switch = self._reasoning.variables()
        for name in switch.keys() & given.keys():
            problem = f"template_args.{name}: says what `reasoning` says too; give one of them"
            raise RequestError("invalid_request", problem, field=f"template_args.{name}")
        return switch | given

    def _turns(self) -> tuple[list[Turn], list[dict[str, Any]] | None]:
        """What the template gets: the turns, and the tools that are not told of in them."""
        strict_media = isinstance(self._request, Chat) and self._request.strict_media
        assert self._request.messages is not None
        takes = self._sight.placeholders if self._sight else {}
        turns = read_turns(self._request.messages, strict_media=strict_media, takes=takes)
        for kind, placeholder in takes.items():
            if not takes_part(self._template, kind, placeholder):
                turns = [replace(turn, text=turn.text.replace(MARKS[kind], f"{placeholder}\n")) for turn in turns]
        tools = [_described(tool) for tool in self._tools] or None
        if self._folds_tools(turns):
            assert self._syntax.tools is not None
            turns, tools = fold_tools(turns, self._tools, self._syntax.tools), None
        elif tools and self._traits.tools_need_system and turns[0].role != "system":
            turns = [Turn("system", ""), *turns]
        return fold_roles(turns, self._traits), tools

    def _folds_tools(self, turns: Sequence[Turn]) -> bool:
        """Whether tools go into the text, because the template has no place for them.

        Raises:
            RequestError: unsupported, when the model cannot be told of them in text either.
        """
        if not self._tools and not any(turn.calls or turn.role == "tool" for turn in turns):
            return False
        tool_format = self._syntax.tools
        if self._tools and tool_format is None:
            problem = "tools: it is not known how this model writes a call, so none could be read; send no tools"
            raise RequestError("unsupported", problem, field="tools")
        if self._traits.tools and not self._is_taught(tool_format):
            return False
        if tool_format is None or not takes_folding(tool_format):
            field = "tools" if self._tools else "messages"
            problem = f"{field}: the chat template knows no tools, and this model's calls cannot be taught in text"
            raise RequestError("unsupported", problem, field=field)
        return True

    def _is_taught(self, tool_format: ToolFormat | None) -> bool:
        """Whether calls are read in a format that the template does not write: the text must teach it."""
        return tool_format is not None and takes_folding(tool_format) and tool_format.start not in self._template.source

    def _opened(self, turns: Sequence[Turn], tools: Tools, variables: dict[str, Any]) -> tuple[str, str]:
        """The conversation with the assistant's turn begun, and its beginning."""
        shape = self._traits.shape
        text, opening = self._template.open_turn(shape.messages(turns), tools, **variables)
        if opening:
            return text, opening
        # It opens the turn in any case, or ends the conversation otherwise: look behind the last message.
        _, mark, opening = self._template.attempt(shape.messages(_marked(turns)), tools, **variables).rpartition(_END)
        return text, opening if mark and text.endswith(opening) else ""

    def _continued(self, turns: Sequence[Turn], tools: Tools, variables: dict[str, Any]) -> tuple[str, str]:
        """The conversation up to the last character of its last message."""
        *before, last = turns
        if last.calls:
            problem = "add_generation_prompt: the last message calls tools, so there is no text to continue; send true"
            raise RequestError("invalid_request", problem, field="add_generation_prompt")
        shape = self._traits.shape
        marked = self._template.render(shape.messages(_marked(turns)), tools, add_generation_prompt=False, **variables)
        text, mark, _ = marked.rpartition(_END)
        if not mark:
            problem = "add_generation_prompt: the chat template leaves out the last message, which was to be continued"
            raise RequestError("invalid_request", problem, field="add_generation_prompt")
        if last.role != "assistant":
            return text, ""
        closed = self._template.attempt(shape.messages(before), tools, add_generation_prompt=False, **variables)
        return text, text.removeprefix(closed)

    def _in_header(self, opening: str) -> bool:
        """Whether the model's text begins in the header of a message, where a prefix would be no part of the reply."""
        return self._syntax.states[self._syntax.start_state(opening)].kind == "header"

    def _answer_head(self, opening: str) -> str:
        """What the template writes between the opening and an assistant's text."""
        turns = [Turn("user", USER), Turn("assistant", ANSWER)]
        text = self._template.attempt(self._traits.shape.messages(turns), add_generation_prompt=False)
        _, found, head = text.partition(ANSWER)[0].rpartition(opening)
        return head if found else ""


def _described(tool: Tool) -> dict[str, Any]:
    """A tool as templates take it."""
    function = tool.function
    parameters = function.parameters or {"type": "object", "properties": {}}
    fields = {"name": function.name, "description": function.description, "parameters": parameters}
    return {"type": "function", "function": fields}


def _marked(turns: Sequence[Turn]) -> list[Turn]:
    """The same turns, with a mark behind the last one's text."""
    return [*turns[:-1], replace(turns[-1], text=turns[-1].text + _END)]
