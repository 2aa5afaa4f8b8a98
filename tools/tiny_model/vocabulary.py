"""Train the tokenizer, and render examples with the chat template."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from lessons import Example

TEMPLATE: Final = Path(__file__).with_name("chat_template.jinja")
CONTROL: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
"""Special tokens, which are never part of an answer's text."""
MARKS: Final = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
"""Single tokens that are part of the text, as in Qwen3."""
END_OF_TURN: Final = CONTROL[2]

# Words with the space before them, single digits, runs of signs, runs of space. Signs are separate from words: so
# a name has the same tokens between quotes, after an underscore and at the start of a line. A small model must copy it.
_PIECES: Final = r" ?\p{L}[\p{L}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def train_tokenizer(texts: Iterable[str], size: int) -> Tokenizer:
    """Train a byte-level BPE tokenizer, which encodes any Unicode text.

    Args:
        texts: The training texts.
        size: Number of tokens, special tokens included.
    """
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(_PIECES), behavior="isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(CONTROL + MARKS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in CONTROL])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKS])
    return tokenizer


def write_tokenizer(tokenizer: Tokenizer, folder: Path, context: int) -> None:
    """Write the tokenizer and its chat template in the format of transformers.

    Args:
        tokenizer: The tokenizer.
        folder: Receives the files.
        context: The model's context length, in tokens.
    """
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END_OF_TURN, "pad_token": CONTROL[0]}
    config |= {"model_max_length": context, "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1))
    (folder / TEMPLATE.name).write_text(TEMPLATE.read_text())


class Renderer:
    """Renders examples with the chat template, without transformers."""

    def __init__(self) -> None:
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = _to_json
        self._template = environment.from_string(TEMPLATE.read_text())

    def prompt(self, example: Example) -> str:
        """Return the prompt: the text before the answer."""
        return self._template.render(
            messages=example.messages,
            tools=example.tools,
            enable_thinking=example.thinking,
            add_generation_prompt=True,
        )

    def turn(self, example: Example) -> str:
        """Return the answer with the token that ends it."""
        return example.answer + END_OF_TURN


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
