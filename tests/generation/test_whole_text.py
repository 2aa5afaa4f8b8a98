"""The parsed parts of an answer, joined, are the model's text without its markers, up to a stop string."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lmwire_protocol import Chat, Generate
from lmwire_worker.generation.runner import GenerationRunner
from support.runners.generation_runners import Answer, RunnerOf, ask, chat, open_runner, stock

pytestmark = pytest.mark.slow

TINY = Path(__file__).parents[2] / "worker/lmwire_worker/builtin/tiny"
SEEDS = st.lists(st.integers(0, 10**6), min_size=6, max_size=6, unique=True)
EXAMPLES = max(2, settings().max_examples // 12)
"""An example takes hundreds of steps of a model."""
STOPS = ["\u00e9", "e\u0301", "\U0001f600", "\u4f60\u597d", "</s>", "ab", "\n\n"]


@pytest.fixture(scope="module")
def built_in() -> GenerationRunner:
    return open_runner(Path("builtin:tiny"))


def answered(runner: GenerationRunner, request: Generate | Chat, *seeds: int) -> list[Answer]:
    """Return the answers to one request with each seed, generated together."""
    return ask(runner, *[request] * len(seeds), seeds=seeds)


@settings(max_examples=EXAMPLES)
@given(seeds=SEEDS, temperature=st.sampled_from([0.7, 1.5, 4.0]), reasoning=st.sampled_from(["on", "off"]))
def test_reasoning_and_content_are_the_whole_answer(
    built_in: GenerationRunner, seeds: list[int], temperature: float, reasoning: str
) -> None:
    request = chat("Hi", max_tokens=60, temperature=temperature, reasoning=reasoning)
    for answer in answered(built_in, request, *seeds):
        whole = unmarked(stock(TINY)[1].decode(answer.token_ids))
        assert unmarked("".join(answer.parts)) == whole.removeprefix(" ")  # the first space is the tokenizer's


def unmarked(text: str) -> str:
    """Remove the markers from a text: parsing keeps those that are inside a thought or have no partner."""
    return text.replace("<think>", "").replace("</think>", "")


@settings(max_examples=EXAMPLES)
@given(seeds=SEEDS, stops=st.lists(st.sampled_from(STOPS), min_size=1, max_size=4), include=st.booleans())
def test_a_stop_string_ends_the_text_wherever_tokens_and_characters_end(
    runner_of: RunnerOf, seeds: list[int], stops: list[str], include: bool
) -> None:
    free = Generate(prompt="ka", max_tokens=60, temperature=3.0, ignore_eos=True)
    texts = [answer.text for answer in answered(runner_of("qwen3"), free, *seeds)]
    stops = [*stops, texts[0][9:11]]
    stopped = replace(free, stop=stops, include_stop=include)
    for text, answer in zip(texts, answered(runner_of("qwen3"), stopped, *seeds), strict=True):
        ends = [(text.index(stop) + len(stop), -len(stop), stop) for stop in stops if stop in text]
        if not ends:
            assert (answer.text, answer.finish_reason) == (text, "length")
            continue
        end, _, stop = min(ends)
        assert (answer.finish_reason, answer.stop) == ("stop", stop)
        assert answer.text == text[: end if include else end - len(stop)]
