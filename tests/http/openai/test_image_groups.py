"""Many images in a chat completion: worked through in groups, with numbers that stay, on a tiny model that sees."""

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from lmwire import MessageDict
from lmwire_http.inference.timings import make_timings
from lmwire_http.openai.chat.image_groups import image_groups, join_results, label_images
from lmwire_protocol import events
from support.http.http_server import MOCK, Server, served
from support.http.raw_http import CHAT, asked
from support.media.shown_images import pixels

LABEL = re.compile(r"\[Image (\d+): (image_[0-9a-f]{8}\.png)\]")


def png(seed: int) -> str:
    file = io.BytesIO()
    pixels(seed).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def turn(*urls: str, text: str = "What is it?") -> Any:
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {"role": "user", "content": [{"type": "text", "text": text}, *images]}


def ask(server: Server, folder: Path, *messages: Any, chunk: int | None = None, **fields: Any) -> Any:
    client = OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
    extra = {"ignore_eos": True, **({} if chunk is None else {"chunk": chunk})}
    fields = {"max_tokens": 4, "temperature": 0, **fields}
    return client.chat.completions.create(model=str(folder), messages=list(messages), extra_body=extra, **fields)


def numbers(text: str) -> list[int]:
    return [int(number) for number, _ in LABEL.findall(text)]


@pytest.mark.slow
def test_each_group_is_announced_and_answered(seeing_server: Server, seeing_folder: Path) -> None:
    answer = ask(seeing_server, seeing_folder, turn(*map(png, range(5))), chunk=2, logprobs=True)
    content = answer.choices[0].message.content
    assert numbers(content) == [1, 2, 3, 4, 5]
    assert re.match(r"\[Image 1: \S+\]\n\[Image 2: \S+\]\n\n", content)
    assert re.search(r"\n\n\[Image 3: \S+\]\n\[Image 4: \S+\]\n\n", content)
    assert answer.usage.completion_tokens == 12
    assert answer.choices[0].finish_reason == "length"
    generated = b"".join(bytes(token.bytes) for token in answer.choices[0].logprobs.content)  # parts of characters
    assert generated.decode(errors="replace") == re.sub(r"(^|\n\n)(\[Image \S+ \S+\]\n)+\n", "", content)


@pytest.mark.slow
def test_the_usage_is_the_sum_of_the_groups(seeing_server: Server, seeing_folder: Path) -> None:
    images = [png(seed) for seed in range(3)]
    together = ask(seeing_server, seeing_folder, turn(*images), chunk=1).usage
    labelled = [group.messages for group in image_groups(wire(turn(*images)), 1)]
    alone = [
        ask(seeing_server, seeing_folder, openai_turn(messages, images[index])).usage
        for index, messages in enumerate(labelled)
    ]
    assert together.prompt_tokens == sum(usage.prompt_tokens for usage in alone)


def wire(*messages: Any) -> list[MessageDict]:
    from lmwire_http.openai.messages import ImagePart, ImageUrl, TextPart, wire_content

    def part(each: Any) -> Any:
        if each["type"] == "text":
            return TextPart(text=each["text"])
        return ImagePart(image_url=ImageUrl(url=each["image_url"]["url"]))

    found: list[Any] = []
    for message in messages:
        content = message["content"]
        parts = content if isinstance(content, str) else wire_content([part(each) for each in content], "messages[0]")
        found.append({"role": message["role"], "content": parts})
    return found


def openai_turn(messages: Any, url: str) -> Any:
    """Return a group's messages as a request, without the newlines that separate texts in a conversation."""
    parts = messages[0]["content"]
    assert [part["type"] for part in parts] == ["text", "text", "image"]
    parts = [{"type": "text", "text": parts[0]["text"].removesuffix("\n")}, *parts[1:]]
    shown = [part if part["type"] == "text" else {"type": "image_url", "image_url": {"url": url}} for part in parts]
    return {"role": "user", "content": shown}


@pytest.mark.slow
def test_a_stream_has_the_same_answer_and_one_end(seeing_server: Server, seeing_folder: Path) -> None:
    question = turn(*map(png, range(3)))
    whole = ask(seeing_server, seeing_folder, question, chunk=2)
    stream = [
        *ask(seeing_server, seeing_folder, question, chunk=2, stream=True, stream_options={"include_usage": True})
    ]
    deltas = [choice for chunk in stream for choice in chunk.choices]
    assert "".join(choice.delta.content or "" for choice in deltas) == whole.choices[0].message.content
    assert [choice.finish_reason for choice in deltas if choice.finish_reason] == ["length"]
    assert [choice.delta.role for choice in deltas if choice.delta.role] == ["assistant"]
    assert stream[-1].usage.prompt_tokens == whole.usage.prompt_tokens
    second = next(index for index, choice in enumerate(deltas) if "[Image 3: " in (choice.delta.content or ""))
    assert numbers(deltas[second].delta.content or "") == [3]


@pytest.mark.slow
def test_images_keep_their_numbers_over_turns(seeing_server: Server, seeing_folder: Path) -> None:
    first = turn(png(0), png(1), png(2))
    answer = ask(seeing_server, seeing_folder, first, chunk=2).choices[0].message.content
    said = {"role": "assistant", "content": answer}
    later = (
        ask(seeing_server, seeing_folder, first, said, turn(png(3), png(1), png(4)), chunk=2).choices[0].message.content
    )
    assert numbers(later) == [4, 2, 5]
    dropped = (
        ask(seeing_server, seeing_folder, turn(), said, turn(png(3), png(1), png(4)), chunk=2)
        .choices[0]
        .message.content
    )
    assert LABEL.findall(dropped) == LABEL.findall(later)


