"""Formulas in answers: shown as MathML, copied as their sources, and harmless whatever they contain."""

import pytest
from playwright.sync_api import BrowserContext, expect

from support.http.http_server import Server
from support.page.chat_page import ChatPage

pytestmark = pytest.mark.nightly

HOSTILE = [
    r"\href{https://tracker.example}{x}",
    r"\includegraphics{https://tracker.example/x.png}",
    r"\htmlId{composer}{x}",
    r"\def\a{\a\a}\a",
    r"\newcommand{\b}[1]{#1#1#1#1}\b{\b{\b{\b{\b{\b{\b{x}}}}}}}",
    r"\sqrt" * 900 + "x",
    "x^{" * 900 + "x" + "}" * 900,
    r"\left(" * 250 + "x" + r"\right)" * 250,
]
SELECT = """([start, end]) => {
    const answer = document.querySelector("[data-role=assistant] > .markdown");
    const walker = document.createTreeWalker(answer, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    getSelection().setBaseAndExtent(nodes.at(0), start, nodes.at(-1), end);
}"""
"""Selects an answer from a character of its first text to a character of its last one."""


def test_formulas_are_shown_and_the_library_comes_with_the_first(context: BrowserContext, page: ChatPage) -> None:
    loaded: list[str] = []
    context.on("request", lambda request: loaded.append(request.url.rpartition("/")[2]))
    page.answered("costs $5 and $10")
    assert "temml.js" not in loaded
    text = page.text(page.answered("so $x^2$ and\n\n$$\n\\frac{1}{2}\n$$"))
    expect(text.locator("p > .math math msup")).to_have_count(1)
    expect(text.get_by_role("group", name="Formula").locator("math mfrac")).to_have_count(1)
    assert {"temml.js", "temml.css"} <= {*loaded}


def test_formulas_are_copied_as_their_sources(context: BrowserContext, page: ChatPage, server: Server) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    text = page.text(page.answered("so $x^2$ is\n\n\\[\ny\n\\]\n\nthe end"))
    expect(text.locator("math")).to_have_count(2)
    page.tab.evaluate(SELECT, [1, 3])
    page.tab.keyboard.press("Control+c")
    assert page.tab.evaluate("navigator.clipboard.readText()") == "o $x^2$ is\n\n\\[ y \\]\n\nthe"


@pytest.mark.parametrize("source", HOSTILE, ids=[source[:9] for source in HOSTILE])
def test_a_hostile_formula_stays_its_source(page: ChatPage, source: str) -> None:
    text = page.text(page.answered(f"${source}$ and $x$"))
    expect(text.locator("math")).to_have_count(1)
    expect(text.locator(".math").first).to_have_text(f"${source}$")
    expect(text.locator("a, img, [id]")).to_have_count(0)


def test_a_formula_has_neither_names_nor_sizes_that_reach_beyond_it(page: ChatPage) -> None:
    text = page.text(
        page.answered(r"$\label{composer} x$ $\rule{9999em}{9999em}$ $\pmb{b} \hspace{-999em} \color{red}{y}$")
    )
    expect(text.locator("math")).to_have_count(3)
    expect(text.locator("[id]")).to_have_count(0)
    box = text.locator("math").nth(1).bounding_box()
    assert box and box["height"] < 600
