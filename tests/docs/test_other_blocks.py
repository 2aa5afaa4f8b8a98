"""The pages' blocks that are not commands: data is parsed, and each program is one that some test compiles."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from support.markdown import PAGES, Block, fenced_blocks, first_block
from support.process.lmwire_command import LMWIRE, REPOSITORY, lmwire
from support.process.programs import program
from support.process.worker_process import SECONDS
from support.shell_blocks import SHELLS

BLOCKS = [block for page in PAGES for block in fenced_blocks(page)]
PARSERS = {
    "json": lambda text: json.loads(text) if text.startswith("{\n") else [*map(json.loads, text.splitlines())],
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}
PROGRAMS = {
    ("clients/c/README.md", "c"): "tests/docs/test_first_programs.py",
    ("clients/go/README.md", "go"): "tests/docs/test_first_programs.py",
    ("clients/node/README.md", "js"): "tests/docs/test_first_programs.py",
    ("clients/node-ai-sdk/README.md", "js"): "tests/docs/test_first_programs.py",
    ("clients/rust/README.md", "rust,no_run"): "tests/docs/test_first_programs.py",
    ("docs/clients.md", "js"): "tests/real_clients/programs/ai_sdk.mjs",
    ("docs/embedding-tauri.md", "rust"): "examples/tauri/chat-service/src/lib.rs",
    ("docs/quick-start.md", "c"): "tests/docs/test_first_programs.py",
    ("docs/quick-start.md", "go"): "tests/docs/test_first_programs.py",
    ("docs/quick-start.md", "js"): "tests/docs/test_first_programs.py",
    ("docs/quick-start.md", "rust"): "tests/docs/test_first_programs.py",
    ("examples/neovim/README.md", "lua"): "tests/docs/test_other_blocks.py",
    ("examples/neovim/README.md", "vim"): "tests/docs/test_other_blocks.py",
}
"""The file that compiles or runs each program, or contains it."""
PYTHON = "python"  # tests/cli/test_readme.py runs these
NEOVIM_README = REPOSITORY / "examples" / "neovim" / "README.md"
STEPS = """
try
  source start.vim
  luafile check.lua
catch
  echo v:exception
  cquit
endtry
qall!
"""
CHECK = """
local function is_answered()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), " "):find("# Assistant +Who are you%? +# You")
end
assert(vim.wait(SECONDS * 1000, is_answered, 20), "the chat is not answered")
dofile("init.lua")
assert(vim.fn.maparg("<C-Space>", "i") ~= "", "the key is not mapped")
vim.api.nvim_eval_statusline(vim.o.statusline, {})
"""


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language in PARSERS], ids=lambda block: f"{block.page}:{block.line}"
)
def test_data_is_valid(block: Block) -> None:
    assert PARSERS[block.language](block.text)


@pytest.mark.slow
def test_the_config_file_sets_options_that_there_are(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(first_block("toml", REPOSITORY / "docs" / "configuration.md"))
    shown = lmwire("config", "show", "--json", LMWIRE_CONFIG=str(file))
    assert shown.returncode == 0, shown.stderr


def test_each_program_is_one_that_a_test_compiles() -> None:
    others = {*SHELLS, *PARSERS, PYTHON, "text", ""}
    shown = [(block.page, block.language) for block in BLOCKS if block.language not in others]
    assert sorted(shown) == sorted(PROGRAMS)
    assert [file for file in PROGRAMS.values() if not (REPOSITORY / file).is_file()] == []


def test_the_excerpt_of_the_tauri_app_is_its_code() -> None:
    shown = first_block("rust", REPOSITORY / "docs" / "embedding-tauri.md")
    assert shown in (REPOSITORY / PROGRAMS["docs/embedding-tauri.md", "rust"]).read_text(encoding="utf-8")


def test_the_options_of_the_ai_sdk_are_those_that_a_test_passes() -> None:
    shown = re.findall(r"(\w+): ", first_block("js", REPOSITORY / "docs" / "clients.md"))
    passed = re.findall(r"(\w+): ", (REPOSITORY / PROGRAMS["docs/clients.md", "js"]).read_text(encoding="utf-8"))
    assert shown and set(shown) <= set(passed)


@pytest.mark.slow
def test_the_commands_for_neovim_open_a_chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lmwire").symlink_to(REPOSITORY)
    (tmp_path / "start.vim").write_text(first_block("vim", NEOVIM_README))
    (tmp_path / "steps.vim").write_text(STEPS)
    (tmp_path / "init.lua").write_text(first_block("lua", NEOVIM_README))
    (tmp_path / "check.lua").write_text(CHECK.replace("SECONDS", str(SECONDS)))
    (tmp_path / "scenario.json").write_text('{"rules": [{"match": {"cmd": "load"}, "reply": {}}]}')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LMWIRE_WORKER", json.dumps([LMWIRE, "mock", "--scenario", str(tmp_path / "scenario.json")]))
    done = subprocess.run(
        [program("nvim"), "--headless", "-u", "NONE", "-i", "NONE", "-n", "-S", "steps.vim"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
