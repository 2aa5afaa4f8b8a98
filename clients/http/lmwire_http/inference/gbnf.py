"""Translate llama.cpp's grammars (GBNF) to the Lark variant that workers take.

A grammar has rules such as `root ::= "a" [0-9]+ | word`, and its text is that of `root`. Both notations have the same
parts: literals, classes of characters, groups, choices and repetitions. So each token is translated by itself, and only
brackets and names are checked here. The worker checks the rest.
"""

import json
import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""
    (?P<space>[ \t\r\n]+|\#[^\n]*)
    | (?P<rule>[A-Za-z0-9_-]+)[ \t]*::=
    | (?P<name>[A-Za-z0-9_-]+)
    | "(?P<text>(?:[^"\\\n]|\\.)*)"
    | (?P<characters>\[(?:[^\]\\\n]|\\.)+\])
    | (?P<repeat>[*+?]|\{[0-9]+(?:,[0-9]*)?\})
    | (?P<mark>[|().])
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_NAMED_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}
_SPECIAL_IN_CLASS: Final = frozenset("[]\\^-&~/")
"""Characters with a meaning in a class of the worker's regular expressions."""


def lark_grammar(gbnf: str) -> str:
    """Return the same grammar in Lark's notation.

    Args:
        gbnf: The grammar in llama.cpp's notation.

    Raises:
        ValueError: The grammar is not one. The message has the place.
    """
    rules: dict[str, list[str]] = {}
    used: dict[str, int] = {}
    body: list[str] | None = None
    depth, at = 0, 0
    while at < len(gbnf):
        found = _TOKEN.match(gbnf, at)
        if found is None:
            raise ValueError(f"character {at}: {gbnf[at : at + 20]!r} is not a part of a grammar")
        kind, value = found.lastgroup or "", found[found.lastgroup or 0]
        if kind == "rule":
            _check_closed(depth, at)
            body = rules.setdefault(value, [])
            if body:
                raise ValueError(f"character {at}: there are two rules {value!r}")
        elif kind != "space":
            if body is None:
                raise ValueError(f"character {at}: a rule must come first, such as root ::= ...")
            depth += {"(": 1, ")": -1}.get(value, 0) if kind == "mark" else 0
            if depth < 0:
                raise ValueError(f"character {at}: this bracket closes none")
            if kind == "name":
                used.setdefault(value, at)
            body.append(_translated(kind, value))
        at = found.end()
    _check_closed(depth, at)
    if "root" not in rules:
        raise ValueError("it has no rule `root`, which is where a text begins")
    for name, place in used.items():
        if name not in rules:
            raise ValueError(f"character {place}: the rule {name!r} is missing")
    lines = [f"{_rule_name(name)}: {' '.join(parts)}" for name, parts in rules.items()]
    return "\n".join([f"start: {_rule_name('root')}", *lines])


def _check_closed(depth: int, at: int) -> None:
    if depth:
        raise ValueError(f"character {at}: a bracket is still open")


def _translated(kind: str, value: str) -> str:
    """Return a token in Lark's notation."""
    match kind:
        case "name":
            return _rule_name(value)
        case "text":
            return json.dumps(_ESCAPE.sub(_unescaped, value), ensure_ascii=False)
        case "characters":
            return _character_class(value[1:-1])
        case "mark" if value == ".":
            return r"/(.|\n)/"
        case _:
            return value


def _rule_name(name: str) -> str:
    """Return a name that Lark allows: small letters, digits and `_`. Other characters are written as numbers."""
    return "r_" + "".join(each if each.isdigit() or each.islower() else f"_{ord(each):x}_" for each in name)


def _character_class(inside: str) -> str:
    """Return the regular expression for a class of characters."""
    negated = inside.startswith("^")
    parts: list[str] = []
    at = int(negated)
    while at < len(inside):
        if (escape := _ESCAPE.match(inside, at)) is not None:
            parts.append(_class_character(_unescaped(escape)))
            at = escape.end()
        else:
            is_range = inside[at] == "-" and parts and at + 1 < len(inside)
            parts.append("-" if is_range else _class_character(inside[at]))
            at += 1
    return f"/[{'^' if negated else ''}{''.join(parts)}]/"


def _class_character(character: str) -> str:
    if character in _SPECIAL_IN_CLASS:
        return "\\" + character
    return character if character.isprintable() else f"\\u{{{ord(character):x}}}"


def _unescaped(escape: re.Match[str]) -> str:
    if digits := escape[1] or escape[2] or escape[3]:
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise ValueError(f"{escape[0]} is not a character")
        return chr(code)
    return _NAMED_ESCAPES.get(escape[4], escape[4])
