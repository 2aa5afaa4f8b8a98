"""LangChain's own tests of chat models, through all four APIs in one run. The program lists those that must fail."""

import os
import re
from pathlib import Path

import pytest

from support.clients.installation import python_environment
from support.clients.running import PROGRAMS, Outside, run_client

pytestmark = pytest.mark.nightly

AN_HOUR_S = 3600
"""Twenty minutes on two busy cores: SmolLM2 computes some ten tokens a second on one."""
OPTIONS = ("asyncio_mode=auto", "asyncio_default_test_loop_scope=session", "asyncio_default_fixture_loop_scope=session")
"""Settings of pytest-asyncio: LangChain keeps its connections, and with them one event loop."""


def test_every_test_passes_that_a_small_model_can_pass(
    environment: dict[str, str], outside: Outside, smollm2_url: str
) -> None:
    home = Path(environment["HOME"])
    # The configuration and the fixtures of this repository need its own environment.
    apart = ["--noconftest", "-c", os.devnull, "--rootdir", home, "-p", "no:cacheprovider"]
    command = [python_environment("langchain_tests") / "python", "-m", "pytest", *apart, "--tb=short"]
    options = [word for option in OPTIONS for word in ("-o", option)]
    done = run_client(
        [*command, *options, PROGRAMS / "langchain_standard.py"],
        environment | {"LMWIRE_URL": smollm2_url},
        home,
        seconds=AN_HOUR_S,
    )
    counts = {name: int(count) for count, name in re.findall(r"(\d+) (passed|xfailed)", done.stdout)}
    assert counts == {"passed": 157, "xfailed": 14}
    assert outside.asked == []
