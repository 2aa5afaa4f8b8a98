"""A worker that answers each line with a few that could be anything: `python strange_worker.py SEED`."""

import json
import random
import sys

from support.process.strange_lines import Stranger


def main() -> None:
    seed = int(sys.argv[1])
    stranger, chance = Stranger(seed), random.Random(seed)
    for line in sys.stdin.buffer:
        try:
            stranger.note(json.loads(line))
        except (ValueError, RecursionError):
            continue
        for _ in range(chance.choice([0, 1, 1, 2, 5])):
            sys.stdout.buffer.write(stranger.line() + b"\n" * (chance.random() < 0.95))
        sys.stdout.buffer.flush()
    sys.exit(chance.choice([0, 1, 74]))


if __name__ == "__main__":
    main()
