"""The built-in model with a longer context, for answers that do not end while a test looks at something else."""

import json
import os
from pathlib import Path

import lmwire_worker

CONTEXT = 32_768
MAX_TOKENS = CONTEXT - 256
"""Tokens for an answer to a short prompt, which take a minute or more."""


def write_long_context(folder: Path) -> Path:
    """Write the model, and return the folder."""
    folder.mkdir()
    for file in (Path(lmwire_worker.__file__).parent / "builtin" / "tiny").iterdir():
        os.symlink(file, folder / file.name)
    config = folder / "config.json"
    fields = json.loads(config.read_text()) | {"max_position_embeddings": CONTEXT}
    config.unlink()
    config.write_text(json.dumps(fields))
    return folder
