"""Checks of each commit in a browser: the page fits the API, runs no code of an answer, and is accessible."""

import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, FilePayload, expect

from support.http.http_server import Server
from support.nightly import nightly_but
from support.page.chat_page import ChatPage, body_of, profile
from support.pdf.files import encrypted, text_pages

pytestmark = pytest.mark.slow

WEATHER = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
RICH = "so $x^2$[^1] is\n\n\\[\n\\frac{1}{2}\n\\]\n\n```js\nlet a = 'b'; // 1\n```\n\n[^1]: A note."
"""A text with formulas, code and a footnote, which the mock repeats."""


def test_an_answer_comes_as_markdown_with_its_figures(page: ChatPage) -> None:
    answer = page.answered("How do I sort a list?")
    text = page.text(answer)
    expect(text.get_by_role("heading", name="Sorting in Python")).to_be_visible()
    expect(text.locator("strong").first).to_have_text("Timsort")
    expect(text.locator("tbody tr")).to_have_count(2)
    expect(text.locator("ol > li")).to_have_count(2)
    link = text.get_by_role("link", name="the documentation")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    for figure, pattern in {"Answer": "tokens", "First token": "first token", "Cached": r"\d+ of \d+ cached"}.items():
        expect(answer.locator(f"[data-figure='{figure}']")).to_contain_text(re.compile(pattern))
    expect(answer.locator("[data-figure=Context]")).to_contain_text("% of context")


def test_an_answer_is_shown_while_it_comes_and_stops_when_told_to(page: ChatPage, server: Server) -> None:
    page.ask("say one and wait")
    expect(page.text()).to_have_text("One two")
    expect(page.answer()).to_have_attribute("aria-busy", "true")
    page.button("Stop the answer").click()
    expect(page.text(page.answer("stopped"))).to_have_text("One two")
    server.wait_for("lmwire_http_requests_in_flight", 1.0)  # that of /metrics itself
    expect(page.composer).to_be_focused()


def test_a_stopped_answer_can_be_continued(page: ChatPage) -> None:
    page.ask("say one and wait")
    expect(page.text()).to_have_text("One two")
    page.button("Stop the answer").click()
    page.answer("stopped").get_by_role("button", name="Continue").click()
    expect(page.text(page.answer("running"))).to_have_text("One twoOne two")
    page.button("Stop the answer").click()
    page.answer("stopped")


def test_tool_calls_are_shown_and_their_results_sent(page: ChatPage) -> None:
    page.set(tools=json.dumps(WEATHER))
    call = page.answered("the weather in Rome").locator("[data-call=weather]")
    expect(call.locator("pre")).to_have_text('{\n  "city": "Rome",\n  "unit": "C"\n}')
    call.get_by_label("Result of weather").fill("21 degrees")
    page.button("Send result").click()
    expect(page.text(page.answer("done"))).to_have_text("It is 21 degrees in Rome.")
    expect(page.tab.locator("[data-role=tool]")).to_contain_text("Result of weather")


def test_an_answer_in_json_follows_the_schema_of_the_settings(page: ChatPage) -> None:
    page.set(isJson=True, schema='{"type": "object", "properties": {"city": {"type": "string"}}}')
    assert json.loads(page.text(page.answered("which city")).inner_text()) == {"city": "Rome"}


def test_sampling_settings_and_the_system_prompt_reach_the_server(page: ChatPage) -> None:
    page.set(temperature="0.3", top_k="20", seed="7", max_tokens="50", system="Be brief.")
    with page.tab.expect_request("**/chat/completions") as sent:
        expect(page.text(page.answered("sampling"))).to_have_text("The settings have arrived.")
    assert body_of(sent.value)["messages"][0] == {"role": "system", "content": "Be brief."}


def test_reasoning_can_be_turned_off(page: ChatPage) -> None:
    page.set(effort="none")
    expect(page.text(page.answered("reasoning off"))).to_have_text("No reasoning.")


def test_sounds_and_texts_can_be_added_and_other_files_are_refused(page: ChatPage) -> None:
    page.tab.locator("[data-input=files]").set_input_files(
        [
            {"name": "note.wav", "mimeType": "audio/wav", "buffer": b"RIFF"},
            {"name": "list.csv", "mimeType": "text/csv", "buffer": b"a,b"},
            {"name": "tool.exe", "mimeType": "application/x-msdownload", "buffer": b"MZ"},
        ]
    )
    expect(page.tab.locator(".composer .attachment")).to_have_count(2)
    expect(page.tab.locator("[data-banner=notice]")).to_contain_text("tool.exe")
    with page.reporting_an_error(), page.tab.expect_request("**/chat/completions") as sent:
        page.ask("Listen and read.")
        page.answer("failed")  # the model hears nothing
    sound, text, _ = body_of(sent.value)["messages"][0]["content"]
    assert sound["input_audio"] == {"data": "UklGRg=="}
    assert text["text"].startswith("list.csv:\n\na,b")


