"""The prompt of Qwen3-Reranker. Its answer is `yes` or `no`, and the probability of `yes` is the relevance.

Source: https://huggingface.co/Qwen/Qwen3-Reranker-0.6B.
"""

import math
import re
from typing import Final

from lmwire_protocol import events

YES: Final = "yes"
NO: Final = "no"
_MODEL_TYPE: Final = "qwen3"
_NAME: Final = re.compile(r"(?<![a-z])reranker(?![a-z])", re.IGNORECASE)
_NAME_PARTS: Final = 3
"""Last parts of a path that can hold a model's name: a hub's snapshot lies two folders below it."""
_INSTRUCTION: Final = "Given a web search query, retrieve relevant passages that answer the query"
_PROMPT: Final = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
    "<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
    "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
)


def is_reranker(model: events.ModelDone, name: str) -> bool:
    """Return whether a model is a Qwen3-Reranker. Its files do not say so: only its name differs from a Qwen3.

    Args:
        model: The worker's description of the model.
        name: The id under which the model is served.
    """
    names = [name, *model.path.split("/")[-_NAME_PARTS:]]
    return model.model_type == _MODEL_TYPE and any(map(_NAME.search, names))


def make_prompt(query: str, document: str, instruction: str | None) -> str:
    """Return the prompt for one document.

    Args:
        query: The query.
        document: The document's text.
        instruction: The task; None for that with which the model was trained.
    """
    return _PROMPT.format(instruction=instruction or _INSTRUCTION, query=query, document=document)


def relevance(yes: float, no: float) -> float:
    """Return the probability of `yes` if the answer is `yes` or `no`.

    Args:
        yes: The log-probability of `yes`; -inf for a probability of 0.
        no: That of `no`.
    """
    if math.isinf(yes):
        return 0.0
    difference = yes - no
    return 1 / (1 + math.exp(-difference)) if difference >= 0 else math.exp(difference) / (1 + math.exp(difference))
