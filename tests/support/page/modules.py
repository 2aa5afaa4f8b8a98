"""Modules of the chat page in Node, for what needs no browser."""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import lmwire_http
from support.process.programs import program
from support.process.worker_process import SECONDS

STATIC: Final = Path(lmwire_http.__file__).parent / "page/static"
_RUN: Final = """
const [folder, given, body] = process.argv.slice(1);
const load = (path) => import(`${folder}/${path}`);
const AsyncFunction = (async () => {}).constructor;
console.log(JSON.stringify(await new AsyncFunction("load", "given", body)(load, JSON.parse(given))));
"""


def in_node(body: str, given: Any) -> Any:
    """Return what a function in JavaScript returns.

    Args:
        body: The function's body. It imports a module of the page with `await load(path)`.
        given: The function's argument, which it has as `given`.
    """
    command = [program("node"), "--input-type=module", "--eval", _RUN, str(STATIC), json.dumps(given), body]
    return json.loads(subprocess.check_output(command, text=True, timeout=SECONDS))
