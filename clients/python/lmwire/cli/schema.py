"""`lmwire schema`: print the protocol's JSON Schema."""

import json
from argparse import Namespace

from lmwire_protocol.schema import meta, schema

from .errors import OK


def run(arguments: Namespace) -> int:
    """Print the schema, or its metadata, and return the exit code."""
    print(json.dumps(meta() if arguments.meta else schema(), indent=2, ensure_ascii=False))
    return OK
