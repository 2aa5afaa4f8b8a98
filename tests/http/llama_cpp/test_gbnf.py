"""llama.cpp's grammars: their translation, and answers that follow them."""

from typing import Any

import pytest
from llguidance import LLMatcher

from lmwire_http.inference.gbnf import lark_grammar
from support.http.http_server import Server
from support.http.raw_http import CHAT, asked

COMPLETIONS = "/v1/completions"
JSON = r"""
root   ::= value
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (
    string ":" ws value   # the first member
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= "-"? ([0-9] | [1-9] [0-9]{0,15}) ("." [0-9]+)?
ws ::= | " " | "\n" [ \t]{0,20}
"""


def ask(server: Server, path: str, **fields: Any) -> Any:
    prompt: Any = {"messages": [{"role": "user", "content": "Who?"}]} if path == CHAT else {"prompt": "Who?"}
    return asked(server.url, "POST", path, {"model": "builtin:tiny", "max_tokens": 40, **prompt, **fields})


def text(answer: Any) -> str:
    choice = answer.json["choices"][0]
    return choice["message"]["content"] if "message" in choice else choice["text"]


@pytest.mark.parametrize(
    ("gbnf", "lark"),
    [
        ('root ::= "a"{5,5}', 'start: r_root\nr_root: "a" {5,5}'),
        ("root ::= Big-name\nBig-name ::= .", "start: r_root\nr_root: r__42_ig_2d_name\nr__42_ig_2d_name: /(.|\\n)/"),
        (r'root ::= "\x41\u00e9\n\"" [-a\]^/]+', 'start: r_root\nr_root: "Aé\\n\\"" /[\\-a\\]\\^\\/]/ +'),
        (r"root ::= [^\t-\x20]", r"start: r_root" + "\n" + r"r_root: /[^\u{9}- ]/"),
    ],
)
def test_a_grammar_has_the_same_parts_in_the_workers_notation(gbnf: str, lark: str) -> None:
    assert lark_grammar(gbnf) == lark


def test_a_grammar_of_many_forms_compiles() -> None:
    assert not LLMatcher.validate_grammar(LLMatcher.grammar_from_lark(lark_grammar(JSON)))


@pytest.mark.parametrize(
    ("gbnf", "problem"),
    [
        ("root ::= this is (not valid", "still open"),
        ('root ::= "a")', "closes none"),
        ('root ::= "a', "character 9"),
        ('"a"', "a rule must come first"),
        ('word ::= "a"', "no rule `root`"),
        ("root ::= word", "the rule 'word' is missing"),
        ('root ::= "a"\nroot ::= "b"', "two rules"),
        (r'root ::= "\ud800"', "not a character"),
        ('root ::= ("a"\nother ::= "b")', "still open"),
    ],
)
def test_what_is_no_grammar_is_refused_with_the_place(scripted_server: Server, gbnf: str, problem: str) -> None:
    answer = ask(scripted_server, CHAT, grammar=gbnf)
    assert (answer.status, answer.json["error"]["param"]) == (400, "grammar")
    assert problem in answer.json["error"]["message"]


def test_a_grammar_and_another_format_contradict_each_other(scripted_server: Server) -> None:
    answer = ask(scripted_server, CHAT, grammar='root ::= "a"', response_format={"type": "json_object"})
    assert (answer.status, answer.json["error"]["param"]) == (400, "grammar")
    assert ask(scripted_server, CHAT, model="mock", grammar="", response_format=None).status == 200


@pytest.mark.slow
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_an_answer_follows_the_grammar(tiny_server: Server, path: str) -> None:
    assert text(ask(tiny_server, path, grammar='root ::= "a"{5,5}')) == "aaaaa"
    assert text(ask(tiny_server, path, grammar='root ::= ("yes" | "no") "."')) in ("yes.", "no.")


@pytest.mark.slow
def test_a_grammar_that_cannot_be_enforced_is_named_as_the_client_wrote_it(tiny_server: Server) -> None:
    answer = ask(tiny_server, CHAT, grammar="root ::= [b-a]")
    assert (answer.status, answer.json["error"]["param"]) == (400, "grammar")
