"""`lmwire schema`."""

import json
from argparse import Namespace

from lmwire_protocol.schema import meta, schema

from .failures import OK


def run(arguments: Namespace) -> int:
    print(json.dumps(meta() if arguments.meta else schema(), indent=2, ensure_ascii=False))
    return OK
