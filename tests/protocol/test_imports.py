import gc

import pytest

from lmwire_protocol.imports import uncollected


def test_imports_are_not_interrupted_by_collections() -> None:
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count(), "later collections leave the modules out"
    gc.unfreeze()


def test_collections_come_back_after_an_error() -> None:
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.isenabled()
    gc.unfreeze()
