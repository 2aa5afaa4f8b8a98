"""`lmwire bench draft`: what a draft model gives when it is always right, and what it costs when it never is."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from lmwire_protocol import Load

from . import workload
from .figures import Figure
from .peer import Worker
from .turns import in_turns, ratio


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Figure]:
    from .draft_models import write_drafts  # imports MLX, which the programs that are measured need for themselves

    with tempfile.TemporaryDirectory() as scratch, Worker() as alone:
        (copy := Path(scratch, "copy")).mkdir()
        drafts = write_drafts(workload.without_end(folder, copy), Path(scratch))
        alone.ask(Load(path=str(drafts.model)))
        requests = workload.greedy(1, tokens)
        for draft, merit, target in ((drafts.right, "is always right", 1.5), (drafts.wrong, "never is", 0.5)):
            name = f"1 stream with a draft of {drafts.layers} of {drafts.model_layers} layers that {merit}"
            with Worker() as drafted:
                drafted.ask(Load(path=str(drafts.model), draft_path=str(draft)))
                pairs = in_turns(rounds, lambda: alone.rate(requests), lambda worker=drafted: worker.rate(requests))
                accepted = drafted.ask(requests[0])["usage"].get("draft_accepted", 0)
            figure = ratio(f"{name}, against without", pairs, target, "tok/s")
            yield figure._replace(detail=f"{figure.detail}, {accepted} of {tokens} tokens were proposed")
