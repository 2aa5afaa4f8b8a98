"""`python -P -m lmwire_http`, which is `lmwire serve`."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
