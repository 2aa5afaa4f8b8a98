"""Several answers to one message, side by side."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, expect

from support.http.http_server import MOCK, Server, served_process
from support.page.chat_page import ChatPage, body_of

from .conftest import SCRIPT

pytestmark = pytest.mark.nightly

BESIDE = "Another answer beside this one"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Serve two models."""
    with served_process("tests/one", "tests/two", "--worker", f"{MOCK} --scenario {SCRIPT}") as server:
        yield server


def choose(page: ChatPage, name: str) -> None:
    page.tab.locator("[data-action=models]").click()
    page.tab.locator(f"[data-model='tests/{name}'] .model-name").click()


def test_two_models_answer_side_by_side_and_the_chat_goes_on_with_one(page: ChatPage) -> None:
    page.answered("which version")
    choose(page, "two")
    page.button(BESIDE).click()
    expect(page.answers()).to_have_count(2)
    expect(page.answers().locator(".answer-name")).to_have_text(["one", "two"])
    boxes = [page.answers().nth(place).bounding_box() for place in (0, 1)]
    assert boxes[0] and boxes[1] and boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]
    page.button("Go on with this answer").click()
    expect(page.answers().first).to_contain_text("The chat goes on with this answer")
    first = page.text(page.answers().first).inner_text()
    page.reload()
    expect(page.answers()).to_have_count(2)
    with page.tab.expect_request("**/chat/completions") as sent:
        page.ask("alpha")
    assert [each["content"] for each in body_of(sent.value)["messages"]] == ["which version", first, "alpha"]
    expect(page.answers()).to_have_count(2)
    expect(page.text(page.answer("done"))).to_have_text("alpha")
    expect(page.answers().first.get_by_label("Version 1 of 2")).to_be_visible()


def test_answers_that_run_side_by_side_stop_together(context: BrowserContext, page: ChatPage) -> None:
    page.ask("say one and wait")
    expect(page.text()).to_have_text("One two")
    page.button("Stop the answer").click()
    page.answer("stopped")
    page.button(BESIDE).click()
    expect(page.text(page.answers().last)).to_have_text("One two")
    page.answers().first.get_by_role("button", name=BESIDE).click()
    expect(page.tab.locator("[data-state=running]")).to_have_count(2)
    page.button("Stop the answer").click()
    expect(page.tab.locator("[data-state=stopped]")).to_have_count(3)
