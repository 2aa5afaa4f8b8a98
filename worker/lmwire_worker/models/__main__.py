"""`python -P -m lmwire_worker.models`: list the models on this machine; see `local_models`."""

from ..loading.model_support import check_support
from .local_models import main

main(check_support)
