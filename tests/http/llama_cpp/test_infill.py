"""POST /infill with the requests that editors send, and a real model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.http.http_server import MOCK, Server, served
from support.http.raw_http import asked
from support.models.infill_tokenizers import write_infill_model

FOLDER = Path(__file__).parent
FIM, WARM_UP = (json.loads((FOLDER / f"llama_vim_{name}.json").read_text()) for name in ("fim", "warm_up"))
"""Requests in the form of llama.vim's autoload/llama.vim: for a completion, and for the cache of other files."""


@pytest.fixture(scope="module")
def coder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = write_infill_model(tmp_path_factory.mktemp("infill") / "coder", end_scale=0)
    with served(str(folder), "--strict") as server:
        yield server.url


def infill(url: str, **fields: Any) -> Any:
    response = asked(url, "POST", "/infill", fields)
    assert response.status == 200, response
    return response.json


def written(url: str, prompt: str, **fields: Any) -> str:
    body = {"prompt": prompt, "temperature": 0, **fields}
    return asked(url, "POST", "/v1/completions", body).json["choices"][0]["text"]


@pytest.mark.slow
def test_llama_vim_gets_its_fields_and_the_text_of_the_gap(coder: str) -> None:
    found = infill(coder, **{**FIM, "n_indent": 0})
    assert set(found) == {*FIM["response_fields"]} - {"truncated"}
    prompt = (
        "<|repo_name|>project\n<|file_sep|>src/first.py\nlo mi ru se\n\n<|file_sep|>src/second.py\nti pa su ka\n\n"
        "<|file_sep|>filename\n<|fim_prefix|>ka lo mi\n    ru se\n    ru <|fim_suffix|>    pa su\nti ka\n<|fim_middle|>"
    )
    assert found["content"] == written(coder, prompt, max_tokens=24) != ""
    assert found["timings/predicted_n"] == 24


@pytest.mark.slow
def test_llama_vims_warm_up_puts_the_files_into_the_cache(coder: str) -> None:
    assert infill(coder, **WARM_UP) == {}
    request = {**FIM, "input_extra": WARM_UP["input_extra"], "response_fields": []}
    assert infill(coder, **request)["tokens_cached"] > 20


@pytest.mark.slow
def test_a_whole_response_has_all_fields(coder: str) -> None:
    found = infill(coder, input_prefix="ka ", input_suffix=" lo", n_predict=5)
    assert (found["stop"], found["stop_type"], found["stopping_word"]) == (True, "limit", "")
    assert (found["tokens_predicted"], found["has_new_line"]) == (5, False)
    timings = found["timings"]
    assert timings["cache_n"] + timings["prompt_n"] == found["tokens_evaluated"]
    assert timings["predicted_n"] == 5


@pytest.mark.slow
def test_a_stream_brings_the_same_text(coder: str) -> None:
    request = {"input_prefix": "ka ", "input_suffix": " lo", "n_predict": 12}
    lines = asked(coder, "POST", "/infill", {**request, "stream": True}).body.decode().splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data")]
    assert [event["stop"] for event in events] == [False] * (len(events) - 1) + [True]
    assert "".join(event["content"] for event in events) == infill(coder, **request)["content"]
    assert sum(len(event["tokens"]) for event in events) == 12


@pytest.mark.slow
def test_a_stop_string_is_named(coder: str) -> None:
    request = {"input_prefix": "ka ", "input_suffix": " lo", "n_predict": 24}
    word = infill(coder, **request)["content"][2:4]
    found = infill(coder, **request, stop=[word])
    assert (found["stop_type"], found["stopping_word"]) == ("word", word)


@pytest.mark.slow
def test_a_long_file_is_cut_around_the_gap(coder: str) -> None:
    found = infill(coder, input_prefix="ka " * 9000, input_suffix=" lo" * 9000, n_predict=2)
    assert found["tokens_evaluated"] == 4096 - 2


def test_an_answer_ends_where_the_indentation_does(tmp_path: Path) -> None:
    script = tmp_path / "lines.json"
    script.write_text(json.dumps({"rules": [{"reply": {"text": "a\n    b\nc d e", "then": "repeat"}}]}))
    with served("--worker", f"{MOCK} --scenario {script}") as server:
        found = infill(server.url, model="mock", input_prefix="x", input_suffix="y", n_indent=4)
        assert (found["content"], found["stop_type"], found["has_new_line"]) == ("a\n    b", "limit", True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input_prefix": "a"}, "input_suffix"),
        ({"input_prefix": "a", "input_extra": [{"text": ""}] * 257}, "input_extra"),
        ({"input_prefix": "a", "input_extra": [{"filename": "a.py"}]}, "input_extra[0].text"),
        ({"input_prefix": "a", "n_predict": -2}, "n_predict"),
        ({"input_prefix": 1}, "input_prefix"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_name(
    tiny_server: Server, fields: dict[str, Any], param: str
) -> None:
    response = asked(tiny_server.url, "POST", "/infill", fields)
    assert (response.status, response.json["error"]["param"]) == (400, param)
