"""The package as Python's own tools show it."""

import pydoc
import runpy
import sys
from typing import Any

import pytest

import lmwire
import lmwire_protocol
from support.many_cases import for_each


def test_all_public_names_are_listed() -> None:
    assert {*lmwire.__all__, "__version__"} <= set(dir(lmwire))


@for_each([*lmwire.__all__, "__version__"])
def test_every_listed_name_exists(name: str) -> None:
    assert getattr(lmwire, name) is not None


def test_a_star_import_brings_every_public_name() -> None:
    namespace: dict[str, Any] = {}
    exec("from lmwire import *", namespace)
    assert set(lmwire.__all__) <= set(namespace)


def test_the_version_is_the_protocol_packages_own() -> None:
    assert lmwire.__version__ == lmwire_protocol.__version__


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # help reads the former names, too
def test_help_describes_the_classes() -> None:
    text = pydoc.plain(pydoc.render_doc(lmwire))
    assert "class Worker(" in text
    assert "class ContextOverflow(" in text


def test_the_package_runs_as_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["lmwire/__main__.py", "--version"])
    with pytest.raises(SystemExit) as exit:
        runpy.run_module("lmwire", run_name="__main__")
    assert exit.value.code == 0
    assert capsys.readouterr().out == f"lmwire {lmwire.__version__}\n"


def test_a_name_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Peace'"):
        _ = lmwire.Peace
