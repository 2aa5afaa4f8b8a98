"""Tools of MCP servers on the page: chosen for a chat, asked for at each call, and called by the server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, expect

from lmwire.mcp import McpServerConfig
from support.http.http_server import MOCK, Server, served_process, wait_until
from support.mcp.running import config_file, tool_server
from support.page.chat_page import ChatPage, body_of, profile

pytestmark = pytest.mark.nightly


def rule(message: str, reply: dict[str, Any]) -> dict[str, Any]:
    return {"match": {"last_message": message}, "reply": reply}


def calls(message: str, *tools: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the rule of an answer that calls tools."""
    found = [{"id": f"{message}-{n}", "name": name, "arguments": args} for n, (name, args) in enumerate(tools)]
    return {"match": {"last_message": message, "has": ["tools"]}, "reply": {"tool_calls": found}}


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file in which a call of `wait` says what becomes of it."""
    return tmp_path_factory.mktemp("calls") / "waiting"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, waiting: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("tools")
    scenario = folder / "answers.json"
    rules = [
        {"match": {"cmd": "load"}, "reply": {}},
        calls("add", ("tools__add", {"a": 1, "b": 2})),
        rule("3", {"text": "The sum is 3."}),
        calls("double twice", ("tools__add", {"a": 5, "b": 5})),
        calls("10", ("tools__add", {"a": 10, "b": 10})),
        rule("20", {"text": "It is 20 now."}),
        calls("two at once", ("tools__add", {"a": 3, "b": 4}), ("tools__fail", {"reason": "it rains"})),
        rule("it rains", {"text": "One has failed."}),
        rule("refused", {"text": "Then not."}),
        calls("wait", ("tools__wait", {"file": str(waiting)})),
    ]
    scenario.write_text(json.dumps({"rules": rules}))
    missing = McpServerConfig(name="missing", command=str(folder / "none"), env={"TOKEN": "secret"})
    config = config_file(folder, tool_server(), missing)
    options = ("--worker", f"{MOCK} --scenario {scenario}", "--mcp-config", str(config))
    with served_process("tests/mock-7b", *options) as server:
        yield server


def choose(page: ChatPage, *names: str) -> None:
    """Choose tools for the chat, once their server has listed them."""
    page.tab.locator("[data-action=tools]").click()
    for name in names:
        page.tab.locator(f"[data-tool={name}]").check()
    page.button("Close").click()


def call_of(answer: Locator, tool: str) -> Locator:
    return answer.locator(f"[data-call={tool}]")


def test_a_call_runs_only_after_the_user_has_allowed_it(page: ChatPage) -> None:
    choose(page, "tools__add")
    with page.tab.expect_request("**/chat/completions") as sent:
        answer = page.answered("add")
    [tool] = body_of(sent.value)["tools"]
    assert (tool["function"]["name"], tool["function"]["description"]) == ("tools__add", "Add two numbers.")
    expect(call_of(answer, "tools__add")).to_contain_text("Calls add of tools")
    expect(page.tab.locator("[data-role=tool]")).to_have_count(0)
    page.button("Allow once").click()
    expect(page.text(page.answers().nth(1))).to_have_text("The sum is 3.")
    result = page.tab.locator("[data-role=tool]")
    result.locator("summary").click()
    expect(result.locator("pre")).to_have_text("3")


def test_a_tool_that_is_allowed_for_the_chat_runs_in_several_rounds_and_not_in_another_chat(page: ChatPage) -> None:
    choose(page, "tools__add")
    page.answered("double twice")
    page.button("Always in this chat").click()
    expect(page.text(page.answers().nth(2))).to_have_text("It is 20 now.")
    expect(page.tab.locator("[data-role=tool]")).to_have_count(2)
    page.button("New chat").first.click()
    page.answered("add")
    expect(page.button("Allow once")).to_be_visible()


def test_the_model_learns_that_a_call_was_refused_and_that_another_has_failed(page: ChatPage) -> None:
    choose(page, "tools__add", "tools__fail")
    answer = page.answered("two at once")
    call_of(answer, "tools__fail").locator("[data-action=allow]").click()
    expect(call_of(answer, "tools__fail")).to_contain_text("The tool has failed.")
    call_of(answer, "tools__add").locator("[data-action=refuse]").click()
    expect(page.text(page.answers().nth(1))).to_have_text("One has failed.")
    expect(page.tab.locator("[data-role=tool] summary")).to_have_text(["Result of tools__add", "Error of tools__fail"])


def test_stopping_ends_a_running_call_in_its_server(page: ChatPage, waiting: Path) -> None:
    choose(page, "tools__wait")
    answer = page.answered("wait")
    page.button("Allow once").click()
    wait_until(lambda: waiting.exists() and waiting.read_text() == "started", "the call has not started")
    page.button("Stop the answer").click()
    expect(answer).to_contain_text("Stopped.")
    wait_until(lambda: waiting.read_text() == "cancelled", "the call goes on")
    expect(page.button("Allow once")).to_be_visible()


def test_a_server_that_has_failed_is_named_without_its_secrets(page: ChatPage) -> None:
    page.tab.locator("[data-action=tools]").click()
    expect(page.tab.locator("[data-server=missing]")).to_contain_text("cannot be started: No such file or directory")
    assert "secret" not in page.tab.evaluate("fetch('v1/mcp/tools').then((response) => response.text())")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1180, 360])
def test_the_choice_and_the_question_are_accessible(browser: Browser, server: Server, scheme: Any, width: int) -> None:
    with profile(browser, viewport={"width": width, "height": 760}, color_scheme=scheme) as context:
        page = ChatPage(context, server.url)
        page.tab.locator("[data-action=tools]").click()
        page.tab.locator("[data-tool=tools__add]").check()
        check_access(page)
        page.button("Close").click()
        page.answered("add")
        check_access(page)
        assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.assert_clean()


def check_access(page: ChatPage) -> None:
    results = Axe().run(page.tab)
    assert results.violations_count == 0, results.generate_report()
