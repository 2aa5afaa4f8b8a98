"""Phones, themes, and the weight and the looks of the chat page."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Response, expect

from support.http.http_server import Server, served_process
from support.page.chat_page import ChatPage, profile

pytestmark = pytest.mark.nightly

MAX_FIRST_BYTES = 160_000
MAX_BYTES = 400_000
SCREENSHOTS = os.environ.get("LMWIRE_SCREENSHOTS")
"""Folder that the README's images are written to; none if it is not set."""


def test_what_is_sent_is_small_and_comes_when_it_is_needed(context: BrowserContext, server: Server) -> None:
    """Count what is sent: it is compressed, and has a head for each file."""
    sent: dict[str, Response] = {}

    def note(response: Response) -> None:
        if "/page/" in response.url or response.url == f"{server.url}/":
            sent[response.url] = response

    def weight() -> int:
        sizes = [each.request.sizes() for each in sent.values()]
        return sum(each["responseHeadersSize"] + each["responseBodySize"] for each in sizes)

    context.on("response", note)
    page = ChatPage(context, server.url)
    page.tab.wait_for_load_state("networkidle")
    assert 10 < len(sent) < 100
    assert weight() < MAX_FIRST_BYTES
    text = page.text(page.answered("$x$\n\n```python\nreturn\n```"))
    expect(text.locator("math")).to_have_count(1)
    expect(text.locator(".code-keyword")).to_have_count(1)
    page.tab.wait_for_load_state("networkidle")
    assert MAX_FIRST_BYTES < weight() < MAX_BYTES
    page.assert_clean()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.skipif(not SCREENSHOTS, reason="LMWIRE_SCREENSHOTS names no folder for the README's images")
def test_it_looks_as_the_readme_shows(browser: Browser, theme: str) -> None:
    """Write the images, with a real model, which `lmwire pull smollm2` must have fetched."""
    with (
        served_process("smollm2") as server,
        profile(browser, viewport={"width": 1180, "height": 860}, color_scheme=theme) as context,
    ):
        page = ChatPage(context, server.url)
        page.set(temperature="0")
        page.answered("What are the three states of matter? Answer with a short list.")
        page.answered("Write a Python function that returns the square of a number. Then explain it in one sentence.")
        expect(page.text().locator(".code-keyword").first).to_be_visible()
        page.tab.mouse.move(600, 5)
        page.tab.screenshot(path=Path(str(SCREENSHOTS)) / f"page-{theme}.png")


def test_a_phone_shows_everything_without_scrolling_sideways(browser: Browser, server: Server) -> None:
    with profile(browser, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True) as context:
        page = ChatPage(context, server.url)
        page.answered("sort a list")
        assert width_beyond_the_screen(page) == 0
        for name, opposite in {"Settings": "Close", "Show conversations": "Hide conversations"}.items():
            page.button(name).click()
            close = page.button(opposite).first
            expect(close).to_be_visible()
            assert width_beyond_the_screen(page) == 0
            close.click()
        page.tab.locator("[data-action=models]").click()
        assert width_beyond_the_screen(page) == 0
        page.assert_clean()


def test_an_empty_chat_is_read_from_its_beginning_on_a_small_phone(browser: Browser, server: Server) -> None:
    with profile(browser, viewport={"width": 320, "height": 480}, has_touch=True, is_mobile=True) as context:
        page = ChatPage(context, server.url)
        title = page.tab.get_by_role("heading", name="What is on your mind?")
        expect(title).to_be_in_viewport(ratio=1)
        expect(page.button("Scroll to the end")).to_have_count(0)
        page.answered("sort a list")
        page.button("New chat").click()
        expect(title).to_be_in_viewport(ratio=1)


def width_beyond_the_screen(page: ChatPage) -> int:
    """Return by how many pixels the widest box that does not scroll by itself leaves the screen."""
    return page.tab.evaluate(
        """() => Math.max(0, document.documentElement.scrollWidth - innerWidth,
            document.querySelector(".transcript").scrollWidth - document.querySelector(".transcript").clientWidth)"""
    )


def test_a_chosen_theme_stays(page: ChatPage) -> None:
    page.button("Dark theme").click()
    page.tab.reload()
    expect(page.tab.locator("html")).to_have_attribute("data-theme", "dark")
    page.button("Light theme").click()
    expect(page.tab.locator("html")).to_have_attribute("data-theme", "light")
