"""The mock worker, which also prints the models to load to stderr, and whether its environment has an API key."""

import os
import sys
from typing import Any

from lmwire_worker.__main__ import main
from lmwire_worker.mock.model_loader import MockModelLoader

_open = MockModelLoader.open


def _open_and_say(self: MockModelLoader, request: Any, *arguments: Any) -> Any:
    print(f"was asked to load {request.path}", file=sys.stderr, flush=True)
    return _open(self, request, *arguments)


MockModelLoader.open = _open_and_say  # pyright: ignore[reportAttributeAccessIssue]
print(f"environment: {'a key' if 'LMWIRE_API_KEY' in os.environ else 'no key'}", file=sys.stderr, flush=True)
sys.argv = ["lmwire_worker", "--mock"]
main()
