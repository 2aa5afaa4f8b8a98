"""`lmwire chat` on a terminal: a conversation."""

import json
from pathlib import Path

import pytest

from support.process.lmwire_command import FAKE_WORKER, MOCK_WORKER, Terminal

pytestmark = pytest.mark.slow

ENDLESS = ("chat", "mock:step_ms=5", "--worker", MOCK_WORKER, "--max-tokens", "1000000")
SHORT = ("chat", "mock", "--worker", MOCK_WORKER)
RECITING = ("chat", "it", "--worker", f"{FAKE_WORKER} RecitesTheConversation")
ENTER, CTRL_C, CTRL_D = "\r", "\x03", "\x04"
PROMPT = ">"  # prompt_toolkit moves the cursor instead of writing the space


def test_it_answers_turn_after_turn_with_a_summary() -> None:
    with Terminal(*SHORT) as terminal:
        terminal.read_until(PROMPT)
        terminal.type(f"first **words**{ENTER}")
        terminal.read_until("\nfirst words")  # formatted; the typed line still has its asterisks
        assert "tok/s" in terminal.read_until(PROMPT)
        terminal.type(f"second{ENTER}")
        terminal.read_until("\nsecond")
        assert "1 token" in terminal.read_until(PROMPT)
        terminal.type(CTRL_D)
        assert terminal.wait() == 0


def test_ctrl_c_stops_the_answer_and_not_the_program() -> None:
    with Terminal(*ENDLESS) as terminal:
        terminal.read_until(PROMPT)
        terminal.type(f"again and again {ENTER}")
        terminal.read_until("and again again")
        terminal.type(CTRL_C)
        terminal.read_until("stopped")
        terminal.read_until(PROMPT)
        terminal.type(f"another {ENTER}")
        terminal.read_until("another another")
        terminal.type(CTRL_C)
        terminal.read_until(PROMPT)
        terminal.type(f"/quit{ENTER}")
        assert terminal.wait() == 0


@pytest.mark.nightly  # test_chat_session.py shows it without a terminal
def test_an_image_can_be_sent_in_the_middle_of_it(tmp_path: Path) -> None:
    (tmp_path / "an image.png").write_text("image")
    with Terminal(*RECITING) as terminal:
        terminal.read_until(PROMPT)
        terminal.type(f"/image {tmp_path / 'none.png'}{ENTER}")
        terminal.read_until("none.png: No such file")
        terminal.read_until(PROMPT)
        terminal.type(f"/image {tmp_path / 'an image.png'}{ENTER}")
        terminal.read_until("It will be sent with your next prompt.")
        terminal.read_until(PROMPT)
        terminal.type(f"see{ENTER}")
        terminal.read_until("aW1hZ2U=")
        terminal.read_until(PROMPT)
        terminal.type(CTRL_D)
        assert terminal.wait() == 0


def test_ctrl_c_twice_at_the_prompt_quits() -> None:
    with Terminal(*SHORT) as terminal:
        terminal.read_until(PROMPT)
        terminal.type(CTRL_C)
        terminal.read_until("Ctrl-C once more quits")
        terminal.read_until(PROMPT)
        terminal.type(CTRL_C)
        assert terminal.wait() == 0


def test_one_prompt_on_a_terminal_is_answered_without_a_conversation() -> None:
    with Terminal(*SHORT, "-p", "only this") as terminal:
        terminal.read_until("only this")
        terminal.read_until("tok/s")
        assert terminal.wait() == 0


@pytest.mark.parametrize(
    ("finish_reason", "message"),
    [("length", "no more tokens were allowed"), ("capacity", "there was no memory for more")],
)
def test_the_summary_has_the_reason_of_a_cut_off_answer(finish_reason: str, message: str, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"rules": [{"reply": {"text": "so", "finish_reason": finish_reason}}]}))
    with Terminal("chat", "mock", "--worker", f"{MOCK_WORKER} --scenario {scenario}", "-p", "x") as terminal:
        assert "cut off: " in terminal.read_until(message)
        assert terminal.wait() == 0


def test_ctrl_c_ends_a_program_that_has_one_prompt() -> None:
    with Terminal(*ENDLESS, "-p", "on and on ") as terminal:
        terminal.read_until("on and on on")
        terminal.type(CTRL_C)
        assert terminal.wait() == 130


