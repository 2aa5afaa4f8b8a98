import abc
import gc
import re
import subprocess
import sys

import pytest

from lmwire_protocol.imports import lazy_pattern, uncollected
from support.process.worker_process import SECONDS


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


def test_a_lazy_pattern_is_compiled_by_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile = re.compile
    monkeypatch.setattr(re, "compile", lambda text, flags: compiled.append(text) or compile(text, flags))
    pattern = lazy_pattern(r"(?P<word>[a-z]+)", re.IGNORECASE)
    assert pattern.pattern == r"(?P<word>[a-z]+)" and not compiled
    for text in ("One", "two"):
        match = pattern.fullmatch(text)
        assert match is not None and match["word"] == text
    assert compiled == [pattern.pattern]
    assert pattern.sub("x", "One two") == "x x"


def test_an_abstract_class_compiles_no_lazy_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks each of its attributes whether a subclass must define it."""
    pattern = lazy_pattern(r"[a-z]+")
    monkeypatch.setattr(re, "compile", lambda *_: pytest.fail("compiled"))
    abc.ABCMeta("Reader", (), {"pattern": pattern})


IMPORTING = """
import sys
from lmwire_protocol.imports import import_msgspec

import_msgspec()
print(*sorted({"inspect", "typing_extensions"} & sys.modules.keys()), end=".")
from typing import Annotated, NotRequired, TypedDict
import msgspec
import typing_extensions

class Point(TypedDict):
    x: NotRequired[Annotated[int, msgspec.Meta(ge=0)]]

print(msgspec.convert({"x": 1}, Point), end=".")
import_msgspec()
assert sys.modules["typing_extensions"] is typing_extensions
"""


@pytest.mark.slow
def test_msgspec_is_imported_without_typing_extensions() -> None:
    command = [sys.executable, "-P", "-c", IMPORTING]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
    assert done.stdout == ".{'x': 1}.", done.stderr
