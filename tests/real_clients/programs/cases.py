"""Run functions of a client program, and print what each returned or how it failed."""

import asyncio
import inspect
import json
import traceback
from collections.abc import Callable, Mapping
from typing import Any


def run_named(functions: Mapping[str, Callable[[], Any]]) -> None:
    """Run functions one after another, and print one JSON object with their results.

    Args:
        functions: Functions or coroutine functions without parameters, by the names of their results.
    """
    print(json.dumps({name: _result(function) for name, function in functions.items()}))


def _result(function: Callable[[], Any]) -> dict[str, Any]:
    try:
        value = function()
        return {"value": asyncio.run(value) if inspect.iscoroutine(value) else value}
    except Exception:
        return {"error": traceback.format_exc()}
