"""Markdown that grows: each block is rendered once, and the end is the same however the text came."""

import json
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from support.http.http_server import MOCK, Server, served_process
from support.page.chat_page import ChatPage, profile

pytestmark = pytest.mark.nightly

PARAGRAPHS: Final = 500
_WORDS: Final = "has **bold** words and `code` and enough others to fill one line, so that it ends here now."
LONG: Final = "\n\n".join(f"Paragraph {number} {_WORDS}" for number in range(PARAGRAPHS))
"""A text of 10,000 words, which are tokens of the mock."""
CODE: Final = "\n".join(["```text", *(f"line {number}" for number in range(2000)), "```"])

STREAM = """async ([text, size]) => {
    const { MarkdownStream } = await import("/page/markdown/markdown_stream.js");
    const render = (parts) => {
        const element = document.createElement("div");
        const stream = new MarkdownStream(element);
        let shown = "";
        for (const part of parts) stream.update((shown += part), false);
        stream.update(shown, true);
        return element.innerHTML;
    };
    const parts = Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size));
    return [render([text]), render(parts)];
}"""
COUNT = """async ([text, name, size]) => {
    const { MarkdownStream } = await import("/page/markdown/markdown_stream.js");
    const stream = new MarkdownStream(document.createElement("div"));
    const { createElement } = Document.prototype;
    let count = 0;
    document.createElement = (...names) => ((count += names[0] === name), createElement.apply(document, names));
    for (let end = size; end < text.length; end += size) stream.update(text.slice(0, end), false);
    stream.update(text, true);
    delete document.createElement;
    return count;
}"""
"""Counts the elements of a name that are made for a text that comes in parts."""
SAMPLES = {
    "headings": "# One\n\n### Two\n\ntext\n===\n\nmore\n---\n",
    "lists": "- a\n- b\n  - c\n\n    text\n- d\n\nafter\n\n1. x\n2. y\n\n   z\n3. w\n\n- [ ] open\n- [x] done\n",
    "code": "Before\n\n```python title\nx = 1\n\n```\n~~~\n```\n~~~\n\n    indented\n\nend",
    "fences": "  ```\n  in\n  ```\nend\n\n````\n```\n````\nlast",
    "open code": "```js\nlet a = `x`;\n\n``\nmore\n",
    "tables": "| a | b |\n|---|:-:|\n| 1 | `x` |\n| 2 | **y** |\n\nafter <br> it",
    "inline": "a **b *c* d** ~~e~~ \\* &lt; &#65; &copy; &nope; <b>x</b>",
    "links": "https://example.org ![i](https://e.org/i.png) [a](https://e.org)\r\nnext  \nline",
    "mathematics": "a $x_1$ \\(b\\)\n$$\nf\n+ g\n- h\n$$\nb $5\n\n\\[\nx\n\\]\n\n$$\nopen\n\n- end",
    "footnotes": "a[^1] [^x]\n\n[^1]: one\n  more\n[^2]: two\nb[^2]\n\n- c[^1]\n\nend",
    "quotes": "> a\n> b\n\n> c\n>\n> - d\n\n---\n\nend",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a mock worker with a long answer."""
    script = tmp_path_factory.mktemp("script") / "long.json"
    rules = [{"match": {"last_message": "a long answer"}, "reply": {"text": LONG}}]
    script.write_text(json.dumps({"rules": rules}))
    with served_process("mock", "--worker", f"{MOCK} --scenario {script}") as server:
        yield server


@pytest.fixture(scope="module")
def renderer(browser: Browser, server: Server) -> Iterator[ChatPage]:
    """Open a page whose own modules render texts."""
    with profile(browser) as context:
        yield ChatPage(context, server.url)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_text_that_comes_in_parts_looks_like_the_whole(renderer: ChatPage, sample: str) -> None:
    for size in (1, 3, 7):
        whole, streamed = renderer.tab.evaluate(STREAM, [SAMPLES[sample], size])
        assert streamed == whole


def test_a_long_answer_is_shown_whole(page: ChatPage) -> None:
    answer = page.answered("a long answer")
    expect(page.text(answer).locator("> p")).to_have_count(PARAGRAPHS)
    expect(answer.locator("[data-figure=Answer]")).to_have_text("10,000 tokens")


def test_of_a_long_answer_only_the_last_block_is_rendered_again(renderer: ChatPage) -> None:
    size = 40
    rendered = renderer.tab.evaluate(COUNT, [LONG, "p", size])
    assert PARAGRAPHS <= rendered <= PARAGRAPHS + 2 * (len(LONG) // size + 1)


def test_a_long_block_of_code_grows_without_being_rendered_again(renderer: ChatPage) -> None:
    assert renderer.tab.evaluate(COUNT, [CODE, "figure", 40]) < 5
