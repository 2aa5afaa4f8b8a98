"""Start a worker, for hosts of the older bridge that run this file."""

from lmwire_worker.__main__ import main

main()
