"""The types of transformers that this repository uses.

The library's own `__init__` imports all of its models for type checkers, and pyright reads them: most of its time.
"""

from typing import Any

from transformers.tokenization_utils_base import PreTrainedTokenizerBase as PreTrainedTokenizerBase
from transformers.tokenization_utils_tokenizers import TokenizersBackend as TokenizersBackend

PreTrainedTokenizerFast = TokenizersBackend

def __getattr__(name: str) -> Any: ...
