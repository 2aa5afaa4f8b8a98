"""Tiny tokenizers, and a tiny model, with the tokens of the families that fill gaps."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from lmwire_worker.models.tokenizer_loading import load_tokenizer
from random_model import SPECIAL, write_model, write_tokenizer

QWEN: Final = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")
FAMILIES: Final = {
    "qwen": QWEN,
    "starcoder2": ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<repo_name>", "<file_sep>"),
    "granite": ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<reponame>", "<filename>"),
    "codegemma": ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>"),
    "deepseek": ("<\uff5cfim▁begin\uff5c>", "<\uff5cfim▁hole\uff5c>", "<\uff5cfim▁end\uff5c>", "<|EOT|>"),
    "codestral": ("[PREFIX]", "[SUFFIX]", "[MIDDLE]"),
}
"""The special tokens of each family whose tokens are bytes."""
CODE_LLAMA: Final = ("<s>", "</s>", "▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>")


def write_infill_model(folder: Path, **fields: Any) -> Path:
    """Write a tiny random model with Qwen2.5-Coder's tokens, and return its folder.

    Args:
        folder: Receives the model.
        **fields: Further arguments of `write_model`.
    """
    return write_model(folder, special=(*SPECIAL, *QWEN), **fields)


@cache
def byte_tokenizer(family: str, *, is_special: bool = True) -> Any:
    """Return a family's tokenizer.

    Args:
        family: One of `FAMILIES`.
        is_special: Whether its tokens are special. Those of Qwen2.5-Coder are not.
    """
    special = (*SPECIAL, *FAMILIES[family]) if is_special else SPECIAL
    with TemporaryDirectory() as folder:
        write_tokenizer(Path(folder), 320, special)
        found = load_tokenizer(Path(folder), {}, trust_remote_code=False)
    if not is_special:
        assert found.backend_tokenizer
        found.backend_tokenizer.add_tokens([*FAMILIES[family]])
    return found


@cache
def code_llama_tokenizer() -> Any:
    """Return a tokenizer that puts a space before a text, and a token before a prompt, as Code Llama's does."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors

    letters = ["<unk>", "▁", *(chr(code) for code in range(33, 127)), "\n"]
    tokenizer = Tokenizer(models.BPE(vocab={text: at for at, text in enumerate(letters)}, merges=[], unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in CODE_LLAMA])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    with TemporaryDirectory() as written:
        folder = Path(written)
        tokenizer.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(
            '{"tokenizer_class": "PreTrainedTokenizerFast",'
            ' "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}'
        )
        return load_tokenizer(folder, {}, trust_remote_code=False)
