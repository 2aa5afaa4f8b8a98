import subprocess
import sys

import pytest

from support.process.worker_process import SECONDS

UNNEEDED = {"bz2", "hashlib", "lzma", "pickle", "shutil", "tempfile", "jinja2.bccache", "jinja2.loaders"}
"""Modules that rendering a template needs not. Together they take a third of jinja2's import."""

RENDERING = f"""
import sys
from lmwire_worker.sandbox import __main__ as sandbox

question = {{"subject": "render", "source": "{{{{ greeting }}}}", "values": {{"greeting": "Hello"}}}}
assert sandbox._answer(question, lambda: None) == {{"text": "Hello"}}
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
