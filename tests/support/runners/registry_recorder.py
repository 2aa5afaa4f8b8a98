"""A fake output queue that records the lines of a request registry."""

import msgspec

from lmwire_protocol.events import Token
from lmwire_worker.session.output_queue import OutputQueue
from support.process.worker_process import Event


class Recorder(OutputQueue):
    """Output queue that collects the lines instead of writing them."""

    def __init__(self) -> None:
        super().__init__(lambda data: None)
        self.lines: list[Event] = []

    def put_tokens(self, token: Token) -> None:
        self.lines.append({"event": "token", "id": token.id, "token": token.token})

    def put_tool_call(self, id: str, line: bytes) -> None:
        self._record(line)

    def put_stream(self, line: bytes) -> None:
        self._record(line)

    def put_terminal(self, id: str, line: bytes) -> None:
        self._record(line)

    def put_reply(self, line: bytes) -> None:
        self._record(line)

    def terminals(self) -> list[str]:
        return [line["id"] for line in self.lines if line["event"] in ("done", "error")]

    def _record(self, line: bytes) -> None:
        self.lines.append(msgspec.json.decode(line))
