"""/api/generate through Ollama's own client: prompts in the chat template, raw ones, and gaps."""

from collections.abc import Iterator
from typing import Any

import ollama
import pytest

from support.http.http_server import Server, served
from support.http.ollama_http import GREEDY, MODEL, client, user
from support.models.infill_tokenizers import write_infill_model

TINY = "builtin:tiny"


@pytest.fixture(scope="module")
def tiny(tiny_server: Server) -> ollama.Client:
    return client(tiny_server)


@pytest.fixture(scope="module")
def infilling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ollama.Client]:
    """Serve a model with the markers of gaps."""
    with served(str(write_infill_model(tmp_path_factory.mktemp("infill") / "model"))) as server:
        yield client(server)


@pytest.mark.slow
def test_a_prompt_is_a_users_message(tiny: ollama.Client) -> None:
    answer = tiny.generate(TINY, "Who are you?", system="Be brief.", options=GREEDY)
    messages = [{"role": "system", "content": "Be brief."}, user("Who are you?")]
    assert answer.response and answer.response == tiny.chat(TINY, messages, options=GREEDY).message.content
    assert (answer.done, answer.done_reason) == (True, "stop")
    assert answer.eval_count and answer.eval_duration and answer.total_duration


@pytest.mark.slow
def test_a_stream_has_the_same_text(tiny: ollama.Client) -> None:
    *parts, last = tiny.generate(TINY, "What is 17 + 25?", think=True, options=GREEDY, stream=True)
    whole = tiny.generate(TINY, "What is 17 + 25?", think=True, options=GREEDY)
    assert whole.thinking and "".join(part.thinking or "" for part in parts) == whole.thinking
    assert "".join(part.response or "" for part in parts) == whole.response
    assert (last.response, last.done_reason) == ("", "stop")


@pytest.mark.slow
def test_the_context_of_an_answer_continues_the_conversation(tiny: ollama.Client) -> None:
    first = tiny.generate(TINY, "What is 17 + 25?", system="Be brief.", options=GREEDY)
    *_, streamed = tiny.generate(TINY, "What is 17 + 25?", system="Be brief.", options=GREEDY, stream=True)
    assert first.context and list(first.context) == list(streamed.context or ())
    second = tiny.generate(TINY, "Who are you?", context=first.context, options=GREEDY)
    before = [{"role": "system", "content": "Be brief."}, user("What is 17 + 25?")]
    said = {"role": "assistant", "content": first.response}
    whole = tiny.chat(TINY, [*before, said, user("Who are you?")], options=GREEDY)
    assert (second.response, second.prompt_eval_count) == (whole.message.content, whole.prompt_eval_count)
    other = tiny.generate(TINY, "Who are you?", context=first.context, system="Be loud.", options=GREEDY)
    before[0] = {"role": "system", "content": "Be loud."}
    whole = tiny.chat(TINY, [*before, said, user("Who are you?")], options=GREEDY)
    assert (other.response, other.prompt_eval_count) == (whole.message.content, whole.prompt_eval_count)


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [[1, 2], [300], [-1], list(b"[]"), list(b'[{"role":"user"}]'), list(b"[" * 2000)])
def test_numbers_of_another_server_are_refused(tiny: ollama.Client, numbers: list[int]) -> None:
    with pytest.raises(ollama.ResponseError, match=r"^context: is not from an answer of this server") as error:
        tiny.generate(TINY, "hi", context=numbers)
    assert error.value.status_code == 400


@pytest.mark.slow
def test_a_raw_prompt_is_continued_as_it_is(tiny: ollama.Client) -> None:
    raw = tiny.generate(TINY, "Who are you?", raw=True, options={**GREEDY, "num_predict": 8})
    chat = tiny.generate(TINY, "Who are you?", options={**GREEDY, "num_predict": 8})
    assert raw.prompt_eval_count and chat.prompt_eval_count and raw.prompt_eval_count < chat.prompt_eval_count


@pytest.mark.slow
def test_a_suffix_makes_the_prompt_the_text_before_a_gap(infilling: ollama.Client) -> None:
    options = {**GREEDY, "num_predict": 8}
    gap = infilling.generate("default", "ka lo mi", suffix=" pa su", options=options)
    written = "<|fim_prefix|>ka lo mi<|fim_suffix|> pa su<|fim_middle|>"
    raw = infilling.generate("default", written, raw=True, options=options)
    assert (gap.response, gap.prompt_eval_count) == (raw.response, raw.prompt_eval_count)
    assert "insert" in (infilling.show("default").capabilities or ())


@pytest.mark.slow
def test_a_model_that_fills_no_gaps_says_so_in_ollamas_words(tiny: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match=f'"{TINY}" does not support insert: ') as error:
        tiny.generate(TINY, "def add(", suffix="return c")
    assert error.value.status_code == 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"template": "{{ .Prompt }}"}, "template"),
        ({"context": [1, 2]}, "context"),
        ({"suffix": "after"}, "suffix"),
        ({"raw": True, "system": "Be brief."}, "system"),
        ({"raw": True, "images": ["aGk="]}, "images"),
        ({"images": ["aGk="]}, "images[0]"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_name(tiny: ollama.Client, fields: Any, named: str) -> None:
    with pytest.raises(ollama.ResponseError) as error:
        tiny.generate(TINY, "hello", **fields)
    assert error.value.status_code == 400
    assert error.value.error.startswith(f"{named}: ")


@pytest.mark.slow
def test_empty_fields_are_absent(tiny: ollama.Client) -> None:
    answer = tiny.generate(TINY, "hi", suffix="", template="", context=[], system="", format="", images=[])
    assert answer.done_reason == "stop"


def test_the_mock_repeats_a_raw_prompt(mock_server: Server) -> None:
    assert client(mock_server).generate(MODEL, "to be or not", raw=True).response == "to be or not"
