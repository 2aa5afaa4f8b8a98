"""Whatever bytes a host writes: the reader lives, and answers every line once."""

import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).parents[1] / "reader_fuzz.py"
SEEDS = (20240, 20241)
LINES_OF_EACH = 500_000
LONGEST_S = 180


def test_a_million_mutated_lines_are_answered_once_each() -> None:
    runs = [
        subprocess.Popen([sys.executable, str(FUZZ), str(seed), str(LINES_OF_EACH)], stderr=subprocess.PIPE, text=True)
        for seed in SEEDS
    ]
    for seed, run in zip(SEEDS, runs, strict=True):
        _, trouble = run.communicate(timeout=LONGEST_S)
        assert run.returncode == 0, f"to see it again: python {FUZZ.name} {seed} {LINES_OF_EACH}\n{trouble}"
