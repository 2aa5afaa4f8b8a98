"""`python -P -m lmwire_worker.list_models`: list the models on this machine; see `models.local_models`."""

from .loading.model_kind import check_support
from .models.local_models import main
from .tool_parsers import FORMATS

main(check_support, {name: FORMATS[name].models for name in sorted(FORMATS)})
