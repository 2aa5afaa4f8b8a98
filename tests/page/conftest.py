"""One browser and one server for the tests of a file, and a fresh profile for each test.

For each commit run test_endpoints.py, the tests of modules that need no browser, and test_each_commit.py, the only one
that starts a browser. They alone notice that the page does not fit the API, and that an answer can run code. Layout,
storage, tabs, versions, copies, keys and changes of the server are the page's own code, and run at night.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from support.http.http_server import MOCK, Server, served_process
from support.page.chat_page import ChatPage, chromium, profile

SCRIPT = Path(__file__).with_name("page_answers.json")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Serve a mock worker that answers as page_answers.json defines."""
    with served_process("tests/mock-7b", "--worker", f"{MOCK} --scenario {SCRIPT}") as server:
        yield server


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with profile(browser, viewport={"width": 1180, "height": 800}) as context:
        yield context


@pytest.fixture
def page(context: BrowserContext, server: Server) -> Iterator[ChatPage]:
    """Open the page. A test fails if the page reports an error or asks another host."""
    page = ChatPage(context, server.url)
    yield page
    page.assert_clean()
