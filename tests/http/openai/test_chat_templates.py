"""Chat templates over HTTP, with OpenAI's own client and a real worker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import BadRequestError, OpenAI

from lmwire_http.http.unknown_fields import IGNORED_FIELDS_HEADER
from support.http.http_server import Server, served
from support.http.raw_http import asked
from support.models.chat_templates import GEMMA3
from support.models.templated_model import write_templated_model

pytestmark = pytest.mark.slow


def client_of(server: Server) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


def say(client: OpenAI, model: str, *messages: Any, **fields: Any) -> Any:
    return client.chat.completions.create(model=model, messages=list(messages), temperature=0, max_tokens=3, **fields)


def message(role: str, content: str) -> Any:
    return {"role": role, "content": content}


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OpenAI, str]]:
    folder = str(write_templated_model(tmp_path_factory.mktemp("gemma") / "model", GEMMA3))
    with served(folder) as server:
        yield client_of(server), Path(folder).name


def test_a_conversation_that_begins_with_the_assistant_is_answered(gemma: tuple[OpenAI, str]) -> None:
    client, model = gemma
    answer = say(client, model, message("assistant", "Welcome!"), message("user", "Hi"))
    # An explicit empty turn gives the same prompt.
    same = say(client, model, message("user", ""), message("assistant", "Welcome!"), message("user", "Hi"))
    assert answer.usage.completion_tokens > 0
    assert answer.usage.prompt_tokens == same.usage.prompt_tokens
    assert answer.choices[0].message.content == same.choices[0].message.content


def test_the_final_message_is_continued_or_closed_as_in_vllm(gemma: tuple[OpenAI, str]) -> None:
    client, model = gemma
    turns = message("user", "Hi"), message("assistant", "Well")

    def count(**fields: Any) -> int:
        return say(client, model, *turns, extra_body=fields).usage.prompt_tokens

    opened, closed = count(), count(add_generation_prompt=False)
    continued = count(add_generation_prompt=False, continue_final_message=True)
    assert opened > closed > continued
    assert count(continue_final_message=True) == continued
    with pytest.raises(BadRequestError) as caught:
        count(add_generation_prompt=True, continue_final_message=True)
    assert caught.value.param == "continue_final_message"


def test_tabbyapis_prefix_begins_the_answer(gemma: tuple[OpenAI, str]) -> None:
    client, model = gemma
    asked = message("user", "Hi")
    mine, theirs, plain = (
        say(client, model, asked, extra_body=fields)
        for fields in ({"prefix": "Well, now"}, {"response_prefix": "Well, now"}, {})
    )
    assert theirs.usage.prompt_tokens == mine.usage.prompt_tokens > plain.usage.prompt_tokens
    assert theirs.choices[0].message.content == mine.choices[0].message.content
    with pytest.raises(BadRequestError) as caught:
        say(client, model, asked, extra_body={"response_prefix": "a", "prefix": "b"})
    assert caught.value.param == "response_prefix"


SHOUTING = "{% if shout %}{{ '!' * shout }}{% endif %}{{ messages[-1].content }}"
NAMES = ("chat_template_kwargs", "template_vars", "template_args")


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, OpenAI, str]]:
    folder = str(write_templated_model(tmp_path_factory.mktemp("variables") / "model", SHOUTING))
    with served(folder, "--request-templates") as server:
        yield server, client_of(server), Path(folder).name


@pytest.mark.parametrize("name", NAMES)
def test_template_variables_have_three_names(variables: tuple[Server, OpenAI, str], name: str) -> None:
    _, client, model = variables
    counts = [
        say(client, model, message("user", "Hi"), extra_body=fields).usage.prompt_tokens
        for fields in ({}, {name: {"shout": 5}})
    ]
    assert counts[1] == counts[0] + 5
    with pytest.raises(BadRequestError) as caught:
        say(client, model, message("user", "Hi"), extra_body={name: {"messages": []}})
    assert caught.value.param == f"{name}.messages"


def test_only_one_of_these_names_may_be_given(variables: tuple[Server, OpenAI, str]) -> None:
    _, client, model = variables
    with pytest.raises(BadRequestError, match="says the same as"):
        two = {"template_vars": {"shout": 1}, "template_args": {"shout": 2}}
        say(client, model, message("user", "Hi"), extra_body=two)


@pytest.mark.parametrize("name", NAMES)
def test_a_variable_that_the_template_does_not_have_is_ignored_and_reported(
    variables: tuple[Server, OpenAI, str], name: str
) -> None:
    server, client, model = variables
    unknown = f"loud_{name}"
    given = {"shout": 5, unknown: True, "enable_thinking": False}
    for stream in (False, True):
        answer = client.chat.completions.with_raw_response.create(
            model=model,
            messages=[message("user", "Hi")],
            max_tokens=3,
            temperature=0,
            stream=stream,
            extra_body={name: given},
        )
        assert answer.http_response.status_code == 200
        answer.http_response.read()
        assert answer.headers[IGNORED_FIELDS_HEADER] == f"{name}.{unknown}, {name}.enable_thinking"
    server.wait_for_line(f"it is ignored.*{name}.{unknown}")
    plain, ignored = (
        say(client, model, message("user", "Hi"), extra_body={name: fields}).usage.prompt_tokens
        for fields in ({"shout": 5}, given)
    )
    assert ignored == plain


def test_a_strict_server_refuses_an_unknown_variable(tmp_path: Path) -> None:
    folder = str(write_templated_model(tmp_path / "model", SHOUTING))
    with served(folder, "--strict") as server:
        client, model = client_of(server), Path(folder).name
        for name in NAMES:
            say(client, model, message("user", "Hi"), extra_body={name: {"shout": 5}})
            with pytest.raises(BadRequestError, match=f"^Error code: 400.*{name}.loud.*has no such variable") as caught:
                say(client, model, message("user", "Hi"), extra_body={name: {"shout": 5, "loud": True}})
            assert caught.value.param == f"{name}.loud"


def test_a_variable_that_a_requests_own_template_lacks_is_ignored_and_logged(
    variables: tuple[Server, OpenAI, str],
) -> None:
    server, client, model = variables
    own = {"chat_template": "{{ mood }}", "template_vars": {"mood": "!!!!", "shout": 9}}
    assert say(client, model, message("user", "Hi"), extra_body=own).usage.prompt_tokens == 4
    server.wait_for_line("it is ignored.*template_vars.shout")


def test_too_many_unknown_variables_are_refused(variables: tuple[Server, OpenAI, str]) -> None:
    _, client, model = variables
    many = {f"v{number}": 0 for number in range(99)}
    with pytest.raises(BadRequestError, match="has no such variable"):
        say(client, model, message("user", "Hi"), extra_body={"template_vars": many})


def test_messages_and_responses_ignore_unknown_template_variables(variables: tuple[Server, OpenAI, str]) -> None:
    server, client, model = variables
    given = {"template_args": {"shout": 5, "elsewhere": 1}}
    known = {"template_args": {"shout": 5}}

    def tokens_of_response(extra_body: Any) -> int:
        usage = client.responses.create(model=model, input="Hi", max_output_tokens=16, extra_body=extra_body).usage
        assert usage
        return usage.input_tokens

    def tokens_of_message(fields: Any) -> int:
        body = {"model": model, "max_tokens": 3, "messages": [message("user", "Hi")], **fields}
        return asked(server.url, "POST", "/v1/messages", body).json["usage"]["input_tokens"]

    assert tokens_of_response(given) == tokens_of_response(known)
    assert tokens_of_message(given) == tokens_of_message(known)


@pytest.mark.parametrize(
    ("path", "prompt"),
    [
        ("/v1/responses/input_tokens", {"input": "Hi"}),
        ("/v1/messages/count_tokens", {"messages": [message("user", "Hi")]}),
    ],
)
def test_a_count_of_tokens_ignores_it_too(
    variables: tuple[Server, OpenAI, str], path: str, prompt: dict[str, Any]
) -> None:
    server, _, model = variables
    counts: list[int] = []
    for given in ({"shout": 5}, {"shout": 5, "elsewhere": 1}):
        answer = asked(server.url, "POST", path, {"model": model, **prompt, "chat_template_kwargs": given})
        counts.append(answer.json["input_tokens"])
    assert answer.headers[IGNORED_FIELDS_HEADER] == "chat_template_kwargs.elsewhere"
    assert counts[0] == counts[1]
