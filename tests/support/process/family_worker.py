"""Workers that play models of any family: a real runner, whose network writes the answers that a test gives it.

Everything but the network is a worker's own: the chat template in the sandbox, the tokens, the grammar and the parser
of the answer. A worker runs on a thread of the test's process.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mlx.core as mx
from mlx import nn
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from lmwire_protocol import FEATURES, Load
from lmwire_worker.engine.interface import AdmittedRequest, ModelInfo, Report
from lmwire_worker.generation.admission import MemoryBudget, RowCost
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.process.memory_pressure import MemoryPressure
from random_model import write_tokenizer
from support.models.family_turns import Turns
from support.process.worker_thread import WorkerThread, run_engine

END = "<|im_end|>"
"""The token that ends an answer."""
CONTEXT = 4096
PLAIN_TURNS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
"""The template of requests without tools, for families that have one for those."""


@cache
def _backend() -> str:
    with TemporaryDirectory() as folder:
        write_tokenizer(Path(folder), 300)
        return (Path(folder) / "tokenizer.json").read_text()


def tokenizer_of(turns: Turns) -> Tokenizer:
    """Return the tokenizer of a family's model."""
    backend = Backend.from_str(_backend())
    backend.add_special_tokens([AddedToken(text, special=True) for text in (*turns.tokens, END)])
    ends = [token for token in map(backend.token_to_id, (END, *turns.ends)) if token is not None]
    template = {"default": PLAIN_TURNS, "tool_use": turns.template} if turns.is_for_tools else turns.template
    return Tokenizer(backend, special_tokens={"eos_token": END}, chat_template=template, eos_token_ids=ends)


class Scripted(nn.Module):
    """A network that writes given answers, whatever it is asked."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.layers: list[None] = [None]
        self.text: list[int] = []
        """The prompt, and the answer to it."""

    def __call__(self, tokens: mx.array, cache: Any = None, **_: Any) -> mx.array:
        rows, length = tokens.shape
        start = cache[0].offset
        cache[0].update_and_fetch(*(mx.zeros((rows, 1, length, 1)),) * 2)  # it only counts
        following = self.text[start + 1 : start + 1 + length]
        wanted = mx.array(following + [0] * (length - len(following)))
        return mx.where(mx.arange(self.vocab_size) == wanted[None, :, None], 999.0, 0.0)


class FamilyRunner(GenerationRunner):
    """A runner whose network answers each prompt with the next of the given texts.

    Args:
        turns: The family.
        answers: The texts that the model writes, which `add` takes one by one.
    """

    def __init__(self, turns: Turns, answers: list[str]) -> None:
        tokenizer = tokenizer_of(turns)
        network = Scripted(len(tokenizer))
        cost = RowCost.measure(network)
        model = ModelInfo(
            "family", turns.model_type, len(tokenizer), 1, 1, CONTEXT, 0, ["generate", "chat", "tokenize"]
        )
        super().__init__(network, tokenizer, model, MemoryBudget(1 << 30, 0, 0, cost), batches=False)
        self.prompts: list[str] = []
        """The prompts that the model was given."""
        self._scripted = network
        self._tokenizer = tokenizer
        self._answers = answers

    def add(self, key: int, request: Any, seed: int, **options: Any) -> AdmittedRequest:
        admitted = super().add(key, request, seed, **options)
        (sequence,) = self.table[key].sequences
        self.prompts.append(self._tokenizer.decode(sequence.prompt))
        answer = self._tokenizer.encode(self._answers.pop(0), add_special_tokens=False)
        self._scripted.text = [*sequence.prompt, *answer, self._tokenizer.eos_token_id or 0]
        return admitted


class FamilyLoader:
    """A model loader that opens a runner of the test by its name.

    Args:
        runners: The runners by the paths of loads.
    """

    names = ["mlx_lm"]
    features = [*FEATURES]

    def __init__(self, runners: Mapping[str, FamilyRunner]) -> None:
        self._runners = runners

    def read_pressure(self) -> MemoryPressure:
        return MemoryPressure.NORMAL

    def prepare(self) -> None:
        pass

    def open(self, request: Load, report: Report, release_current_model: Callable[[], None]) -> FamilyRunner:
        release_current_model()
        return self._runners[request.path or ""]

    def model_closed(self) -> None:
        pass

    def flush(self) -> None:
        pass


def family_worker(runners: Mapping[str, FamilyRunner], command: Sequence[str] = ()) -> WorkerThread:
    """Return a worker of these runners' models, on a thread. Ignores the command that a host would run."""
    return WorkerThread(partial(run_engine, engine=FamilyLoader(runners)))
