"""`lmwire schema`."""

import sys
from argparse import Namespace

from lmwire_protocol import schema


def run(arguments: Namespace) -> int:
    sys.stdout.write(schema.meta_text() if arguments.meta else schema.schema_text())
    return 0
