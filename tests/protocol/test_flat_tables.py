"""The flat tables of protocol/schema are rows that C includes and that other languages read with one pattern."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from support.process.lmwire_command import REPOSITORY
from support.process.programs import program

SCHEMA = REPOSITORY / "protocol/schema/v1"
ROW = re.compile(r"(LIMIT|DONE|MEMBER|FEATURE)\((.*)\)")
PROGRAM = """
#include <stdio.h>

#define LIMIT(name, value) {name, value},
static const struct { const char *name; long value; } LIMITS[] = {
#include "limits.inc"
};

#define DONE(command, form)
#define MEMBER(form, path, types, required) {form, path, types, required},
static const struct { const char *form, *path, *types; int required; } MEMBERS[] = {
#include "events.inc"
};

#define FEATURE(command, path, part, when, features) {command, path, part, when, features},
static const struct { const char *command, *path, *part, *when, *features; } FEATURES[] = {
#include "features.inc"
};

int main(void) {
    printf("%s %ld %zu", LIMITS[0].name, LIMITS[0].value, sizeof LIMITS / sizeof *LIMITS);
    printf(" %s %zu", MEMBERS[0].path, sizeof MEMBERS / sizeof *MEMBERS);
    printf(" %s %zu", FEATURES[0].features, sizeof FEATURES / sizeof *FEATURES);
    return 0;
}
"""


def rows(name: str) -> list[list[str | int]]:
    """Return the rows of a file as a program in another language reads them: each row's cells are a JSON list."""
    lines = (SCHEMA / f"{name}.inc").read_text(encoding="utf-8").partition("*/\n")[2].splitlines()
    found = [ROW.fullmatch(line) for line in lines if not line.startswith(("/*", "   "))]
    return [[match[1], *json.loads(f"[{match[2]}]")] for match in found if match]


def test_each_line_but_the_comment_is_a_row() -> None:
    meta = json.loads((SCHEMA / "meta.json").read_text(encoding="utf-8"))
    limits = {name: limit["value"] for name, limit in meta["limits"].items()}
    budgets = limits.pop("effort_budgets")
    limits |= {f"effort_budgets.{effort}": budget for effort, budget in budgets.items()}
    assert rows("limits") == [["LIMIT", name, value] for name, value in limits.items()]
    assert ["DONE", "chat", "ResultDone"] in rows("events")
    assert ["MEMBER", "token", "token_ids", "l", 1] in rows("events")
    assert ["FEATURE", "chat", "messages[].role", "tool", "", "chat.messages.role.tool"] in rows("features")
    absent = "chat.messages.tool_call_id.absent"
    assert ["FEATURE", "chat", "messages[].tool_call_id", "=absent", "role=tool", absent] in rows("features")


@pytest.mark.slow
def test_a_program_in_c_includes_them(tmp_path: Path) -> None:
    (tmp_path / "tables.c").write_text(PROGRAM)
    built = tmp_path / "tables"
    compiler = [program("cc"), "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{SCHEMA}"]
    subprocess.run([*compiler, tmp_path / "tables.c", "-o", built], check=True)
    limits, features = rows("limits"), rows("features")
    members = [row for row in rows("events") if row[0] == "MEMBER"]
    expected = (
        f"{limits[0][1]} {limits[0][2]} {len(limits)} {members[0][2]} {len(members)} {features[0][5]} {len(features)}"
    )
    assert subprocess.check_output([built], text=True) == expected
