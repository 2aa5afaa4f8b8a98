"""From a request to its prompt: the text, its tokens, and the places of media among them."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from lmwire_protocol import Chat, Generate, RequestError, Tokenize

from ..models.tokenizer import Tokenizer
from ..output_parsing import Syntax
from .conversation import ConversationRenderer
from .infill import InfillPrompts
from .media_expander import MediaExpander
from .tokenization import Encoder


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
        return Prompt(_check_token_ids(list(request.prompt), vocab_size, "prompt"), "")
    if isinstance(request, Tokenize) and request.token_ids is not None:
        tokens = _check_token_ids(request.token_ids, vocab_size, "token_ids")
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


def _check_token_ids(tokens: list[int], vocab_size: int, field: str) -> list[int]:
    if max(tokens) >= vocab_size:
        index = next(index for index, token in enumerate(tokens) if token >= vocab_size)
        problem = f"{field}[{index}]: {tokens[index]} is not a token of this model, whose vocabulary has {vocab_size}"
        raise RequestError("invalid_request", problem, field=f"{field}[{index}]")
    return tokens
