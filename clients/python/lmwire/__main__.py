"""`python -m lmwire` is the `lmwire` command."""

import sys

from lmwire.cli import main

if __name__ == "__main__":
    sys.exit(main())
