"""The driver of protocol/minimal_host.py for `lmwire conformance host`: minimal_host_driver.py HOST."""

import json
import os
import runpy
import sys
import threading
from typing import Any

HOST = runpy.run_path(sys.argv[1])
COMMAND = json.loads(os.environ["LMWIRE_WORKER_COMMAND"])

_lock = threading.Lock()


def report(saw: str, **members: Any) -> None:
    """Print one observation."""
    with _lock:
        print(json.dumps({"saw": saw, **members}), flush=True)


class Driver:
    """Runs the instructions, with a thread for each request."""

    def __init__(self) -> None:
        self._requests: dict[str, Any] = {}

    def start(self, timeout: float = 30, restart: bool = False) -> None:
        """Start a worker. It is never restarted."""
        self._worker = HOST["Worker"](*COMMAND)
        try:
            self._worker.start(timeout)
        except HOST["RequestFailed"]:
            report("start_failed")
        else:
            report("started")

    def request(self, name: str, command: dict[str, Any], timeout: float | None = None) -> None:
        """Send a request."""
        self._requests[name] = self._worker.send(command.pop("cmd"), **command)
        threading.Thread(target=self._wait, args=(name, timeout), daemon=True).start()

    def _wait(self, name: str, timeout: float | None) -> None:
        def report_text(event: dict[str, Any]) -> None:
            if event["event"] == "token":
                more = {member: event[member] for member in ("choice", "channel") if event.get(member)}
                report("text", name=name, text=event["token"], **more)

        try:
            done = self._worker.result(self._requests[name], timeout, report_text)
        except HOST["RequestFailed"] as failure:
            report("failed", name=name, code=failure.code, retryable=failure.retryable)
        else:
            report("done", name=name, **({"finish_reason": HOST["finish_reason"](done)} if "usage" in done else {}))

    def cancel(self, name: str) -> None:
        """Cancel a request."""
        self._worker.cancel(self._requests[name])

    def close(self, drain: bool = False) -> None:
        """End the worker. It is never drained."""
        self._worker.stop((1, 1, 1))
        report("closed")


if __name__ == "__main__":
    driver = Driver()
    for line in sys.stdin:
        instruction = json.loads(line)
        getattr(driver, instruction.pop("do"))(**instruction)
