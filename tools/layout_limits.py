"""Hold the limits of the source's layout: `python tools/layout_limits.py FOLDER…`.

Counts files in a folder, lines in a file and in a function, so that a reader finds things by their names. Prints what
exceeds a limit, and exits with 1 if anything does.
"""

import ast
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FILES_IN_A_FOLDER: Final = 20
LINES_IN_A_FILE: Final = 400
MEDIAN_LINES_OF_FUNCTIONS: Final = 10


def exceeded(folder: Path) -> Iterator[str]:
    """Yield a sentence for each limit that a folder's Python files exceed."""
    files = sorted(folder.rglob("*.py"))
    for parent, count in sorted(Counter(file.parent for file in files).items()):
        if count > FILES_IN_A_FOLDER:
            yield f"{parent} has {count} files; the limit is {FILES_IN_A_FOLDER}"
    lengths: list[int] = []
    for file in files:
        source = file.read_text(encoding="utf-8")
        if (lines := source.count("\n")) > LINES_IN_A_FILE:
            yield f"{file} has {lines} lines; the limit is {LINES_IN_A_FILE}"
        lengths += [
            (node.end_lineno or node.lineno) - node.lineno + 1
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    if lengths and (median := statistics.median(lengths)) > MEDIAN_LINES_OF_FUNCTIONS:
        yield f"half of the functions of {folder} have over {median:g} lines; the limit is {MEDIAN_LINES_OF_FUNCTIONS}"


if __name__ == "__main__":
    problems = [problem for folder in sys.argv[1:] for problem in exceeded(Path(folder))]
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(bool(problems))
