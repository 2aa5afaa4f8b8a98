"""Images on the chat page, with a tiny model that sees."""

import base64
from collections.abc import Iterator
from io import BytesIO

import pytest
from PIL import Image
from playwright.sync_api import expect

from random_vision import write_vision_model
from support.http.http_server import Server, served_process
from support.page.chat_page import ChatPage, body_of

pytestmark = pytest.mark.nightly

PASTE = """(field, data) => {
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File([bytes], "red.png", { type: "image/png" }));
    field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""
DROP = """(data) => {
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([bytes], "dropped.png", { type: "image/png" }));
    for (const kind of ["dragover", "drop"]) {
        document.body.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
    }
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models") / "seeing"
    write_vision_model(folder, "smolvlm")
    with served_process(str(folder), "--max-tokens", "4") as server:
        yield server


@pytest.fixture
def red() -> str:
    """Return a red image as base64."""
    content = BytesIO()
    Image.new("RGB", (32, 32), (200, 30, 30)).save(content, "PNG")
    return base64.b64encode(content.getvalue()).decode()


def test_pasted_and_dropped_images_are_shown_and_seen_by_the_model(page: ChatPage, red: str) -> None:
    page.composer.evaluate(PASTE, red)
    page.tab.evaluate(DROP, red)
    previews = page.tab.locator(".composer [data-kind=image] img")
    expect(previews).to_have_count(2)
    page.button("Remove dropped.png").click()
    expect(previews).to_have_count(1)
    with page.tab.expect_request("**/chat/completions") as sent:
        answer = page.answered("What is in the picture?")
    [message] = body_of(sent.value)["messages"]
    assert message["content"][0] == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{red}"}}
    expect(page.questions().locator("img")).to_have_attribute("alt", "red.png")
    expect(answer.locator("[data-figure=Answer]")).to_contain_text("token")
    page.button("Model: seeing").click()
    expect(page.tab.locator("[data-model] .faint")).to_contain_text("images")
