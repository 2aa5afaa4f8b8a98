"""POST /v1/tokenize, /v1/detokenize and /v1/apply-template, as clients of vLLM and llama-server use them.

The two servers have the same paths and different bodies. A request with `content` gets llama-server's response.
"""

from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

from lmwire import Tokens
from lmwire_protocol import events

from ..errors import invalid_field
from ..http.context import RequestContext
from ..http.endpoint import Json, Reply, endpoint
from ..inference.chat import lease_for_prompt
from ..inference.options import (
    TEMPLATE_ALIASES,
    ReasoningEffort,
    effort_options,
    given_fields,
    reasoning_aliases,
    renamed,
)
from ..limits import JsonObject, Messages, TokenList, Tools
from .messages import Message, client_field, wire_messages
from .tools import Tool, wire_tools

Tokenized: TypeAlias = tuple[Tokens, events.ModelDone]
"""The tokens, and the model whose tokens they are."""
_TEMPLATE_FIELDS: Final = (
    "chat_template",
    "template_args",
    "add_generation_prompt",
    "continue_final_message",
    "prefix",
)
_NO_PIECES: Final = "is not supported; POST /detokenize returns the text of tokens"


class TemplateFields(Struct, kw_only=True, forbid_unknown_fields=True):
    """Fields that change the prompt of a conversation, with the meaning of chat completions."""

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    tools: Tools[Tool] | None = None
    chat_template: str | None = None
    template_args: JsonObject | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    prefix: str | None = None
    reasoning_effort: ReasoningEffort | None = None


class TemplateRequest(TemplateFields, kw_only=True, forbid_unknown_fields=True):
    """A conversation to turn into a prompt."""

    messages: Annotated[Messages[Message], Meta(min_length=1)]


class TokenizeRequest(TemplateFields, kw_only=True, forbid_unknown_fields=True):
    """A text or a conversation to tokenize. One of `content`, `prompt` and `messages` is given."""

    content: str | None = None
    """llama-server: a text."""
    add_special: bool | None = None
    """Add the tokens that the tokenizer puts around a text. If absent, they are not added to `content`."""
    parse_special: bool | None = None
    """Must be true: special tokens in a text are always found."""
    with_pieces: bool | None = None
    """Not supported."""

    prompt: str | None = None
    """vLLM: a text."""
    messages: Annotated[Messages[Message], Meta(min_length=1)] | None = None
    """vLLM: a conversation. Only then may the request have the fields that change its prompt."""
    add_special_tokens: bool | None = None
    """Add the tokens that the tokenizer puts around a text. If absent, they are added to `prompt`."""
    return_token_strs: bool | None = None
    """Not supported."""


class RenderedPrompt(Struct, kw_only=True):
    """The text of a prompt, special tokens included, as llama-server returns it."""

    prompt: str


class ContentTokens(Struct, kw_only=True):
    """The tokens of `content`, as llama-server returns them."""

    tokens: list[int]


class PromptTokens(Struct, kw_only=True):
    """The tokens of `prompt` or `messages`, as vLLM returns them."""

    count: int
    """Number of tokens."""
    max_model_len: int
    """Context length in tokens."""
    tokens: list[int]
    token_strs: None = None


class DetokenizeRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Tokens to turn into text."""

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    tokens: TokenList[Annotated[int, Meta(ge=0, le=2**53 - 1)]]


class DetokenizedText(Struct, kw_only=True):
    """The text of tokens, special tokens included."""

    prompt: str
    """vLLM's name of the text."""
    content: str
    """llama-server's name of the same text."""


_ALIASES: Final = {
    **TEMPLATE_ALIASES,
    "enable_thinking": reasoning_aliases(lambda effort: {"reasoning_effort": effort})["enable_thinking"],
    "response_prefix": renamed("prefix"),
}


