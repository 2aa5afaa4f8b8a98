"""`python -P -m lmwire_worker.models`: list the models on this machine; see `local_models`."""

from .local_models import main

main()