def test_an_error_of_the_server_stands_in_the_answers_place(page: ChatPage) -> None:
    with page.reporting_an_error():
        page.ask("no luck")
        expect(page.answer("failed").get_by_role("alert")).to_contain_text("engine")
    expect(page.button("Regenerate answer")).to_be_visible()


def test_an_answer_that_failed_is_tried_again(page: ChatPage) -> None:
    with page.reporting_an_error():
        page.ask("second attempt")
        expect(page.answer("failed").get_by_role("alert")).to_contain_text("Try again.")
    page.button("Try again").click()
    expect(page.text(page.answer("done"))).to_have_text("second attempt")
    expect(page.answer().get_by_role("alert")).to_have_count(0)


def test_the_text_of_a_pdf_is_sent_and_one_without_text_is_refused(page: ChatPage) -> None:
    def add(name: str, content: bytes) -> None:
        file: FilePayload = {"name": name, "mimeType": "application/pdf", "buffer": content}
        page.tab.locator("[data-input=files]").set_input_files(file)

    with page.reporting_an_error():
        add("secret.pdf", encrypted(text_pages("alpha"), "user", "owner"))
        expect(page.tab.locator("[data-banner=notice]")).to_contain_text("secret.pdf: it is encrypted")
    add("two.pdf", text_pages("alpha", "beta"))
    expect(page.tab.locator(".composer .attachment")).to_have_text("two.pdf 2 pages · 1 KB")
    with page.tab.expect_request("**/chat/completions") as sent:
        page.answered("gamma")
    [message] = body_of(sent.value)["messages"]
    assert [part["text"] for part in message["content"]] == ["two.pdf:\n\nalpha\n\nbeta\n", "gamma"]
    expect(page.questions().locator(".attachment")).to_contain_text("2 pages")


def test_a_hostile_answer_is_text(page: ChatPage) -> None:
    answer = page.text(page.answered("hostile"))
    expect(
        answer.locator("script, iframe, svg, style, object, embed, form, [onerror], [onload], [onclick]")
    ).to_have_count(0)
    expect(answer.locator("img")).to_have_count(0)
    expect(answer).to_contain_text("<script>window.hacked = 1</script>")
    expect(answer.get_by_role("link", name="raw")).to_have_count(0)
    for link in answer.get_by_role("link").all():
        assert str(link.get_attribute("href")).startswith(("https://tracker.example/", "https://example.org/"))
        assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    assert page.tab.evaluate("window.hacked") is None


def test_the_policy_refuses_code_in_the_page(page: ChatPage) -> None:
    with page.reporting_an_error():
        refused = page.tab.evaluate(
            """() => {
                try { document.createElement("div").innerHTML = "<b>x</b>"; return false; } catch { return true; }
            }"""
        )
    assert refused


@pytest.mark.parametrize("theme", nightly_but({"light"}, ["light", "dark"]))
def test_the_page_breaks_no_rule_of_accessibility(browser: Browser, server: Server, theme: str) -> None:
    with profile(
        browser, viewport={"width": 1180, "height": 800}, color_scheme=theme, reduced_motion="reduce"
    ) as context:
        page = ChatPage(context, server.url)
        expect(page.tab.locator("[data-facts]")).to_be_visible()
        assert_accessible(page)
        page.answered("sort a list")
        page.answered("sort a list")  # with another table, and more code in the same language
        page.tab.locator(".reasoning summary").last.click()
        page.answered(RICH)
        expect(page.text().locator(".code-keyword")).to_have_count(1)
        expect(page.text().locator("math")).to_have_count(2)
        assert_accessible(page)
        page.button("Search").click()
        expect(page.tab.locator(".results li")).to_have_count(1)
        assert_accessible(page)
        page.tab.keyboard.press("Escape")
        page.tab.locator("[data-action=models]").click()
        assert_accessible(page)
        page.tab.keyboard.press("Escape")
        page.button("Settings").click()
        page.tab.locator("[data-input=isJson]").check()
        assert_accessible(page)
        page.button("Close").click()
        page.assert_clean()


def assert_accessible(page: ChatPage) -> None:
    """Check the rules of axe, those of best practice included."""
    found = Axe().run(page.tab)
    assert found.violations_count == 0, found.generate_report()