@endpoint("POST", "/v1/tokenize", aliases=_ALIASES, response_type=PromptTokens | ContentTokens)
async def tokenize(context: RequestContext, body: TokenizeRequest) -> Reply:
    """Turn a text or a conversation into tokens."""
    _check(body)
    if body.content is not None:
        tokens, _ = await _tokenize_text(context, body, "content", add_special_tokens=body.add_special or False)
        return Json(ContentTokens(tokens=tokens.ids))
    if body.messages is not None:
        tokens, model = await _tokenize_messages(context, body, body.messages)
    else:
        adds = body.add_special_tokens is not False
        tokens, model = await _tokenize_text(context, body, "prompt", add_special_tokens=adds)
    return Json(PromptTokens(count=len(tokens.ids), max_model_len=model.context_len, tokens=tokens.ids))


async def _tokenize_text(
    context: RequestContext, body: TokenizeRequest, field: str, *, add_special_tokens: bool
) -> Tokenized:
    """Return the tokens of a text field."""
    async with lease_for_prompt(
        context, body.model, (), {}, rename=lambda name: field if name == "prompt" else name
    ) as (
        lease,
        _,
    ):
        text = getattr(body, field)
        if not (text or add_special_tokens):
            return Tokens([], ""), lease.model  # a worker refuses a prompt without tokens
        return await lease.worker.tokenize(text, add_special_tokens=add_special_tokens), lease.model


async def _tokenize_messages(context: RequestContext, body: TemplateFields, given: list[Message]) -> Tokenized:
    messages = await context.beside_loop(wire_messages, given)
    options = given_fields(body, *_TEMPLATE_FIELDS)
    if body.tools:
        options["tools"] = wire_tools(body.tools)
    if body.continue_final_message and body.add_generation_prompt is None:
        options["add_generation_prompt"] = False
    if body.reasoning_effort is not None:
        options.update(effort_options(body.reasoning_effort))
    async with lease_for_prompt(
        context, body.model, messages, options, rename=lambda field: client_field(given, field)
    ) as (lease, template):
        return await lease.worker.tokenize(messages, **template), lease.model


def _check(body: TokenizeRequest) -> None:
    given = given_fields(body, "content", "prompt", "messages")
    if len(given) != 1:
        raise invalid_field("prompt: give exactly one of `prompt`, `messages` and `content`", "prompt")
    if body.with_pieces:
        raise invalid_field(f"with_pieces: {_NO_PIECES}", "with_pieces")
    if body.return_token_strs:
        raise invalid_field(f"return_token_strs: {_NO_PIECES}", "return_token_strs")
    if body.parse_special is False:
        problem = "must be true: special tokens in a text are always found"
        raise invalid_field(f"parse_special: {problem}", "parse_special")
    if body.messages is not None and body.add_special_tokens:
        problem = "must be false with `messages`: the chat template adds the special tokens"
        raise invalid_field(f"add_special_tokens: {problem}", "add_special_tokens")
    if body.messages is None and (
        misplaced := next(iter(given_fields(body, "tools", "reasoning_effort", *_TEMPLATE_FIELDS)), None)
    ):
        raise invalid_field(f"{misplaced}: goes with `messages`; leave it out", misplaced)


@endpoint("POST", "/v1/apply-template", aliases=_ALIASES, response_type=RenderedPrompt)
async def apply_template(context: RequestContext, body: TemplateRequest) -> Reply:
    """Turn a conversation into a prompt, as llama.cpp's server does."""
    tokens, _ = await _tokenize_messages(context, body, body.messages)
    return Json(RenderedPrompt(prompt=tokens.text))


@endpoint("POST", "/v1/detokenize", response_type=DetokenizedText)
async def detokenize(context: RequestContext, body: DetokenizeRequest) -> Reply:
    """Turn tokens into text."""
    async with lease_for_prompt(
        context, body.model, (), {}, rename=lambda field: field.replace("token_ids", "tokens", 1)
    ) as (lease, _):
        text = await lease.worker.detokenize(body.tokens) if body.tokens else ""
    return Json(DetokenizedText(prompt=text, content=text))
