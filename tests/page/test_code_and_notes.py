"""Colours of code and footnotes in answers."""

import pytest
from playwright.sync_api import BrowserContext, expect

from support.http.http_server import Server
from support.page.chat_page import ChatPage

pytestmark = pytest.mark.nightly

LINE = f"let {'a' * 250};\n"
PLAIN = {
    "an unknown language": "```nosuch\nlet a\n```",
    "no language": "```\nlet a\n```",
    "a diagram": "```mermaid\ngraph TD; A-->B\n```",
    "a long line": f"```js\nlet {'a' * 300}\n```",
    "many lines": f"```js\n{LINE * 200}```",
}


def test_code_has_colours_and_is_copied_as_it_is(context: BrowserContext, page: ChatPage, server: Server) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    code = 'def f(x):\n    return f"{x}"  # <b>'
    quoted = f"```python\n{code}\n```".replace("\n", "\n> ")
    text = page.text(page.answered(f"> {quoted}\n\nend"))
    expect(text.locator(".code-keyword")).to_have_text(["def", "return"])
    expect(text.locator(".code-comment")).to_have_text("# <b>")
    text.get_by_role("button", name="Copy", exact=True).click()
    assert page.tab.evaluate("navigator.clipboard.readText()") == code


def test_long_code_is_coloured_in_parts(page: ChatPage) -> None:
    code = "let a;\n\nlet b;\n" * 1000
    text = page.text(page.answered(f"```js\n{code}```"))
    expect(text.locator(".code-keyword")).to_have_count(2000)
    assert text.locator("code").text_content() == code.rstrip("\n")


@pytest.mark.parametrize("kind", PLAIN)
def test_code_without_a_known_language_and_long_code_are_plain(page: ChatPage, kind: str) -> None:
    text = page.text(page.answered(f"{PLAIN[kind]}\n\n```css\na {{}}\n```"))
    expect(text.locator("[data-language=css] .code-selector")).to_have_count(1)  # the library is there
    expect(text.locator("figure").first.locator("code *")).to_have_count(0)


def test_a_footnote_and_its_text_lead_to_each_other(page: ChatPage) -> None:
    address = page.tab.evaluate("location.href")
    text = page.text(page.answered("a[^1] and [^x]\n\n[^1]: the note"))
    text.get_by_role("button", name="Note 1", exact=True).click()
    expect(text.get_by_role("note")).to_be_focused()
    expect(text.get_by_role("note")).to_contain_text("the note")
    text.get_by_role("button", name="Back to the text of note 1").click()
    expect(text.get_by_role("button", name="Note 1", exact=True)).to_be_focused()
    expect(text.locator("p").first).to_have_text("a1 and [^x]")
    assert page.tab.evaluate("location.href").startswith(address)
