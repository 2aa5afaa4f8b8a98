"""`lmwire serve` on a terminal: bars of downloads and loads, below a log that stays whole."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from random_model import write_model
from support.http.http_server import MOCK, wait_until
from support.http.raw_http import CHAT, RawClient, asked, chat_body
from support.models.fake_hub import Hub, running
from support.process.lmwire_command import Terminal
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

WEIGHTS = "model.safetensors"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub that sends the second half of the weights only after `go_on`."""
    with running(Hub(write_model(tmp_path / "served"))) as hub:
        hub.stall = WEIGHTS
        yield hub


def environment(hub: Hub, folder: Path) -> dict[str, str]:
    return {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "0"}


def test_a_download_has_a_bar_and_the_log_goes_on_above_it(hub: Hub, tmp_path: Path) -> None:
    serve = ("serve", hub.name, "--preload", "--port", "0")
    with Terminal(*serve, **environment(hub, tmp_path)) as terminal:
        start = terminal.read_until("lmwire serves on ") + terminal.read_until("\n")
        url = start.split()[-1]
        shown = terminal.read_until(f"{hub.name}: Downloading")
        assert hub.half_sent.wait(SECONDS)
        assert asked(url, "GET", "/health").status == 200
        shown += terminal.read_until("path=/health") + terminal.read_until("Downloading")
        assert re.search(r"[\r\n]\d{4}-\d\d-\d\dT\S+ info .*path=/health.*\n", shown), shown
        hub.go_on.set()
        shown += terminal.read_until(f"has loaded {hub.name}")
        wait_until(lambda: asked(url, "GET", "/ready").status == 200, "it is not ready")
        terminal.type("\x03")
        shown += terminal.read_until("the server stops")
        assert terminal.wait() == 0
    assert "info downloading" not in shown


def test_a_long_prompt_has_a_bar_until_its_request_ends(tmp_path: Path) -> None:
    steps = [
        {"stage": "prefill", "current": 2048 * n, "total": 10**7, "unit": "tokens", "delay_ms": 100}
        for n in range(1200)
    ]
    script = tmp_path / "slow.json"
    script.write_text(json.dumps({"rules": [{"match": {"last_message": "long"}, "reply": {"progress": steps}}]}))
    with Terminal("serve", "mock", "--port", "0", "--worker", f"{MOCK} --scenario {script}") as terminal:
        url = (terminal.read_until("lmwire serves on ") + terminal.read_until("\n")).split()[-1]
        assert asked(url, "POST", CHAT, chat_body("short")).status == 200
        short = terminal.read_until(f"path={CHAT}")
        with RawClient(url) as client:
            client.chat("long", stream=True)
            terminal.read_until("mock: Reading the prompt")
            terminal.read_until("tokens")
        terminal.read_until(f"path={CHAT}")
        terminal.type("\x03")
        after = terminal.read_until("the server stops")
        assert terminal.wait() == 0
    assert "Reading the prompt" not in short + after
