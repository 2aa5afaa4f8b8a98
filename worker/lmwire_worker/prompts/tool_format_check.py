"""Print how models' formats of tool calls are found: `python -P -m lmwire_worker.prompts.tool_format_check FOLDER…`.

It prints a list of objects with `path`, `tool_format` and `problem`, and leaves out models that cannot be opened.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ..models.model_files import read_json
from ..models.tokenizer_loading import load_tokenizer
from .model_syntax import describe_search, find_syntax

TIME_S: Final = 20.0
"""Time after which no further model is opened, in seconds."""


def check_formats(folders: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield how each model's format was found.

    Args:
        folders: The model folders.
    """
    end = time.monotonic() + TIME_S
    for folder in folders:
        if time.monotonic() > end:
            return
        try:
            config = read_json(Path(folder) / "config.json")
            tokenizer = load_tokenizer(Path(folder), config, trust_remote_code=False)
            syntax = find_syntax(tokenizer, config["model_type"])
        except Exception:  # a load reports what is wrong with the model
            continue
        if syntax.tools is not None:
            yield {"path": folder, "tool_format": syntax.tools.name, "problem": describe_search(syntax)}


if __name__ == "__main__":
    print(json.dumps([*check_formats(sys.argv[1:])]))
