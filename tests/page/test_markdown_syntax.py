"""Syntax that answers have beyond GitHub's markdown, as the page's lexer finds it: without a browser."""

import pytest

from support.page.modules import in_node

pytestmark = pytest.mark.slow

LEX = """
const { lex } = await load("markdown/lexer.js");
const show = (token) => {
    if (/^math/.test(token.type)) return `⟦${token.isDisplay ? "D " : ""}${token.text.trim()}⟧`;
    if (token.type === "em" || token.type === "strong") return `<${token.type}>${token.tokens.map(show).join("")}</>`;
    if (token.type === "footnoteReference") return `(${token.label})`;
    if (token.type === "footnote") return `(${token.label}: ${token.tokens.map(show).join("")})`;
    if (token.type === "openMath") return `OPEN ${token.raw}`;
    if (token.type === "table") return token.rows.flat().flatMap(({ tokens }) => tokens).map(show).join("|");
    return (token.items ?? token.tokens)?.map(show).join("") ?? token.raw;
};
return given.texts.map((text) => lex(text, Object.create(null), given.isGrowing).map(show).join(""));
"""
"""Returns each text with its formulas in brackets."""

FORMULAS = {
    "let $x_1 * y_2$ and $a*b$": "let ⟦x_1 * y_2⟧ and ⟦a*b⟧",
    r"\(a_1 + b_2\) and \[ x \] here": "⟦a_1 + b_2⟧ and ⟦D x⟧ here",
    "$$x^2$$ in a line": "⟦D x^2⟧ in a line",
    "the $n$th and $k$-means": "the ⟦n⟧th and ⟦k⟧-means",
    r"$\$5 + x$": r"⟦\$5 + x⟧",
    "*a $x * y$ b* and _c_ $x_1$ _d_": "<em>a ⟦x * y⟧ b</> and <em>c</> ⟦x_1⟧ <em>d</>",
    "# The $x$ of it": "The ⟦x⟧ of it",
    "| a | b |\n|--|--|\n| $x$ | \\(y\\) |": "⟦x⟧|⟦y⟧",
    "text\n$$\nf\n+ b\n- c\n$$\nmore": "text⟦D f\n+ b\n- c⟧more",
    "\\[\nx \\\\\ny\n\\]\nend": "⟦D x \\\\\ny⟧end",
    "1. a:\n   $$\n   x\n   + y\n   $$\n2. b": "a:⟦D x\n+ y⟧b",
}
TEXTS = [
    "it is $5 and $10",
    "$5 a month, or 50$",
    "US$5-US$10, ~$5k-$7k, $1,000/$2,000",
    "$HOME/$USER and $AAPL,$MSFT",
    r"\$x\$ and \\(x\\)",
    "`$x$` and `\\(y\\)`",
    "```\n$$\nx\n$$\n```",
    "an open $x",
    "$a\n\nb$",
    "$$\na\n\nb\n$$",
    "$" + "x" * 4001 + "$",
]


def test_formulas_are_taken_out_before_the_escapes_of_markdown() -> None:
    found = in_node(LEX, {"texts": [*FORMULAS], "isGrowing": False})
    assert dict(zip(FORMULAS, found, strict=True)) == FORMULAS


def test_prices_variables_and_code_are_no_formulas() -> None:
    found = in_node(LEX, {"texts": TEXTS, "isGrowing": False})
    assert [text for text in found if "⟦" in text] == []


def test_prices_in_bold_keep_their_emphasis() -> None:
    [found] = in_node(LEX, {"texts": ["**$5** and **$x*y$** or **$10**"], "isGrowing": False})
    assert found == "<strong>$5</> and <strong>⟦x*y⟧</> or <strong>$10</>"


def test_a_formula_that_is_not_closed_yet_keeps_its_lines_together_while_the_text_grows() -> None:
    text = "text\n$$\nf\n+ b\n"
    assert in_node(LEX, {"texts": [text], "isGrowing": True}) == ["textOPEN $$\nf\n+ b\n"]
    assert in_node(LEX, {"texts": [text], "isGrowing": False}) == ["text\n$$\nfb"]


def test_footnotes_are_found_with_the_lines_that_belong_to_them() -> None:
    texts = ["a[^1] and `[^1]`\n\n[^1]: one $x$\n  more\n[^n]: https://example.org\n\nend", "\\[^1]", "[^a b] [^]"]
    found = in_node(LEX, {"texts": texts, "isGrowing": False})
    assert found == ["a(1) and `[^1]`\n\n(1: one ⟦x⟧\nmore)(n: https://example.org)end", "\\[^1]", "[^a b] [^]"]
