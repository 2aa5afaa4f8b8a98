"""The hub's folders and a model's files are those of the libraries that use them too, whose imports take long."""

import importlib
import os

import pytest
from huggingface_hub import constants
from mlx_lm.utils import DEFAULT_ALLOW_PATTERNS

from lmwire_worker.models.hub.cache import hub_cache, hub_home
from lmwire_worker.models.hub.snapshot import CODE_PATTERN, MODEL_PATTERNS

VARIABLES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "PLACE")


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"HF_HOME": "/a"},
        {"HF_HOME": "~/a"},
        {"HF_HOME": "$PLACE/a", "PLACE": "/b"},
        {"XDG_CACHE_HOME": "/c"},
        {"HUGGINGFACE_HUB_CACHE": "/d", "HF_HOME": "/a"},
        {"HF_HUB_CACHE": "~/e", "HUGGINGFACE_HUB_CACHE": "/d"},
    ],
    ids=str,
)
def test_the_environment_names_the_folders_as_for_the_hubs_library(environment: dict[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        for name in VARIABLES:
            patched.delenv(name, raising=False)
        for name, value in environment.items():
            patched.setenv(name, value)
        theirs = importlib.reload(constants)
        assert (hub_home(), hub_cache()) == (theirs.HF_HOME, theirs.HF_HUB_CACHE), os.environ
    importlib.reload(constants)


def test_a_download_has_the_files_that_mlx_lm_would_fetch_but_no_code() -> None:
    assert set(DEFAULT_ALLOW_PATTERNS) - set(MODEL_PATTERNS) == {CODE_PATTERN}
