"""The chat page as a test uses it. It notes every error in the console and every request to another host."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request, expect, sync_playwright

from support.process.programs import program
from support.process.worker_process import SECONDS

expect.set_options(timeout=SECONDS * 1000)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield Chromium as Linux installs it. Without it the tests are skipped; in CI they fail."""
    if sys.platform != "linux":
        pytest.skip("the chat page is tested on Linux")
    path = program("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"],
            timeout=SECONDS * 1000,
        )
        yield browser
        browser.close()


@contextmanager
def profile(browser: Browser, **options: Any) -> Iterator[BrowserContext]:
    """Yield a browser without any stored data, such as a person's who opens the page for the first time."""
    context = browser.new_context(**options)
    context.set_default_timeout(SECONDS * 1000)
    yield context
    context.close()


def body_of(request: Request) -> Any:
    """Return the JSON body of a request."""
    return json.loads(request.post_data or "null")


class ChatPage:
    """A tab with the chat page.

    Args:
        context: The browser's profile. Tabs of one profile share what the page stores.
        url: The server's address.
    """

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.errors: list[str] = []
        """Errors in the console, and exceptions that nothing caught."""
        self.foreign: list[str] = []
        """Requests to other hosts."""
        self.url = url.partition("#")[0].rstrip("/")
        self.tab: Page = context.new_page()
        self.tab.on("console", self._note_console)
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("request", self._note_request)
        self.tab.goto(url)
        self.composer = self.tab.get_by_role("textbox", name="Message", exact=True)
        expect(self.composer).to_be_visible()

    def ask(self, text: str) -> None:
        """Type a message and send it with the Enter key, or on a phone with the button."""
        self.composer.fill(text)
        if self.tab.evaluate("matchMedia('(pointer: coarse)').matches"):
            self.button("Send message").click()
        else:
            self.composer.press("Enter")

    def answered(self, text: str) -> Locator:
        """Send a message, wait for the end of its answer, and return the answer."""
        count = self.answers().count()
        self.ask(text)
        expect(self.answers()).to_have_count(count + 1)
        expect(self.answers().last).to_have_attribute("data-state", "done")
        return self.answers().last

    def answers(self) -> Locator:
        """Return the answers."""
        return self.tab.locator("[data-role=assistant]")

    def answer(self, state: str | None = None) -> Locator:
        """Return the last answer, once it has this state."""
        last = self.answers().last
        if state:
            expect(last).to_have_attribute("data-state", state)
        return last

    def text(self, answer: Locator | None = None) -> Locator:
        """Return the rendered text of an answer; of the last one by default."""
        return (answer or self.answers().last).locator("> .markdown")

    def questions(self) -> Locator:
        """Return the user's messages."""
        return self.tab.locator("[data-role=user]")

    def button(self, name: str) -> Locator:
        """Return a button by its name."""
        return self.tab.get_by_role("button", name=name, exact=True)

    def set(self, **settings: str | bool) -> None:
        """Change settings, each by the name of its field."""
        self.button("Settings").click()
        for name, value in settings.items():
            field = self.tab.locator(f"[data-input={name}]")
            if isinstance(value, bool):
                field.set_checked(value)
            elif name == "effort":
                field.select_option(value)
            else:
                field.fill(value)
                field.blur()
        self.button("Close").click()

    def another(self) -> "ChatPage":
        """Open another tab of the same profile, with the same conversation."""
        return ChatPage(self.tab.context, self.tab.evaluate("location.href"))

    def reload(self) -> None:
        """Reload the page, once what it has written so far is stored."""
        self.stored()
        self.tab.reload()

    def stored(self) -> str:
        """Return all messages that the browser has stored, as JSON, after what the page has begun to write."""
        return self.tab.evaluate(
            """() => new Promise((resolve) => {
                indexedDB.open("lmwire").onsuccess = ({ target: { result } }) => {
                    const transaction = result.transaction(["messages", "conversations"]); // waits for earlier changes
                    const all = transaction.objectStore("messages").getAll();
                    all.onsuccess = () => { result.close(); resolve(JSON.stringify(all.result)); };
                };
            })"""
        )

    def wait_until_stored(self, text: str) -> None:
        """Wait until the browser has stored a message with this text."""
        deadline = SECONDS * 20
        while text not in self.stored():
            deadline -= 1
            assert deadline, f"{text} was never stored"
            self.tab.wait_for_timeout(50)

    def assert_clean(self) -> None:
        """Check that there was no error and no request to another host."""
        assert self.errors == []
        assert self.foreign == []

    @contextmanager
    def reporting_an_error(self) -> Iterator[None]:
        """Expect that the browser reports an error in the block, as it does for each response from status 400 on.

        The report may come after the page has shown the problem, so the block waits for it.
        """
        with self.tab.expect_console_message(lambda message: message.type == "error", timeout=SECONDS * 1000):
            yield
        self.errors.clear()

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _note_request(self, request: Request) -> None:
        if not re.match(rf"{re.escape(self.url)}/|data:|blob:", request.url):
            self.foreign.append(request.url)
