"""A process for strangers' programs: it answers, ends at its limits, and is replaced."""

import json
import os
import select
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from transformers.utils.chat_template_utils import _compile_jinja_template

from lmwire_worker.sandbox import LimitExceeded, Limits, Sandbox, jinja, process
from lmwire_worker.sandbox.process import Cancellation, WorkCancelled
from support.models import chat_templates
from support.process.process_waits import stop, stop_in_a_write
from support.process.worker_process import SECONDS

MESSAGES = [{"role": "user", "content": "Grüße, <b>"}, {"role": "assistant", "content": "\ud800"}]
SOURCES = [value for value in vars(chat_templates).values() if isinstance(value, str) and "{%" in value]
SNIPPETS = [
    "{{ messages|tojson(indent=2) }}",
    "{{ messages|tojson(separators=(',', ':'), sort_keys=true, ensure_ascii=true) }}",
    "{% generation %}{{ messages[0].content }}{% endgeneration %}",
    "{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ m.role }}{% endfor %}",
    "{% set ns = namespace(x=1) %}{% set ns.x = 2 %}{{ ns.x }}{{ dict(a=1) }}{{ strftime_now('%Y') }}",
    "{{ documents is none }} {{ 'x' * 3 }} {{ tools }}",
    "{{ 1_000 + 2.5e1 - 7 // 2 ** 1 }}{{- -1 -}}  {%- set é2 = 0x1F %}{{ é2 }}",
    "{{ 08 }}",
    "{{ ٣ }}",
    "{{ 1a }}",
    "{{ {'a': [1, 2][0]}['a'] ~ (bos_token if not tools else 'x') | upper -}}"
    " \n z {#- c -#} {%+ if 1 %} 1 {% endif +%}",
    "{% macro f(a, b=2) %}{{ a ~ b ~ varargs }}{% endmacro %}{% for m in messages recursive %}{{ f(loop.index, 3, 4) }}"
    "{% if m.kids %}{{ loop(m.kids) }}{% endif %}{% else %}none{% endfor %}"
    "{% block a scoped %}{{ self.b() }}{% endblock %}"
    "{% block b %}{% set x %}y{% endset %}{{ x }}{% endblock %}{% filter upper %}q{% endfilter %}",
    "{% for loop in messages %}{{ loop }}{% endfor %}",
    "{% for m in messages %}{% for n in [1, 2] %}{{ loop.index ~ loop.last }}{% endfor %}{{ loop.first }}{% endfor %}",
    "{% block a %}{% endblock %}{% block a %}{% endblock %}",
]


@pytest.mark.parametrize("source", SOURCES + SNIPPETS, ids=range(len(SOURCES + SNIPPETS)))
def test_templates_write_what_they_write_in_transformers_own_environment(source: str) -> None:
    values = {"messages": MESSAGES[:1], "tools": None, "add_generation_prompt": True, "bos_token": "<s>"}
    try:
        expected: Any = {"text": _compile_jinja_template(source).render(documents=None, **values)}
    except Exception as error:
        expected = {"error": str(error)}
    answer = jinja.render(source, values)
    if "error" in answer:
        answer["error"] = answer["error"].partition("\n")[0]  # a place may follow
    assert expected.items() <= answer.items()


def test_each_time_that_a_template_writes_has_its_own_processor_time() -> None:
    calls: list[str] = []
    answer = jinja.render_opened("a{{ 'b' if add_generation_prompt }}", {}, between=lambda: calls.append("timer"))
    assert answer == {"text": "ab", "opening": "b"}
    assert calls == ["timer"]
    assert "error" in jinja.render_opened("{{ raise_exception('no') }}", {}, between=lambda: calls.append("again"))
    assert calls == ["timer"]


def test_a_template_cannot_do_what_is_forbidden() -> None:
    for source in ("{{ ''.__class__.__mro__ }}{{ ''.__class__.x }}", "{% set ns = namespace() %}{% set ns._x = 1 %}"):
        assert "text" not in jinja.render(source, {}) or "class" not in jinja.render(source, {})["text"]


@pytest.mark.slow
def test_the_sandbox_serves_again_after_a_limit_was_exceeded() -> None:
    sandbox = Sandbox()
    endless = "{% for a in range(100000) %}" * 3 + "{% endfor %}" * 3
    try:
        with pytest.raises(LimitExceeded, match="takes longer than 1 s"):
            sandbox.ask({"subject": "render", "source": endless, "values": {}}, Limits(cpu_seconds=1))
        question = {"subject": "render", "source": "{{ messages|tojson }}", "values": {"messages": MESSAGES}}
        assert json.loads(sandbox.ask(question)["text"]) == MESSAGES
    finally:
        sandbox.close()


@pytest.mark.slow
def test_a_sandbox_that_gives_no_answer_is_ended_and_its_memory_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "RESPONSE_TIMEOUT_S", 0.01)
    sandbox = Sandbox()
    sandbox.start()
    assert sandbox.process
    stop(sandbox.process.pid)  # as if a busy machine gave it no time
    with pytest.raises(LimitExceeded, match="gives no answer in 0 s"):
        sandbox.ask({"subject": "template", "source": "x"}, Limits(cpu_seconds=0))
    sandbox.close()


@pytest.mark.slow
def test_a_cancel_ends_the_answer_and_the_next_question_is_answered() -> None:
    sandbox, cancellation = Sandbox(), Cancellation()
    endless = "{% for a in range(100000) %}" * 3 + "{% endfor %}" * 3

    def ask() -> None:
        with cancellation.of_this_thread():
            sandbox.ask({"subject": "render", "source": endless, "values": {}}, Limits(cpu_seconds=SECONDS))

    with ThreadPoolExecutor(1) as threads:
        sandbox.start()
        asked = threads.submit(ask)
        cancellation.set()
        with pytest.raises(WorkCancelled):
            asked.result(SECONDS)
        with pytest.raises(WorkCancelled):  # before it is asked
            threads.submit(ask).result(SECONDS)
        assert sandbox.ask({"subject": "render", "source": "x", "values": {}})["text"] == "x"
    sandbox.close()


@pytest.mark.slow
def test_a_cancel_after_the_answer_ends_nothing() -> None:
    sandbox, cancellation = Sandbox(), Cancellation()
    with cancellation.of_this_thread():
        sandbox.ask({"subject": "template", "source": "x"})
    process = sandbox.process
    cancellation.set()
    sandbox.ask({"subject": "template", "source": "x"})
    assert sandbox.process is process
    sandbox.close()


@pytest.mark.slow
def test_a_crash_of_the_sandbox_is_an_error() -> None:
    sandbox = Sandbox()
    sandbox.start()
    sandbox.close()
    for _ in range(2):  # the end may be noticed before the question, or by it
        try:
            assert sandbox.ask({"subject": "template", "source": "x"}) == {"variables": []}
        except LimitExceeded as ended:
            assert "memory" in str(ended)
    sandbox.close()


@pytest.mark.slow
def test_a_long_answer_is_whole_if_its_process_is_stopped_while_it_writes() -> None:
    question = {"subject": "render", "source": "{{ 'x' * 1000000 }}", "values": {}, "limits": [60, 2**30]}
    expected = b'{"text": "' + b"x" * 1_000_000 + b'"}\n'
    command = [sys.executable, "-P", "-m", "lmwire_worker.sandbox"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(question).encode() + b"\n")
        stop_in_a_write(process)
        received = b""
        while len(received) < len(expected) and select.select([process.stdout], [], [], SECONDS)[0]:
            received += os.read(process.stdout.fileno(), len(expected))
        process.kill()
    assert received == expected
