"""The slash commands of a conversation, its files, and what counts as one prompt."""

import json
from pathlib import Path
from typing import Any

import pytest

import lmwire
from lmwire.cli.chat.commands import COMMANDS, ends_chat, is_command, run_command
from lmwire.cli.chat.reader import is_unfinished, joined
from lmwire.cli.chat.saved_chats import InvalidChat, SavedChat, load_chat, save_chat, saved_names

pytestmark = pytest.mark.slow

TOOLS = [{"type": "function", "function": {"name": "look"}}]


class RecordingChat:
    """A conversation without a worker."""

    def __init__(self) -> None:
        self.model = "first"
        self.fields: dict[str, Any] = {}
        self.messages: list[lmwire.MessageDict] = [{"role": "user", "content": "Hi"}]
        self.attached: list[Any] = []
        self.system: str | None = None

    def switch_model(self, name: str) -> None:
        self.model = name

    def attach(self, part: Any) -> None:
        self.attached.append(part)

    def set_system(self, text: str) -> None:
        self.system = text

    def clear(self) -> None:
        self.messages = []


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordingChat:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return RecordingChat()


def test_settings_reach_the_next_requests(chat: RecordingChat) -> None:
    assert run_command(chat, "/set temperature 0.7") == "temperature is 0.7."
    assert run_command(chat, "/set max-tokens 9") == "max_tokens is 9."
    assert chat.fields == {"temperature": 0.7, "max_tokens": 9}
    assert run_command(chat, "/set") == "max_tokens = 9\ntemperature = 0.7"
    assert run_command(chat, "/set temperature default") == "temperature is the default."
    assert chat.fields == {"max_tokens": 9}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/set heat 1", "heat is not a setting; the settings are max_tokens, "),
        ("/set top_k many", "top_k needs a whole number, or default, not 'many'"),
        ("/dance", "/dance is unknown"),
        ("/image", "Which? /image FILE"),
        ("/sound /none.wav", "/none.wav: No such file"),
        ("/tools /none.json", "/none.json: No such file"),
        ("/load nothing", "the conversation nothing is not saved; these are: none"),
        ("/save", "Under which name?"),
        ("/save ..", "'..' is not a name"),
    ],
)
def test_what_cannot_be_done_is_a_note(chat: RecordingChat, line: str, problem: str) -> None:
    assert problem in run_command(chat, line)
    assert chat.fields == {}


def test_a_conversation_is_saved_and_loaded_by_name_and_by_path(chat: RecordingChat, tmp_path: Path) -> None:
    for name in ("plans", str(tmp_path / "elsewhere.json")):
        assert "Saved in " in run_command(chat, f"/save {name}")
        other = RecordingChat()
        run_command(other, "/clear")
        assert run_command(other, f"/load {name}") == "Loaded 1 messages."
        assert other.messages == chat.messages
    assert saved_names() == ["plans"]
    (file,) = (tmp_path / "state").rglob("*.json")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("content", ["{", "[]", '{"model": 1, "messages": []}', '{"model": "m", "messages": ["Hi"]}'])
def test_a_file_that_is_not_a_conversation_is_refused(chat: RecordingChat, tmp_path: Path, content: str) -> None:
    (tmp_path / "odd.json").write_text(content)
    with pytest.raises(InvalidChat, match="is not a saved conversation"):
        load_chat(str(tmp_path / "odd.json"))


def test_a_save_does_not_write_through_a_link(chat: RecordingChat, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "linked.json").symlink_to(tmp_path / "mine")
    save_chat(str(tmp_path / "linked.json"), SavedChat(model="m", messages=[]))
    assert (tmp_path / "mine").read_text() == "mine"


def test_tools_come_from_a_file_and_go(chat: RecordingChat, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    assert "The tools are: look." in run_command(chat, f"/tools {tmp_path / 'tools.json'}")
    assert chat.fields == {"tools": TOOLS}
    assert "The tools are: look." in run_command(chat, "/tools")
    run_command(chat, "/tools off")
    assert chat.fields == {}
    (tmp_path / "tools.json").write_text('{"name": "look"}')
    assert "is not a JSON list" in run_command(chat, f"/tools {tmp_path / 'tools.json'}")


def test_model_without_a_name_lists_the_models_that_can_run_here(
    chat: RecordingChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    def model(name: str, problem: str | None) -> lmwire.LocalModel:
        return lmwire.LocalModel(
            id=name,
            path="",
            aliases=[],
            size_bytes=0,
            model_type=None,
            bits=None,
            context_len=None,
            problem=problem,
        )

    def fail() -> list[lmwire.LocalModel]:
        raise lmwire.LmwireError("the worker is not installed here")

    monkeypatch.setattr(lmwire, "local_models", lambda: [model("one/good", None), model("two/broken", "no weights")])
    note = "The model is first. /model NAME loads another one."
    assert run_command(chat, "/model") == f"{note} On this machine: one/good."
    monkeypatch.setattr(lmwire, "local_models", fail)
    assert run_command(chat, "/model") == note


def test_media_model_and_system_message_change_the_conversation(chat: RecordingChat, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"image")
    (tmp_path / "a.wav").write_bytes(b"sound")
    for line in (f"/image {tmp_path / 'a.png'}", f"/sound {tmp_path / 'a.wav'}"):
        assert run_command(chat, line) == "It will be sent with your next prompt."
    assert [part["type"] for part in chat.attached] == ["image", "audio"]
    assert run_command(chat, "/model second") == "second is ready. It has the conversation so far."
    run_command(chat, "/system Be brief.")
    assert (chat.model, chat.system, len(chat.messages)) == ("second", "Be brief.", 1)


def test_the_words_of_other_programs_end_the_chat() -> None:
    assert [line for line in ("/quit", "/exit", " /bye ", "/quit now", "bye") if ends_chat(line)] == [
        "/quit",
        "/exit",
        " /bye ",
    ]


def test_the_help_lists_every_command(chat: RecordingChat) -> None:
    shown = run_command(chat, "/help")
    assert run_command(chat, "/?") == shown
    assert [name for name in COMMANDS if f"/{name}" not in shown] == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/help", True),
        ("/?", True),
        (" /set a b", True),
        ("/etc/hosts is what?", False),
        ("/", False),
        ("/a\n/b", False),
    ],
)
def test_a_path_and_a_pasted_text_are_prompts(line: str, expected: bool) -> None:
    assert is_command(line) == expected


@pytest.mark.parametrize(
    ("text", "unfinished", "sent"),
    [
        ("one", False, "one"),
        ("one\\", True, "one\\"),
        ("one\\\ntwo", False, "one\ntwo"),
        ('"""one', True, '"""one'),
        ('"""\none\n\ntwo\n"""', False, "one\n\ntwo"),
        ('say """a""" twice', False, 'say """a""" twice'),
    ],
)
def test_a_prompt_ends_where_nothing_is_open(text: str, unfinished: bool, sent: str) -> None:
    assert (is_unfinished(text), joined(text)) == (unfinished, sent)
