"""Write a tiny Qwen3-Reranker with random weights. Its tokenizer has the answers `yes` and `no`."""

from pathlib import Path

from tokenizers import Tokenizer

import random_model

VOCABULARY = 512


def write_reranker(folder: Path) -> Path:
    """Write a model, and return its folder."""
    random_model.write_model(folder, "qwen3", vocab_size=VOCABULARY)
    random_model.write_tokenizer(folder, VOCABULARY - 2)
    file = folder / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.add_tokens(["yes", "no"])
    tokenizer.save(str(file))
    return folder
