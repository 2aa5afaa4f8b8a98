"""Find habits of prose that make sentences hard to read: `python tools/prose_habits.py PATH…`.

Looks at docstrings and comments of Python files, and at the text of Markdown files outside code. Prints each place with
the advice that fits, and exits with 1 if there is any. CONTRIBUTING.md explains the rules.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple


class Habit(NamedTuple):
    """A wording to avoid."""

    pattern: re.Pattern[str]
    advice: str


def _habit(pattern: str, advice: str) -> Habit:
    return Habit(re.compile(pattern, re.IGNORECASE), advice)


OPENING: Final = Habit(
    re.compile(r"(What|Whether|Of|Those|How|Where|That|Which|Who|The ones?|From where)\b"),
    "open a docstring with a verb (`Return whether …`) or with the thing's own noun",
)
# Words such as "checks", "names" or "tests" are missing, since a noun may also open a docstring.
THIRD_PERSON: Final = Habit(
    re.compile(
        r"(Adapts|Adds|Allows|Applies|Asks|Brings|Builds|Chooses|Closes|Collects|Compares|Compiles|Computes|Converts"
        r"|Creates|Decides|Decodes|Describes|Detects|Does|Encodes|Estimates|Fails|Fetches|Finds|Gets|Gives|Handles|Has"
        r"|Hashes|Holds|Keeps|Kills|Leaves|Lets|Lists|Loads|Looks|Makes|Manages|Maps|Matches|Measures|Opens|Packs"
        r"|Parses|Plays|Predicts|Prepares|Prints|Probes|Provides|Puts|Quantizes|Raises|Reads|Receives|Renders|Replaces"
        r"|Resolves|Returns|Rewrites|Runs|Says|Scores|Sends|Serves|Sets|Shows|Splits|Starts|Stops|Stores|Takes|Tells"
        r"|Tokenizes|Trains|Turns (a|an|one|the|into|text|tokens)|Uses|Waits|Writes|Yields)\b"
    ),
    "open the docstring of a module or function with an imperative verb (`Return …`)",
)
HABITS: Final = (
    _habit(r"(?<!there )\b(is|are|was|were) no (?!longer\b|more\b)\w+", 'write "is not a …"'),
    _habit(r"(?<!such )(?<!sent )\bas `\w+`(?=\)|, for| for example)", 'write "such as `…`"'),
    _habit(r"\bso (many|long|often|much|few)\b(?! (as|that)\b)", "name the number or the time"),
    _habit(r"\bnone (for|where) (nothing|there)\b", "say what None means"),
    _habit(r"\byet to be\b", 'write "not … yet"'),
    _habit(r"\b(is|are) to (?!be\b)\w+", 'write "must" or the present tense'),
    _habit(r"\bthat there (is|are)\b", "name the thing directly"),
    _habit(r"\bbehind\b(?! (a|an|the) (flag|option|proxy|reverse|server))", 'write "after"'),
    _habit(r"\b(is|are|was|were|be|been) told\b|\btells? (it|him|the host|a host) ", 'write "reports" or "receives"'),
    _habit(r"\bwhat (there is|is left)\b", "name the thing directly"),
)


DESCRIBED: Final = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)
"""Nodes whose docstrings open with an imperative verb."""
BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
"""Fields of nodes that have statements in them."""


class Place(NamedTuple):
    """A line of prose."""

    line: int
    text: str
    opens_docstring: bool = False
    of_module_or_function: bool = False


def prose_of_python(source: str) -> Iterator[Place]:
    """Yield the lines of a Python file's docstrings, and of its comments if one may have a habit."""
    tree = ast.parse(source)
    described = {id(node.body[0]) for node in _statements(tree) if isinstance(node, DESCRIBED) and node.body}
    for node in _statements(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                for offset, line in enumerate(text.splitlines()):
                    opens = offset == 0
                    yield Place(node.lineno + offset, line, opens, opens and id(node) in described)
    # Only the tokenizer knows which # begins a comment, but it takes longer than all else.
    maybe = [line[line.index("#") :] for line in source.splitlines() if "#" in line]
    if any(habit.pattern.search(line) for line in maybe for habit in HABITS):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield Place(token.start[0], token.string)


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the module and the statements in it. Expressions are far more, and have no docstrings."""
    found: list[ast.AST] = [tree]
    while found:
        node = found.pop()
        if not isinstance(node, ast.expr):
            yield node
            found += (child for name in BLOCKS for child in getattr(node, name, ()))


def prose_of_markdown(source: str) -> Iterator[Place]:
    """Yield the lines of a Markdown file that are not in a code block. Code within a line counts as one word."""
    in_code = False
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield Place(number, re.sub(r"`[^`]*`", "`code`", line))


def advice_on(place: Place) -> str | None:
    """Return the advice for a line of prose, or None if it has no such habit."""
    if place.opens_docstring and OPENING.pattern.match(place.text.strip()):
        return OPENING.advice
    if place.of_module_or_function and THIRD_PERSON.pattern.match(place.text.strip()):
        return THIRD_PERSON.advice
    return next((habit.advice for habit in HABITS if habit.pattern.search(place.text)), None)


def files_in(paths: list[str]) -> Iterator[Path]:
    """Yield the Python and Markdown files among paths and below them, without those of installed packages."""
    for path in map(Path, paths):
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        sources = (file for file in found if file.suffix in (".py", ".md"))
        yield from (file for file in sources if not {"node_modules", "target"} & set(file.parts))


def main(paths: list[str]) -> int:
    """Print each habit that is found, and return how many there are."""
    count = 0
    for file in files_in(paths):
        source = file.read_text(encoding="utf-8")
        for place in prose_of_python(source) if file.suffix == ".py" else prose_of_markdown(source):
            if advice := advice_on(place):
                count += 1
                print(f"{file}:{place.line}: {advice}: {place.text.strip()[:80]}")
    return count


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
