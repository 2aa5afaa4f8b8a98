"""Hostile servers, whose connector runs in the test's own process."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from lmwire.mcp import McpServerConfig
from lmwire.mcp.messages import MAX_RESULT_CHARACTERS, MAX_TOOLS, Call, Cancel, Failed, Finished, ListChanged, Report
from support.mcp.running import hostile_server


class Host:
    """The host of a connector that runs in the same event loop.

    Args:
        server: The server to connect to.
    """

    def __init__(self, server: McpServerConfig) -> None:
        from lmwire.mcp.connector import connect

        self._commands = asyncio.StreamReader()
        self._reports: asyncio.Queue[Report] = asyncio.Queue()
        self._task = asyncio.create_task(connect(server, self._commands, self._reports.put_nowait))

    async def tools(self) -> ListChanged:
        report = await self._reports.get()
        assert isinstance(report, ListChanged), report
        return report

    async def call(self) -> Finished:
        """Call the tool `go`, and return the end of the call."""
        self.send(Call(1, "go", {}))
        return await self.finished()

    def send(self, command: Call | Cancel) -> None:
        self._commands.feed_data(msgspec.json.encode(command) + b"\n")

    async def finished(self) -> Finished:
        while not isinstance(report := await self._reports.get(), Finished):
            pass
        return report

    async def failed(self) -> str:
        while not isinstance(report := await self._reports.get(), Failed):
            pass
        return report.problem

    async def end(self) -> None:
        self._commands.feed_eof()
        await self._task


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write none of the package's log, which has all that a server sends. The program disables it, too."""
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)


# Over pipes.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "text"),
    [("no JSON", "done"), ("asks back", "refused"), ("huge schema", "done"), ("strange names", "done")],
)
def test_a_call_succeeds_whatever_else_the_server_sends(kind: str, text: str, tmp_path: Path) -> None:
    left_out = {"huge schema": ["large: its definition is larger than 64 KiB"]}

    async def run() -> None:
        host = Host(hostile_server(kind, tmp_path / "started"))
        listed = await host.tools()
        assert [tool.name for tool in listed.tools] == ["go"]
        if kind == "strange names":
            assert len(listed.left_out) == 5
            assert "\x1b" not in str(listed.left_out)
        else:
            assert listed.left_out == left_out.get(kind, [])
        result = (await host.call()).result
        assert result
        assert result.text == text
        await host.end()

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("many tools", MAX_TOOLS), ("endless pages", 1)])
def test_a_server_has_a_limit_of_tools(kind: str, count: int, tmp_path: Path) -> None:
    async def run() -> None:
        host = Host(hostile_server(kind, tmp_path / "started"))
        listed = await host.tools()
        assert len(listed.tools) == count
        assert 0 < len(listed.left_out) < 20
        await host.end()

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "problem"), [("huge line", "the server has ended"), ("wrong result", "cannot be read")]
)
def test_an_answer_that_cannot_be_read_fails_the_call(kind: str, problem: str, tmp_path: Path) -> None:
    async def run() -> None:
        host = Host(hostile_server(kind, tmp_path / "started"))
        await host.tools()
        assert problem in (await host.call()).problem
        if kind == "huge line":
            assert await host.failed() == "has sent a message of more than 8 MiB"
        await host.end()

    asyncio.run(run())


@pytest.mark.slow
def test_a_long_result_is_cut_and_says_so(tmp_path: Path) -> None:
    async def run() -> None:
        host = Host(hostile_server("huge result", tmp_path / "started"))
        await host.tools()
        result = (await host.call()).result
        assert result
        note = f"\n[The rest of {2**20:,} characters is left out.]"
        assert result.text == "é" * MAX_RESULT_CHARACTERS + note
        await host.end()

    asyncio.run(run())


@pytest.mark.slow
def test_a_call_can_be_cancelled_while_the_server_floods(tmp_path: Path) -> None:
    async def run() -> None:
        host = Host(hostile_server("floods", tmp_path / "started"))
        await host.tools()
        host.send(Call(1, "go", {}))
        while "floods" not in (tmp_path / "started").read_text():
            await asyncio.sleep(0.01)
        host.send(Cancel(1))
        assert (await host.finished()).problem == "the call was cancelled"
        await host.end()

    asyncio.run(run())


# Over HTTP.


class _Answers(BaseHTTPRequestHandler):
    """Answers as the path says."""

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response({"/key": 401, "/moved": 307, "/broken": 500}.get(self.path, 200))
        self.send_header("content-type", "text/html" if self.path == "/page" else "application/json")
        if self.path == "/compressed":
            self.send_header("content-encoding", "gzip")
        if self.path == "/moved":
            self.send_header("location", "http://169.254.169.254/latest")
        self.end_headers()
        try:
            for _ in range(64 if self.path == "/huge" else 1):
                self.wfile.write(b"x" * 2**20)
        except OSError:
            pass


@contextmanager
def hostile_address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("key", "answers with status 401: give its key in `headers`"),
        ("compressed", "sends compressed answers, although it is asked for plain ones"),
        ("huge", "has sent a message of more than 8 MiB"),
        ("junk", "does not keep to the protocol"),
        ("page", "refuses the connection: Unexpected content type: text/html"),
        ("moved", "refuses the connection: Redirect to"),
        ("broken", "refuses the connection: Server returned an error response"),
    ],
)
def test_what_is_no_server_fails_with_a_sentence(path: str, problem: str) -> None:
    async def run(address: str) -> None:
        host = Host(McpServerConfig(name="web", url=f"{address}/{path}"))
        assert (await host.failed()).startswith(problem)
        await host.end()

    with hostile_address() as address:
        asyncio.run(run(address))


def test_an_address_is_not_part_of_the_problem_since_it_may_have_a_key() -> None:
    async def run() -> None:
        host = Host(McpServerConfig(name="web", url="http://127.0.0.1:1/?key=secret"))
        assert await host.failed() == "cannot be reached (ConnectError)"
        await host.end()

    asyncio.run(run())
