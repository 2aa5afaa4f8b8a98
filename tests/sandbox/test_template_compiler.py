"""Templates compile to the code that Jinja itself makes, but for values that are undefined, from the same tokens."""

import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import jinja2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2.compiler import CodeGenerator
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from lmwire_worker.sandbox import jinja
from lmwire_worker.sandbox.template_compiler import compile_template, generate_code
from lmwire_worker.sandbox.template_lexer import read_tokens
from support.models import chat_templates
from support.models.family_turns import TURNS

PLAIN = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
PLAIN.filters["tojson"] = str
SOURCES = [value for value in vars(chat_templates).values() if isinstance(value, str) and "{%" in value]

SIGNS = ["{%", "%}", "-%}", "+%}", "{{", "}}", "{#", "#}", "{% raw %}", "{%- raw -%}", "{% endraw -%}", "{% endraw %}"]
WORDS = ["a", "not in", "'a\\n'", "\\x4", "1", "1.5", "1e3", "0x1f", "1_0", "é", "==", "**", "\r\n", "  \n "]
pieces = st.lists(st.sampled_from([*"{}()[]%#+-'\"\\=.|~$ \n", *SIGNS, *WORDS])).map("".join)


def tokens_of(tokens: Any) -> list[Any]:
    """Return tokens, and the error that ends them."""
    found: list[Any] = []
    try:
        found.extend(map(tuple, tokens))
    except jinja2.TemplateSyntaxError as error:
        found.append((error.message, error.lineno))
    return found


@given(pieces)
@example("{# never closed")
@example("{% raw %} never closed")
@example("  {%- if a %}\n  b  {{ 'it\\'s' }}  \n{%+ endif %}\n")
def test_the_tokens_are_those_of_jinjas_lexer(source: str) -> None:
    assert tokens_of(read_tokens(source)) == tokens_of(PLAIN.lexer.wrap(PLAIN.lexer.tokeniter(source, None)))


LOOKUP = re.compile(
    r"""    try:
        (?P<lookup>t_\d+ = environment\.(?P<kind>\w+)\['(?P<word>[\w.]+)'\])
    except KeyError:
        @internalcode
        (?P<header>def t_\d+\(\*unused\):)
            (?P<error>raise .*)
"""
)
"""Jinja's code that looks up a filter or a test, and makes a function to raise an error if there is none."""


UNDEFINED = re.compile(r"^( *)((?:l_\w+ = )+)(?:missing|u_\w+)$", re.MULTILINE)
"""An assignment to variables that become undefined."""


def without_undefined(code: str) -> str:
    """Return code without its relation to the template's lines, and without the values of undefined variables."""
    code = re.sub(
        r"debug_info = .*|\n *resolve = context.resolve$|\n(u_\w+, |\(\))+ = .*", "", code, flags=re.MULTILINE
    )
    code = re.sub(r"\(undefined\(name='\w+'\) if (\w+) is missing else \1\)", r"\1", code)
    return UNDEFINED.sub(
        lambda line: "\n".join(f"{line[1]}{each}undefined" for each in re.findall("l_.*? = ", line[2])), code
    )


def looked_up(code: re.Match[str]) -> str:
    """Return the part of the code of a lookup that would run."""
    is_known = code["word"] in getattr(PLAIN, code["kind"])
    return code.expand(r"    \g<lookup>\n" if is_known else r"    \g<header> \g<error>\n")


def own_code(source: str) -> Any:
    """Return the code of a template, or the error in it."""
    try:
        compile_template(jinja.environment_of_templates(), source)
        return without_undefined(generate_code(jinja.environment_of_templates(), source)[0])
    except (jinja2.TemplateSyntaxError, SyntaxError) as error:
        return type(error), getattr(error, "message", ""), error.lineno


def jinjas_environment() -> jinja2.Environment:
    """Return an environment of Jinja's own with the same tags, which limits products too."""
    environment = PLAIN.overlay(extensions=[*map(type, jinja.environment_of_templates().extensions.values())])
    environment.intercepted_binops = frozenset("*")
    return environment


def jinjas_code(source: str) -> Any:
    """Return the same from Jinja."""
    environment = jinjas_environment()
    stream = StringIO()
    generator = CodeGenerator(environment, None, "<template>", stream, optimized=False)
    try:
        generator.visit(environment.parse(source))
        compile(stream.getvalue(), "<template>", "exec")
    except (jinja2.TemplateSyntaxError, SyntaxError) as error:
        return type(error), getattr(error, "message", ""), error.lineno
    return without_undefined(LOOKUP.sub(looked_up, stream.getvalue()))


def text_or_error(render: Callable[[], str]) -> str:
    """Return a rendered text, or the message of an error."""
    try:
        return render()
    except Exception as error:
        return str(error)


