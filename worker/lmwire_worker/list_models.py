"""`python -P -m lmwire_worker.list_models`: list the models on this machine; see `models.local_models`."""

from .loading.model_support import check_support
from .models.local_models import main

main(check_support)
