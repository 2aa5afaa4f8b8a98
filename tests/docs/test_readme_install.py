"""README's first block names what installs lmwire from a checkout: make, or pip alone."""

import re
import tomllib

from support.markdown import first_block
from support.process.lmwire_command import REPOSITORY

README = REPOSITORY / "README.md"


def commands(start: str) -> list[str]:
    """Return the lines of the first block that start so, without their comments."""
    lines = first_block("sh", README).splitlines()
    return [line.partition("  #")[0].strip() for line in lines if line.startswith(start)]


def test_the_block_has_a_line_of_pip_beside_those_of_make() -> None:
    assert commands("make ") == ["make chat", "make test"]
    assert commands("pip ") == ["pip install '.[cpu,chat,http]'"]
    assert commands("lmwire ") == ["lmwire chat -p hi"]


def test_every_extra_that_the_block_names_exists_and_a_mac_needs_no_backend() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"'\.\[(.+?)\]'", first_block("sh", README))
    assert {extra for extras in named for extra in extras.split(",")} <= set(project["optional-dependencies"])
    *others, mac = [set(extras.split(",")) for extras in named]
    on_mac = {re.split(r"[<>=]", line)[0] for line in project["dependencies"] if "darwin" in line}
    without = set.intersection(*others) - mac
    needed = {re.split(r"[<>=]", line)[0] for extra in without for line in project["optional-dependencies"][extra]}
    assert without == {"chat"} and needed <= on_mac and {"mlx", "mlx-lm"} <= on_mac