@pytest.mark.parametrize("source", [*SOURCES, *(turns.template for turns in TURNS.values())])
def test_templates_of_models_compile_to_jinjas_code(source: str) -> None:
    code = own_code(source)
    assert isinstance(code, str)
    assert code == jinjas_code(source)


names = st.sampled_from(
    ["a", "b", "loop", "caller", "x.y", "z[0]", "c[1:n]", "'t'", "1", "none", "f(a, k=b)", "[a, b]"]
)
operators = st.sampled_from(
    ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">=", "and", "or", "in", "not in", "and not", "if"]
)
expressions = st.recursive(
    names,
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, operators, inner),
        st.builds("{} if {} else {}".format, inner, inner, inner),
        st.builds("({})".format, inner),
        st.builds("not {}".format, inner),
        st.builds("-{}".format, inner),
        st.builds("{} | default({})".format, inner, inner),
        st.builds("{} is {}".format, inner, st.sampled_from(["defined", "not none", "divisibleby 3", "is", "nothing"])),
        st.builds("{{'k': {}, {}: 1}}".format, inner, inner),
        st.builds("{} {}".format, inner, inner),
    ),
    max_leaves=8,
)
statements = st.sampled_from(
    [
        "{{ E }}",
        "{% if E %}x{% elif F %}{{ y }}{% endif %}",
        "{% set a = E %}{{ a }}",
        "{% set a.b, c = E %}",
        "{% for loop in E %}{% endfor %}",
        "{% for i, j in E if F %}{{ loop.index }}{% set a = i %}{% else %}{{ i }}{% endfor %}",
        "{% for i in E recursive %}{{ loop(F) }}{% break %}{% endfor %}",
        "{% macro m(a, b=E) %}{{ a }}{{ caller(F) }}{{ varargs }}{% endmacro %}{% call(i) m(1) %}{{ i }}{% endcall %}",
        "{% filter upper %}{{ E }}{% endfilter %}",
        "{% set x %}{{ E }}{% endset %}{{ x }}",
        "{% with a = E %}{{ a }}{% endwith %}",
        "{% block q %}{{ E }}{{ super() }}{% endblock %}",
        "{% generation %}{{ E }}{% endgeneration %}",
    ]
)


sources = st.builds(
    lambda parts, one, other: "\n".join(parts).replace("E", one).replace("F", other),
    st.lists(statements, min_size=1, max_size=3),
    expressions,
    expressions,
)


@given(sources)
def test_expressions_compile_to_jinjas_code(source: str) -> None:
    assert own_code(source) == jinjas_code(source)


@given(sources, st.dictionaries(st.sampled_from("abcxyzf"), st.sampled_from([0, "t", [1, 2], {"y": [3]}])))
@example("{% macro m(a=b, b=1) %}{{ a }}{{ b }}{{ c.d }}{% endmacro %}{{ m() }}", {})
@example("{% for i in [1] %}{% set y %}{{ a }}{% endset %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x.y }}", {})
@example(
    "{{ x is defined }}{{ m is defined }}{% if a %}{% set x = 1 %}{% endif %}{{ x }}{% macro m() %}{% endmacro %}", {}
)
@example(
    "{% set n = namespace() %}{% for i in 'a' %}{% set x = i %}{% macro m() %}{{ x }}.{% endmacro %}{{ m() }}"
    "{% set n.m = m %}{% endfor %}{{ n.m() }}",
    {},
)
def test_templates_render_as_in_jinja(source: str, values: dict[str, Any]) -> None:
    own = jinja.render(source, values)
    assert (own.get("text") or own.get("error", "")) == text_or_error(
        lambda: jinjas_environment().from_string(source).render(values)
    )


def test_macros_take_the_arguments_that_they_take_in_jinja() -> None:
    source = (
        "{% macro m(a, b='-') %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{{ caller(1) if caller }}{% endmacro %}"
        "{% for i in [1] %}{{ m(i) }}{{ m(i, 2, 3, d=4) }}{% call(c) m(b=5, a=6) %}{{ c }}{% endcall %}{% endfor %}"
        "{% block part %}{{ m(7) }}{% endblock %}"
    )
    assert jinja.render(source, {}) == {"text": PLAIN.from_string(source).render()}


def test_what_one_rendering_of_several_lacks_is_left_out() -> None:
    source = "{% if long %}{{ 'x' * 70000 }}{% elif wrong %}{{ raise_exception('no') }}{% else %}{{ word }}{% endif %}"
    calls: list[str] = []
    values: list[dict[str, Any]] = [{"word": "a"}, {"long": True}, {"wrong": True}, {"word": "b"}]
    assert jinja.render_batch(source, values, between=lambda: calls.append("timer")) == {"texts": ["a", None, "", "b"]}
    assert calls == ["timer"] * 4
