"""`lmwire bench draft`: speed with a draft model that is always right, and with one that never is."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from lmwire_protocol import Load

from .. import workload
from ..pairing import measure_pairs, speed_ratio
from ..programs.processes import WorkerProcess
from ..results import Result


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