@pytest.mark.nightly  # test_chat_session.py shows it without a terminal
def test_a_refused_turn_is_reported_and_the_conversation_continues() -> None:
    with Terminal(*SHORT, "--temperature", "-1") as terminal:
        terminal.read_until(PROMPT)
        terminal.type(f"hello{ENTER}")
        terminal.read_until("`temperature`")
        terminal.read_until(PROMPT)


@pytest.mark.nightly  # test_chat_display.py shows it without a terminal
def test_reasoning_is_shown_before_the_answer() -> None:
    with Terminal(*RECITING) as terminal:
        terminal.read_until(PROMPT)
        terminal.type(f"think{ENTER}")
        terminal.read_until("thought []")
        terminal.read_until("Done.")


@pytest.mark.nightly  # test_chat_session.py shows it without a terminal
def test_a_tool_call_is_shown_and_its_result_asked_for() -> None:
    with Terminal(*RECITING) as terminal:
        terminal.read_until(PROMPT)
        terminal.type(f"call{ENTER}")
        terminal.read_until('look({"at": "it"})')
        terminal.read_until("look:")
        terminal.type(f"a cat{ENTER}")
        terminal.read_until("tool: a cat)")
        terminal.read_until(PROMPT)


@pytest.mark.nightly  # test_ctrl_c_stops_the_answer_and_not_the_program quits with one
def test_slash_commands_are_not_sent_to_the_model() -> None:
    with Terminal(*SHORT) as terminal:
        terminal.read_until(PROMPT)
        for command, answer in (("/help", "/clear"), ("/clear", "Forgotten"), ("/dance", "/dance is unknown")):
            terminal.type(command + ENTER)
            terminal.read_until(answer)
            assert "tok/s" not in terminal.read_until(PROMPT)


def test_a_worker_that_dies_ends_the_conversation_with_its_last_words() -> None:
    dying = "sh -c 'read hello; echo \"no memory left\" >&2; exit 70'"
    with Terminal("chat", "mock", "--worker", dying) as terminal:
        terminal.read_until("exited with code 70")
        terminal.read_until("no memory left")
        assert terminal.wait() == 1


PASTED = "\x1b[200~first line\nsecond line\x1b[201~"


def test_a_pasted_text_of_several_lines_is_one_prompt() -> None:
    with Terminal(*RECITING) as terminal:
        terminal.read_until(PROMPT)
        terminal.type(PASTED + ENTER)
        terminal.read_until("(user: first line")
        terminal.read_until("second line)")


def test_a_prompt_has_several_lines_after_alt_enter_a_backslash_or_quotes() -> None:
    with Terminal(*RECITING) as terminal:
        for keys in (f"one\x1b{ENTER}two{ENTER}", f"one\\{ENTER}two{ENTER}", f'"""one{ENTER}two"""{ENTER}'):
            terminal.read_until(PROMPT)
            terminal.type(keys)
            terminal.read_until("user: one")
            terminal.read_until("two)")
            terminal.read_until("tok")
            terminal.type(f"/clear{ENTER}")
            terminal.read_until("Forgotten.")


def test_the_last_conversation_can_be_resumed(tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path)}
    with Terminal(*RECITING, **state) as terminal:
        terminal.read_until(PROMPT)
        terminal.type(f"remember{ENTER}")
        terminal.read_until("(user: remember)")
        terminal.read_until("tok")
        terminal.read_until(PROMPT)
        terminal.type(CTRL_D)
        assert terminal.wait() == 0
    files = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.rglob("*") if file.is_file()}
    assert files == {"chat_history": 0o600, "last.json": 0o600}
    with Terminal(*RECITING, "--resume", "last", **state) as terminal:
        terminal.read_until(PROMPT)
        terminal.type(f"again{ENTER}")
        terminal.read_until("user: again)")
    assert "remember" in (tmp_path / "lmwire" / "chat_history").read_text()


def test_a_dumb_terminal_gets_a_plain_line_to_type_on() -> None:
    with Terminal(*SHORT, TERM="dumb") as terminal:
        terminal.read_until("> ")
        terminal.type(f"first \\{ENTER}")
        terminal.read_until("… ")
        terminal.type(f"second{ENTER}")
        terminal.read_until("first \r\nsecond\r\n")
        terminal.read_until("> ")
        terminal.type(CTRL_D)
        assert terminal.wait() == 0
