"""The table of formats of tool calls in the documents is that of the code."""

import tool_formats_table


def test_the_documents_list_every_format() -> None:
    page = tool_formats_table.PAGE.read_text()
    assert page == tool_formats_table.page_with_table(page), "run python tools/tool_formats_table.py"
