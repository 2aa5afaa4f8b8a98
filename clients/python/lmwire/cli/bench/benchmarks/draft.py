"""`lmwire bench draft`: speed with drafts that are always right, and with ones that never are."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from lmwire_protocol import Load

from .. import workload
from ..pairing import measure_pairs, speed_ratio
from ..programs.processes import WorkerProcess
from ..results import Result

PROMPT_LOOKUP: Final = "builtin:ngram"
REPEATED: Final = 50
"""A token to which a bias leads the model, again and again."""


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure one stream of a model with draft models made from it."""
    from .draft_models import write_drafts  # imports MLX, which the measured programs should have to themselves

    with tempfile.TemporaryDirectory() as scratch, WorkerProcess() as alone:
        (copy := Path(scratch, "copy")).mkdir()
        drafts = write_drafts(workload.copy_without_eos(folder, copy), Path(scratch))
        alone.ask(Load(path=str(drafts.model)))
        requests = workload.greedy(1, tokens)
        for draft, merit, target in ((drafts.right, "is always right", 1.5), (drafts.wrong, "never is", 0.5)):
            name = f"1 stream with a draft of {drafts.layers} of {drafts.model_layers} layers that {merit}"
            with WorkerProcess() as drafted:
                drafted.ask(Load(path=str(drafts.model), draft_path=str(draft)))
                pairs = measure_pairs(
                    rounds, lambda: alone.rate(requests), lambda worker=drafted: worker.rate(requests)
                )
                accepted = drafted.ask(requests[0])["usage"].get("draft_accepted", 0)
            result = speed_ratio(f"{name}, against without", pairs, target, "tok/s")
            yield result._replace(detail=f"{result.detail}, {accepted} of {tokens} tokens were proposed")
        with WorkerProcess() as drafted:
            drafted.ask(Load(path=str(drafts.model), draft_path=PROMPT_LOOKUP))
            for text, fields, target in (
                ("that repeats itself", {"logit_bias": {REPEATED: 100.0}}, 1.5),
                ("that does not", {"temperature": 1.0, "seed": 1}, 0.98),
            ):
                asked = [replace(request, **fields) for request in requests]
                pairs = measure_pairs(
                    rounds, lambda asked=asked: alone.rate(asked), lambda asked=asked: drafted.rate(asked)
                )
                accepted = drafted.ask(asked[0])["usage"].get("draft_accepted", 0)
                name = f"1 stream with proposals from a text {text}, against without"
                result = speed_ratio(name, pairs, target, "tok/s")
                yield result._replace(detail=f"{result.detail}, {accepted} of {tokens} tokens were proposed")
