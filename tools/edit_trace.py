"""Count the tokens that a step gives with drafts from the text itself: `python tools/edit_trace.py TOKENIZER_JSON`.

Each trace is a file of this repository as it was before a commit, which is the prompt, and as it was after, which is
the answer. So the edits are those that people made. The answer is known, so no model runs and every machine counts the
same. A step gives one token, and those of its proposal up to the first wrong one.
"""

import subprocess
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

from tokenizers import Tokenizer

from lmwire_worker.generation.batching.prompt_lookup import MAX_PROPOSALS, PromptLookup

COMMITS: Final = 150
FILES: Final = 60
BYTES: Final = range(500, 12_000)
"""Sizes of the files."""
QUESTION: Final = "Here is a file:\n```\n{}```\nApply the change and answer with the whole file.\n"


class Count(NamedTuple):
    """Tokens and steps of an answer."""

    tokens: int
    steps: int


def count_steps(prompt: list[int], answer: list[int]) -> Count:
    """Return how many steps an answer takes if each proposal is verified."""
    lookup = PromptLookup()
    tokens = [*prompt, answer[0]]
    steps = 1
    while left := answer[len(tokens) - len(prompt) :]:
        proposed = lookup.propose(tokens, min(MAX_PROPOSALS, len(left)))
        right = next(
            (at for at, pair in enumerate(zip(proposed, left, strict=False)) if len({*pair}) > 1), len(proposed)
        )
        if proposed:
            lookup.pace.note(len(proposed), right)
        tokens += left[: right + 1]
        steps += 1
    return Count(len(answer), steps)


def edits(commits: int) -> Iterator[tuple[str, str]]:
    """Yield the old and the new text of each file that one of the last commits changed."""
    for commit in _git("log", "--format=%H", f"-{commits}", "HEAD").split():
        for line in _git("diff-tree", "-r", "--no-commit-id", "--diff-filter=M", commit).splitlines():
            old, new = (_git("cat-file", "blob", blob) for blob in line.split()[2:4])
            if len(new) in BYTES:
                yield old, new


def main() -> None:
    """Print the count over all files, and the least and the most of one."""
    tokenizer = Tokenizer.from_file(sys.argv[1])
    counts: list[Count] = []
    for (old, new), _ in zip(edits(COMMITS), range(FILES), strict=False):
        prompt, answer = (tokenizer.encode(text).ids for text in (QUESTION.format(old), new))
        counts.append(count_steps(prompt, answer))
    tokens, steps = sum(count.tokens for count in counts), sum(count.steps for count in counts)
    each = sorted(count.tokens / count.steps for count in counts)
    print(f"{len(counts)} files, {tokens:,} tokens, {steps:,} steps: {tokens / steps:.2f} tokens a step")
    print(f"of one file {each[0]:.2f} to {each[-1]:.2f}, in the median {each[len(each) // 2]:.2f}")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, check=True, text=True, errors="replace").stdout


if __name__ == "__main__":
    main()
