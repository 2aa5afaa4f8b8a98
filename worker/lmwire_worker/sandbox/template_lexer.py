"""The tokens of a chat template: those of Jinja's own lexer with the settings of `jinja.py`, in half the time.

Jinja tries one expression after another at each place, and passes each token through two generators. Here one
expression finds the next token. A template is compiled at each load, and a quarter of that time was the lexer's.
"""

import re
from collections.abc import Generator, Iterator
from functools import partial
from typing import Final

from jinja2.exceptions import TemplateSyntaxError
from jinja2.lexer import Token, float_re, integer_re, newline_re, operator_re, operators, string_re, whitespace_re

_TAG: Final = re.compile(r"(?P<raw>\{%(?P<raw_sign>[-+]?)\s*raw\s*(?:-%\}\s*|%\}))|\{(?P<kind>[%{#])(?P<sign>[-+]?)")
_COMMENT_END: Final = re.compile(r"\+#\}|-#\}\s*|#\}\n?")
_RAW_END: Final = re.compile(r"\{%(?P<sign>[-+]?)\s*endraw\s*(?:\+%\}|-%\}\s*|%\}\n?)")
_NAME: Final = r"(?P<name>(?![0-9])\w+)\s*|"
_REST: Final = (
    rf"(?:(?P<string>{string_re.pattern})|(?P<operator>{operator_re.pattern})"
    rf"|(?P<float>(?xi:{float_re.pattern}))|(?P<integer>(?xi:{integer_re.pattern})))\s*"
)
_BALANCED: Final = {
    "block": re.compile(rf"{_NAME}(?P<end>\+%\}}|-%\}}\s*|%\}}\n?)|{_REST}", re.DOTALL),
    "variable": re.compile(rf"{_NAME}(?P<end>-\}}\}}\s*|\}}\}})|{_REST}", re.DOTALL),
}
"""The next token in a tag, with the white space after it."""
_INSIDE: Final = re.compile(f"{_NAME}{_REST}", re.DOTALL)
"""The next token between brackets, where a tag cannot end."""
_CLOSING: Final = {"{": "}", "(": ")", "[": "]"}
_token: Final = partial(tuple.__new__, Token)
"""Makes a token, without the function of a named tuple."""


def read_tokens(source: str) -> Iterator[Token]:
    """Yield the tokens of a template that Jinja's parser reads.

    Args:
        source: The template.

    Raises:
        TemplateSyntaxError: Some text is not a token of Jinja.
    """
    source = "\n".join(newline_re.split(source)[::2])
    source = source.removesuffix("\n")
    position, line = 0, 1
    at_line_start = True  # whether the last token ends with a line break
    while (tag := _TAG.search(source, position)) is not None:
        text = source[position : tag.start()]
        shown = _stripped(text, tag["sign"] or tag["raw_sign"], at_line_start, is_variable=tag["kind"] == "{")
        if shown:
            yield Token(line, "data", shown)
        line += text.count("\n")
        position = tag.end()
        if tag["kind"] == "#":
            if (end := _COMMENT_END.search(source, position)) is None:
                if position < len(source):
                    raise TemplateSyntaxError("Missing end of comment tag", line)
                return
            line += source.count("\n", position, end.end())
            position = end.end()
        elif tag["kind"] is None:
            line += tag[0].count("\n")
            if (end := _RAW_END.search(source, position)) is None:
                if position < len(source):
                    raise TemplateSyntaxError("Missing end of raw directive", line)
                return
            text = source[position : end.start()]
            if shown := _stripped(text, end["sign"], tag[0].endswith("\n"), is_variable=False):
                yield Token(line, "data", shown)
            line += source.count("\n", position, end.end())
            position = end.end()
        else:
            kind = "variable" if tag["kind"] == "{" else "block"
            yield Token(line, f"{kind}_begin", tag[0])
            position, line = yield from _read_tag(source, position, line, kind)
        at_line_start = source[position - 1] == "\n"
    if position < len(source):
        yield Token(line, "data", source[position:])


def _stripped(text: str, sign: str, at_line_start: bool, *, is_variable: bool) -> str:
    """Return text before a tag without the white space that the tag takes away."""
    if sign == "-":
        return text.rstrip()
    if sign != "+" and not is_variable:
        start = text.rfind("\n") + 1
        if (start or at_line_start) and whitespace_re.fullmatch(text, start):
            return text[:start]
    return text


def _read_tag(source: str, position: int, line: int, kind: str) -> Generator[Token, None, tuple[int, int]]:
    """Yield the tokens of a tag after its beginning, and return the position and the line after it."""
    balanced = _BALANCED[kind]
    expected: list[str] = []
    if (space := whitespace_re.match(source, position)) is not None:
        position = space.end()
        line += space[0].count("\n")
    while (match := (_INSIDE if expected else balanced).match(source, position)) is not None:
        what = match.lastgroup or ""
        text = match[what]
        position = match.end()
        if what == "name":
            if not text.isidentifier():
                raise TemplateSyntaxError("Invalid character in identifier", line)
            yield _token((line, "name", text))
        elif what == "operator":
            if text in _CLOSING:
                expected.append(_CLOSING[text])
            elif text in ")]}":
                _check_closing(text, expected, line)
            yield _token((line, operators[text], text))
        elif what == "string":
            yield _token((line, "string", _unescaped(text, line)))
        elif what == "end":
            yield _token((line, f"{kind}_end", text))
            return position, line + text.count("\n")
        elif what == "float":
            yield _token((line, "float", float(text.replace("_", ""))))
        else:
            yield _token((line, "integer", int(text.replace("_", ""), 0)))
        line += match[0].count("\n")
    if position < len(source):
        raise TemplateSyntaxError(f"unexpected char {source[position]!r} at {position}", line)
    return position, line


def _check_closing(bracket: str, expected: list[str], line: int) -> None:
    """Remove a closing bracket from those that are expected."""
    if not expected:
        raise TemplateSyntaxError(f"unexpected '{bracket}'", line)
    if (wanted := expected.pop()) != bracket:
        raise TemplateSyntaxError(f"unexpected '{bracket}', expected '{wanted}'", line)


def _unescaped(literal: str, line: int) -> str:
    """Return the text that a literal stands for."""
    if "\\" not in literal:
        return literal[1:-1]
    try:
        return literal[1:-1].encode("ascii", "backslashreplace").decode("unicode-escape")
    except UnicodeDecodeError as error:
        raise TemplateSyntaxError(str(error).split(":")[-1].strip(), line) from error