@pytest.mark.slow
def test_earlier_images_are_replaced_by_their_labels(seeing_server: Server, seeing_folder: Path) -> None:
    images = [png(seed) for seed in range(3)]
    said = {"role": "assistant", "content": "Birds."}
    grouped = ask(seeing_server, seeing_folder, turn(*images), said, turn(text="Sure?"), chunk=2)
    assert not numbers(grouped.choices[0].message.content)
    labels = "".join(f"{label}\n" for label in label_images(wire(turn(*images))).values())
    noted = turn(text=f"What is it?\n{labels}")
    assert (
        grouped.usage.prompt_tokens
        == ask(seeing_server, seeing_folder, noted, said, turn(text="Sure?")).usage.prompt_tokens
    )


def test_an_answer_about_an_image_has_a_default_length(tmp_path: Path) -> None:
    rules = [{"match": {"fields": {"max_tokens": 2048}}, "reply": {"text": "limited"}}, {"reply": {"text": "free"}}]
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"rules": rules}))
    with served("--worker", f"{MOCK} --scenario {scenario}") as server:
        for message, said in ((turn(png(0)), "limited"), (turn(), "free")):
            # The mock sees nothing, and gets a note in the place of the image.
            body = {"model": "mock", "messages": [message], "strict_media": False}
            answer = asked(server.url, "POST", CHAT, body)
            assert answer.json["choices"][0]["message"]["content"] == said


@pytest.mark.slow
def test_few_images_are_asked_about_as_without_groups(seeing_server: Server, seeing_folder: Path) -> None:
    question = turn(png(0), png(1))
    assert (
        ask(seeing_server, seeing_folder, question, chunk=2).choices
        == ask(seeing_server, seeing_folder, question).choices
    )


def test_an_option_sets_the_default() -> None:
    body = {"model": "mock", "messages": [turn(png(0), png(1))], "strict_media": False, "max_tokens": 4}
    with served("--worker", MOCK, "--image-group", "1") as server:

        def answered(**fields: Any) -> list[str]:
            answer = asked(server.url, "POST", CHAT, {**body, **fields})
            return [choice["message"]["content"] for choice in answer.json["choices"]]

        assert numbers(*answered()) == [1, 2]
        assert not numbers(*answered(chunk=2))
        assert [numbers(content) for content in answered(n=2)] == [[], []]


@pytest.mark.slow
def test_a_damaged_image_of_a_later_group_is_named_by_its_own_place(seeing_server: Server, seeing_folder: Path) -> None:
    broken = "data:image/png;base64,iVBORw0KGgo="
    with pytest.raises(openai.BadRequestError, match="not a supported image") as refused:
        ask(seeing_server, seeing_folder, turn(png(0), png(1), broken), chunk=1)
    assert refused.value.param == "messages[0].content[3]"


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {"chunk": 0},
        {"chunk": 65},
        {"chunk": 1, "n": 2},
        {"chunk": 1, "functions": [{"name": "look"}]},
        {"extra_body": {"chunk": 1, "response_prefix": "It"}},
        {"extra_body": {"chunk": 1, "verbose": True}},
    ],
)
def test_a_wrong_group_is_refused(seeing_server: Server, seeing_folder: Path, fields: Any) -> None:
    extra = {"ignore_eos": True, **fields.pop("extra_body", {})}
    client = OpenAI(base_url=f"{seeing_server.url}/v1", api_key="any", max_retries=0)
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(
            model=str(seeing_folder), messages=[turn(png(0))], max_tokens=4, extra_body={**extra, **fields}
        )
    assert refused.value.param == "chunk"


def test_texts_that_a_left_out_image_separated_stay_apart() -> None:
    content = [*turn("/a.png", "/b.png", text="One")["content"], {"type": "text", "text": "Two"}]
    for number, group in enumerate(image_groups(wire({"role": "user", "content": content}), 1)):
        parts: Any = group.messages[0].get("content")
        label = f"[Image {number + 1}: {'ab'[number]}.png]\n"
        assert [part.get("text") for part in parts] == ["One\n", label, None, "Two"]


def test_files_have_their_names_and_equal_names_have_numbers_of_their_own() -> None:
    messages = wire(
        turn("/a/my cat.png", "https://example.com/b/my%20cat.png?size=2", "/b/my cat.png", "/a/my cat.png")
    )
    assert list(label_images(messages).values()) == [
        "[Image 1: my_cat.png]",
        "[Image 2: my_cat.png]",
        "[Image 3: my_cat.png]",
        "[Image 1: my_cat.png]",
    ]


def test_a_name_cannot_hold_a_models_placeholder() -> None:
    assert list(label_images(wire(turn("/a/<image>]\n[.png"))).values()) == ["[Image 1: _image_.png]"]


def test_the_times_are_the_sum_of_the_groups() -> None:
    times = events.Timings(queued_ms=1.0, prefill_ms=20.0, first_token_ms=25.0, total_ms=35.0)
    usage = events.Usage(prompt_tokens=10, cached_tokens=0, completion_tokens=2)
    result = events.ResultDone(id="", finish_reason="stop", seed=0, usage=usage, timings=times)
    joined = make_timings(join_results([result, result]))
    assert (joined.prompt_n, joined.prompt_ms, joined.prompt_per_second) == (20, 40.0, 500.0)
    assert (joined.predicted_n, joined.predicted_ms, joined.predicted_per_second) == (4, 20.0, 200.0)
