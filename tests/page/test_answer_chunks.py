"""The chunks of an answer, put together by the page's own module, without a browser."""

import pytest

from support.page.modules import in_node

JOIN = """
const { addChunk } = await load("conversation/answer_chunks.js");
const message = { content: "" };
for (const content of given) addChunk(message, { choices: [{ delta: { content } }] });
return message.content;
"""


@pytest.mark.slow
def test_the_blank_lines_before_an_answer_are_left_out() -> None:
    assert in_node(JOIN, ["\n", "\r\n\n  So", "\n\nit is."]) == "  So\n\nit is."
