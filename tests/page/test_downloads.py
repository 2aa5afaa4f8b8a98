"""The download of a model from the page, of a hub on this machine: its size first, its progress, and a cancel."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, expect

from support.http.http_server import Server, served_process
from support.models.fake_hub import Hub, only_hub
from support.page.chat_page import ChatPage, profile

pytestmark = pytest.mark.nightly

ID = "owner/tiny-chat"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with only_hub(ID, tmp_path, monkeypatch) as hub:
        yield hub


@pytest.fixture
def server(hub: Hub) -> Iterator[Server]:
    with served_process("--download") as server:
        yield server


def open_dialog(page: ChatPage) -> None:
    """Open the dialog by keys alone."""
    page.tab.locator("[data-action=models]").press("Enter")
    page.tab.locator("[data-action=download-dialog]").press("Enter")
    expect(page.tab.locator("[data-input=hub-model]")).to_be_focused()


def ask_size(page: ChatPage, name: str = ID) -> None:
    page.tab.locator("[data-input=hub-model]").fill(name)
    page.tab.locator("[data-input=hub-model]").press("Enter")


def test_a_model_is_downloaded_after_its_size_was_shown_and_can_be_chosen(page: ChatPage, hub: Hub) -> None:
    open_dialog(page)
    ask_size(page)
    size = page.tab.locator("[data-download=size]")
    expect(size).to_contain_text(f"{ID}: {len(list(hub.folder.iterdir()))} files, ")
    expect(size).to_contain_text("GB free.")
    assert not [each for each in hub.requests if "/resolve/" in each]
    page.tab.locator("[data-action=download]").press("Enter")
    done = f"{ID} has been downloaded. It is among the models now."
    expect(page.tab.locator("[data-download=last]")).to_have_text(done)
    page.button("Close").click()
    expect(page.tab.locator("[data-banner=notice]")).to_contain_text(done)
    page.tab.locator("[data-action=models]").click()
    expect(page.tab.locator(f"[data-model='{ID}']")).to_be_visible()


def test_a_download_shows_its_progress_survives_a_reload_and_is_cancelled(page: ChatPage, hub: Hub) -> None:
    hub.stall = "model.safetensors"
    open_dialog(page)
    ask_size(page)
    page.tab.locator("[data-action=download]").click()
    cancel = page.tab.locator("[data-action=cancel-download]")
    expect(cancel).to_be_focused()
    expect(page.tab.locator("[data-download=progress]")).to_contain_text(" of ")
    page.tab.reload()
    page.tab.locator("[data-action=models]").click()
    expect(page.tab.locator("[data-action=download-dialog]")).to_contain_text("Downloading tiny-chat")
    page.tab.locator("[data-action=download-dialog]").click()
    cancel.press("Enter")
    expect(page.tab.locator("[data-download=last]")).to_contain_text("was cancelled. What has arrived stays")
    expect(page.tab.locator("[data-input=hub-model]")).to_be_focused()


def test_a_model_that_the_hub_has_not_got_is_a_problem_with_a_remedy(page: ChatPage) -> None:
    open_dialog(page)
    with page.reporting_an_error():
        ask_size(page, "owner/none")
        expect(page.tab.get_by_role("alert")).to_contain_text("check the name")
    expect(page.tab.locator("[data-action=download]")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_dialog_is_accessible_in_both_themes(browser: Browser, server: Server, hub: Hub, scheme: str) -> None:
    hub.stall = "model.safetensors"
    with profile(browser, viewport={"width": 1180, "height": 800}, color_scheme=scheme) as context:
        page = ChatPage(context, server.url)
        open_dialog(page)
        ask_size(page)
        expect(page.tab.locator("[data-action=download]")).to_be_visible()
        check(page)
        page.tab.locator("[data-action=download]").click()
        expect(page.tab.locator("[data-download=progress]")).to_contain_text(" of ")
        check(page)
        page.assert_clean()


def check(page: ChatPage) -> None:
    found = Axe().run(page.tab)
    assert found.violations_count == 0, found.generate_report()


def test_the_page_offers_no_download_where_the_operator_allows_none(context: BrowserContext, hub: Hub) -> None:
    with served_process() as server:
        page = ChatPage(context, server.url)
        page.tab.locator("[data-action=models]").click()
        expect(page.tab.locator("[data-model]").first).to_be_visible()
        expect(page.tab.locator("[data-action=download-dialog]")).to_have_count(0)
        page.assert_clean()
