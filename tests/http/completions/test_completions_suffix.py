"""Gaps that editors ask to fill, with OpenAI's own client: `suffix` of completions."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from support.http.http_server import Server, served
from support.models.infill_tokenizers import write_infill_model

BEFORE, AFTER = "ka lo mi", " pa su"
WRITTEN = f"<|fim_prefix|>{BEFORE}<|fim_suffix|>{AFTER}<|fim_middle|>"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    folder = write_infill_model(tmp_path_factory.mktemp("infill") / "model")
    with served(str(folder)) as server:
        yield OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


def complete(client: OpenAI, prompt: Any, **options: Any) -> Any:
    options = {"max_tokens": 8, **options}
    return client.completions.create(model="default", prompt=prompt, temperature=0, **options)


@pytest.mark.slow
def test_a_suffix_is_what_follows_the_gap(client: OpenAI) -> None:
    gap, written = complete(client, BEFORE, suffix=AFTER), complete(client, WRITTEN)
    assert gap.choices[0].text == written.choices[0].text
    assert gap.usage.prompt_tokens == written.usage.prompt_tokens


@pytest.mark.slow
def test_each_prompt_has_the_suffix(client: OpenAI) -> None:
    both = complete(client, [BEFORE, "ru"], suffix=AFTER)
    assert [choice.text for choice in both.choices] == [
        complete(client, prompt, suffix=AFTER).choices[0].text for prompt in (BEFORE, "ru")
    ]


@pytest.mark.slow
def test_a_gap_is_streamed(client: OpenAI) -> None:
    chunks = complete(client, BEFORE, suffix=AFTER, stream=True)
    whole = complete(client, BEFORE, suffix=AFTER).choices[0].text
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole


@pytest.mark.slow
def test_an_empty_suffix_is_none(client: OpenAI) -> None:
    assert complete(client, BEFORE, suffix="").choices[0].text == complete(client, BEFORE).choices[0].text


@pytest.mark.slow
def test_an_editor_may_write_the_familys_form_itself(client: OpenAI) -> None:
    given = complete(client, WRITTEN, stop=["<|file_sep|>", "<|endoftext|>"])
    assert given.choices[0].text == complete(client, BEFORE, suffix=AFTER).choices[0].text


@pytest.mark.slow
@pytest.mark.parametrize("prompt", ["a", [1]])
def test_a_suffix_that_cannot_be_honoured_is_refused_by_its_name(tiny_server: Server, prompt: Any) -> None:
    client = OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0)
    with pytest.raises(openai.BadRequestError) as error:
        client.completions.create(model="builtin:tiny", prompt=prompt, suffix="b")
    assert error.value.param == "suffix"
