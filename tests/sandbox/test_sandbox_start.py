import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.process.worker_process import SECONDS

UNNEEDED = {"bz2", "hashlib", "lzma", "pickle", "shutil", "tempfile", "jinja2.bccache", "jinja2.loaders"}
"""Modules that rendering a template needs not. Together they take a third of jinja2's import."""

RENDERING = f"""
import sys
from lmwire_worker.sandbox import __main__ as sandbox

render = sandbox.import_answerer("render", lambda: None)
assert render(source="{{{{ greeting }}}}", values={{"greeting": "Hello"}}) == {{"text": "Hello"}}
print(*sorted({UNNEEDED} & sys.modules.keys()), end=".")
import jinja2
assert jinja2.BytecodeCache and jinja2.nodes.Const
print(*sorted({UNNEEDED} - sys.modules.keys()), end=".")
"""


@pytest.mark.slow
def test_a_sandbox_imports_little_before_its_first_text() -> None:
    """From then on, jinja2 is a bare package until someone asks it for more."""
    command = [sys.executable, "-P", "-c", RENDERING]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
    assert done.stdout == "..", done.stderr


@pytest.mark.slow
def test_a_sandbox_keeps_the_bytecode_of_its_modules(tmp_path: Path) -> None:
    """It may write no files while a template runs. Its own modules would be compiled at each start."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-P", "-m", "lmwire_worker.sandbox"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as sandbox:
        assert sandbox.stdin and sandbox.stdout
        sandbox.stdin.write(b'{"subject": "template", "source": "Hello", "limits": [5, 1073741824]}\n')
        sandbox.stdin.flush()
        assert sandbox.stdout.readline() == b'{"variables": []}\n'
        sandbox.stdin.close()
    assert {path.name.partition(".")[0] for path in tmp_path.rglob("lmwire_worker/sandbox/*.pyc")} >= {
        *("jinja", "template_compiler", "template_lexer")
    }


@pytest.mark.slow
def test_a_reader_of_pdfs_keeps_the_bytecode_of_its_library(tmp_path: Path) -> None:
    """Each PDF has a process of its own, which would compile the whole library."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-P", "-m", "lmwire_worker.sandbox.pdf_text"]
    done = subprocess.run(command, input=b"", check=True, stdout=subprocess.PIPE, env=environment, timeout=SECONDS)
    assert done.stdout.startswith(b'{"problem"')
    assert any(tmp_path.rglob("pypdf/*.pyc"))
