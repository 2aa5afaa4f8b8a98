"""Commands, made from the arguments of the workers' methods."""

from collections.abc import Sequence
from typing import Any

import msgspec

from lmwire_protocol import Chat, Embed, Format, Generate, Load, Media, Speak, Tokenize, Transcribe

from .options import (
    EmbedOptions,
    FormatDict,
    Inputs,
    LoadOptions,
    MediaDict,
    Messages,
    SpeakOptions,
    TemplateOptions,
    TranscribeOptions,
    UnformattedChatOptions,
    UnformattedPromptOptions,
)


def load_command(path: str, options: LoadOptions) -> Load:
    """Return the command that loads a model; `Worker.load` has the arguments."""
    return Load(path=path, **options)


def generate_command(
    prompt: str | list[int], options: UnformattedPromptOptions, format: Format | FormatDict | None = None
) -> Generate:
    """Return the command that continues a prompt; `Worker.generate` has the arguments."""
    return Generate(prompt=prompt, format=_plain(format), **_plain(options))


def chat_command(
    messages: str | Messages, options: UnformattedChatOptions, format: Format | FormatDict | None = None
) -> Chat:
    """Return the command that answers a conversation; `Worker.chat` has the arguments."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return Chat(messages=_plain([*messages]), format=_plain(format), **_plain(options))


def tokenize_command(
    prompt: str | Messages, options: TemplateOptions, *, count_only: bool, add_special_tokens: bool = True
) -> Tokenize:
    """Return the command that tokenizes a prompt.

    Args:
        prompt: Text, or a conversation.
        options: Options that affect the prompt of a conversation.
        count_only: Whether the worker returns only the number of tokens.
        add_special_tokens: Whether a text gets the tokens that the tokenizer puts around it.
    """
    fields: dict[str, Any] = {**_plain(options), "count_only": count_only, "add_special_tokens": add_special_tokens}
    if isinstance(prompt, str):
        return Tokenize(prompt=prompt, **fields)
    return Tokenize(messages=_plain([*prompt]), **fields)


def detokenize_command(token_ids: Sequence[int]) -> Tokenize:
    """Return the command that returns the text of tokens."""
    return Tokenize(token_ids=list(token_ids))


def embed_command(inputs: Inputs, options: EmbedOptions) -> Embed:
    """Return the command that embeds texts and images; `Worker.embed` has the arguments."""
    if isinstance(inputs, str):
        raise TypeError("inputs must be a list of texts and images, not one text: each item gets its own vector")
    return Embed(input=_plain([*inputs]), **options)


def transcribe_command(audio: Media | MediaDict, options: TranscribeOptions) -> Transcribe:
    """Return the command that transcribes a recording; `Worker.transcribe` has the arguments."""
    return Transcribe(audio=_plain(audio), **options)


def speak_command(text: str, options: SpeakOptions) -> Speak:
    """Return the command that speaks a text; `Worker.speak` has the arguments."""
    return Speak(text=text, **options)


def _plain(value: object) -> Any:
    """Return the value as plain data: a command encodes that as well as Structs, and does not validate it."""
    return msgspec.to_builtins(value)
