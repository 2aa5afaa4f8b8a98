"""Vectors of images and texts, equal to mlx-vlm's own, in one space, in any order."""

import base64
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from mlx_vlm.encoder_loader import load_encoder_model
from mlx_vlm.utils import load_processor

from lmwire_protocol import Embed, ImagePart, Load, Media, RequestError, TextPart, Tokenize, TokensPart
from lmwire_worker.embeddings.qwen3_vl import DEFAULT_INSTRUCTION, VisionEmbeddingNetwork
from lmwire_worker.embeddings.runner import IMAGE_TOKEN_BYTES, EmbeddingRunner, step_bytes
from lmwire_worker.engine.interface import EmbeddingOutput
from lmwire_worker.loading.model_loader import MlxModelLoader
from lmwire_worker.media import MediaPolicy
from random_vision import write_vision_model
from support.media.shown_images import image, pixels
from support.models.random_embeddings import write_embedding_model
from support.nightly import nightly_but
from support.process.worker_process import WorkerProcess
from support.runners.embedding_runners import embed, gather, open_runner

pytestmark = pytest.mark.slow

Part = str | TextPart | ImagePart | TokensPart

ONE, OTHER, TALL, WIDE = image(1), image(2), image(3, 64, 128), image(4, 200, 40)
MIXED: list[Part] = ["the sea", ONE, "the sea is wide and deep", TALL, TextPart("a"), WIDE, "caf\u00e9 数学 🙂", OTHER]
KNOWN_BY_NAME = "Qwen3-VL-Embedding-tiny"


@pytest.fixture(scope="module", params=nightly_but({"qwen3_vl"}, ["qwen3_vl", "qwen3_vl_embedding"]))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as its authors publish it, and as mlx-vlm names it."""
    root = tmp_path_factory.mktemp("models")
    return write_vision_model(root / KNOWN_BY_NAME, "qwen3_vl", model_type=request.param)


@pytest.fixture(scope="module")
def runner(folder: Path) -> EmbeddingRunner:
    return open_runner(folder)


@cache
def processor_of(folder: Path) -> Any:
    return load_processor(folder, add_detokenizer=False)


def expected(folder: Path, part: Part, instruction: str = DEFAULT_INSTRUCTION) -> Any:
    """Return the vector of one input from mlx-vlm's processor and model, loaded anew."""
    processor = processor_of(folder)
    given = {}
    content = {"type": "text", "text": part.text if isinstance(part, TextPart) else part}
    if isinstance(part, ImagePart):
        content = {"type": "image"}
        given = {"images": [PIL.Image.open(io.BytesIO(base64.b64decode(part.media.data or "")))]}
    messages = [{"role": "system", "content": instruction}, {"role": "user", "content": [content]}]
    text = processor.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    inputs = processor(text=[text], add_special_tokens=False, return_tensors="mlx", **given)
    model: Any = load_encoder_model(folder, model_remapping={"qwen3_vl": "qwen3_vl_embedding"})
    return np.array(model(**inputs).text_embeds)[0]


def close(vectors: Any, others: Any) -> None:
    np.testing.assert_allclose(vectors, others, atol=2e-5)


# Vectors.


def test_texts_and_images_get_the_vectors_that_mlx_vlm_gives_for_each_alone(
    folder: Path, runner: EmbeddingRunner
) -> None:
    (vectors,) = embed(runner, Embed(input=MIXED))
    close(vectors, [expected(folder, part) for part in MIXED])
    assert len({tuple(np.round(vector, 3)) for vector in vectors}) == len(MIXED)
    assert [sum(number**2 for number in vector) for vector in vectors] == pytest.approx([1] * len(MIXED))


def test_a_batch_gives_what_each_input_gets_alone_in_any_order(runner: EmbeddingRunner) -> None:
    assert runner.rows_together > 1
    alone = [embed(runner, Embed(input=[part]))[0][0] for part in MIXED]
    (forwards,), (backwards,) = embed(runner, Embed(input=MIXED)), embed(runner, Embed(input=MIXED[::-1]))
    close(forwards, alone)
    close(backwards[::-1], alone)


def test_requests_at_the_same_time_do_not_mix(runner: EmbeddingRunner) -> None:
    requests = [Embed(input=MIXED[at:] + MIXED[:at]) for at in range(4)]
    for request, vectors in zip(requests, embed(runner, *requests), strict=True):
        close(vectors, embed(runner, request)[0])


def test_a_text_after_an_image_does_not_take_its_positions(runner: EmbeddingRunner) -> None:
    (before,) = embed(runner, Embed(input=["the sea is wide"]))
    embed(runner, Embed(input=[image(5, 160, 160)]))
    close(embed(runner, Embed(input=["the sea is wide"]))[0], before)


def test_an_images_vector_is_cut_and_then_scaled(runner: EmbeddingRunner) -> None:
    (whole,), (cut,), (raw,) = embed(
        runner, Embed(input=[ONE]), Embed(input=[ONE], dimensions=5), Embed(input=[ONE], dimensions=5, normalize=False)
    )
    close(raw, whole[:5])
    close(cut, np.array(raw) / np.linalg.norm(raw))


def test_a_folder_that_does_not_scale_gives_images_as_they_are_unless_asked(tmp_path: Path) -> None:
    folder = write_vision_model(tmp_path / "raw", "qwen3_vl")
    add_modules(folder, "Transformer", "Pooling")
    raw, scaled = embed(open_runner(folder), Embed(input=[ONE, "a"], normalize=False), Embed(input=[ONE, "a"]))
    for vector, unit, part in zip(raw, scaled, (ONE, "a"), strict=True):
        assert abs(np.linalg.norm(vector) - 1) > 0.1
        close(np.array(vector) / np.linalg.norm(vector), unit)
        close(unit, expected(folder, part))


def test_a_folders_prompt_takes_the_place_of_the_instruction(tmp_path: Path) -> None:
    folder = write_vision_model(tmp_path / KNOWN_BY_NAME, "qwen3_vl")
    settings = {"prompts": {"query": "Find the same."}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    (vectors,) = embed(open_runner(folder), Embed(input=["the sea", ONE]))
    close(vectors, [expected(folder, part, "Find the same.") for part in ("the sea", ONE)])


def add_modules(folder: Path, *modules: str) -> None:
    """Write the files of sentence-transformers that mark an embedding model and its pooling."""
    listed = [
        {"type": f"sentence_transformers.models.{name}", "path": f"{at}_{name}"} for at, name in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "lasttoken"}))


# Reports.


def test_a_model_that_sees_says_so_and_a_load_says_all_of_it(folder: Path, runner: EmbeddingRunner) -> None:
    model = runner.model
    config = json.loads((folder / "config.json").read_text())
    assert model.capabilities == ["embed", "tokenize", "images"]
    assert (model.model_type, model.path) == (config["model_type"], str(folder))
    text = config["text_config"]
    assert (model.hidden_size, model.layers, model.vocab_size, model.context_len) == (
        text["hidden_size"], text["num_hidden_layers"], text["vocab_size"], text["max_position_embeddings"],
    )  # fmt: skip
    written = (folder / "model.safetensors").stat().st_size
    assert 0.8 * written < model.weights_bytes <= written


def test_tokens_are_those_of_the_conversation_that_an_input_is(folder: Path, runner: EmbeddingRunner) -> None:
    tokens, text = runner.tokenize(Tokenize(prompt="the sea"))
    assert DEFAULT_INSTRUCTION in text and "the sea" in text
    assert tokens == processor_of(folder).tokenizer.encode(text, add_special_tokens=False)


# What is refused.


def refused(runner: EmbeddingRunner, *parts: Part) -> RequestError:
    request = Embed(input=[*parts])
    with pytest.raises(RequestError) as error:
        runner.add(1, request, 0, prepared=gather(runner, request))
    assert len(embed(runner, Embed(input=["a", ONE]))[0]) == 2, "nothing of it is left"
    return error.value


@pytest.mark.parametrize(
    ("part", "code", "field"),
    [
        (ImagePart(Media(data="AAAA")), "invalid_request", "input[2].media.data"),
        (ImagePart(Media(data="")), "invalid_request", "input[2].media.data"),
        (ImagePart(Media(path="/etc/passwd")), "unsupported", "input[2].media.path"),
        (ImagePart(Media(url="http://127.0.0.1/x.png")), "unsupported", "input[2].media.url"),
        (image(1, 2010, 8), "invalid_request", "input[2].media"),
        ("", "invalid_request", "input[2]"),
        ("what is <|image_pad|>?", "invalid_request", "input[2]"),
        ("<|video_pad|>", "invalid_request", "input[2]"),
        ("the sea " * 4000, "context_overflow", "input[2]"),
    ],
)
def test_an_input_that_cannot_be_had_is_named_and_ends_its_request(
    runner: EmbeddingRunner, part: Part, code: str, field: str
) -> None:
    error = refused(runner, "a", ONE, part)
    assert (error.code, error.field) == (code, field)
    assert error.message.startswith(field)


def test_tokens_have_the_vector_of_their_text_and_hold_no_part_of_an_image(runner: EmbeddingRunner) -> None:
    tokens = runner.tokenize(Tokenize(prompt="the sea"))[0]
    ((given, text),) = embed(runner, Embed(input=[TokensPart(tokens), "the sea"]))
    close(given, text)
    assert isinstance(runner.network, VisionEmbeddingNetwork)
    for mark in runner.network.placeholder_tokens:
        error = refused(runner, "a", ONE, TokensPart([*tokens, mark]))
        assert (error.code, error.field) == ("invalid_request", "input[2].token_ids")


def test_images_are_read_as_the_host_allows(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("in/side.png", "outside.png"):
        pixels(1).save(tmp_path / name)
    allowed = MlxModelLoader(media=MediaPolicy(directories=(tmp_path / "in",), max_request_pixels=10_000))
    runner = open_runner(folder, allowed)
    (read,), (sent,) = embed(
        runner, Embed(input=[ImagePart(Media(path=str(tmp_path / "in" / "side.png")))]), Embed(input=[ONE])
    )
    close(read, sent)
    assert refused(runner, ImagePart(Media(path=str(tmp_path / "outside.png")))).field == "input[0].media.path"
    assert "10,000" in refused(runner, ONE, OTHER).message


def test_an_image_for_which_there_is_no_memory_is_refused(
    runner: EmbeddingRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = image(6, 256, 256)
    runner.add(1, request := Embed(input=[large]), 0, prepared=gather(runner, request))
    (outcome,) = runner.step()
    assert isinstance(outcome, EmbeddingOutput)
    need = step_bytes(runner.model, outcome.prompt_tokens) + IMAGE_TOKEN_BYTES * outcome.prompt_tokens
    monkeypatch.setattr(runner, "_budget", need - 1)
    error = refused(runner, large)
    assert (error.code, error.field) == ("out_of_memory", "input[0]")


def test_a_model_of_texts_refuses_an_image_and_says_what_it_can(tmp_path: Path) -> None:
    runner = open_runner(write_embedding_model(tmp_path / "bert"))
    request = Embed(input=["a", ONE])
    assert runner.prepare(request, pytest.fail) is None, "it is not even read"
    with pytest.raises(RequestError) as error:
        runner.add(1, request, 0)
    assert (error.value.code, error.value.field) == ("unsupported", "input[1]")
    assert str(tmp_path / "bert") in error.value.message and "embed, tokenize" in error.value.message


# Loading.


def test_a_model_whose_rows_do_not_run_together_runs_them_one_by_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = VisionEmbeddingNetwork.run

    def mixes_rows(self: VisionEmbeddingNetwork, ids: Any, mask: Any, rows: Any) -> Any:
        output = whole(self, ids, mask, rows)
        output.text_embeds = output.text_embeds[::-1]
        return output

    monkeypatch.setattr(VisionEmbeddingNetwork, "run", mixes_rows)
    runner = open_runner(folder)
    assert runner.rows_together == 1
    (vectors,) = embed(runner, Embed(input=["the sea", ONE]))
    close(vectors, [expected(folder, part) for part in ("the sea", ONE)])


@pytest.mark.parametrize(
    ("template", "words"),
    [("{{ raise_exception('no system role') }}", "template fails"), ("{{ messages[0].content }}", "0 places")],
)
def test_a_model_whose_template_shows_no_image_is_bad(tmp_path: Path, template: str, words: str) -> None:
    folder = write_vision_model(tmp_path / KNOWN_BY_NAME, "qwen3_vl")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": template}))
    with pytest.raises(RequestError, match=words) as error:
        open_runner(folder)
    assert error.value.code == "bad_model"


def test_a_chat_model_is_not_an_embedding_model(tmp_path: Path) -> None:
    folder = write_vision_model(tmp_path / "Qwen3-VL-2B-Instruct", "qwen3_vl")
    engine = MlxModelLoader()
    engine.prepare()
    runner = engine.open(Load(path=str(folder)), lambda *_: None, lambda: None)
    assert "embed" not in runner.model.capabilities


# On the wire.


def test_images_go_over_the_pipe_in_both_encodings(folder: Path) -> None:
    part = {"type": "image", "media": {"data": ONE.media.data}}
    with WorkerProcess() as worker:
        assert "images" in worker.load(folder)["capabilities"]
        request = {"cmd": "embed", "input": ["the sea", part], "dimensions": 6}
        done = worker.call({"id": "numbers", "encoding": "float", **request})
        assert (done["count"], done["dimensions"]) == (2, 6)
        text = worker.call({"id": "text", "cmd": "tokenize", "prompt": "the sea"})["count"]
        alone = worker.call({"id": "alone", "cmd": "embed", "input": [part]})["usage"]["prompt_tokens"]
        assert done["usage"]["prompt_tokens"] == text + alone
        worker.call({"id": "bytes", **request})
        numbers = {e["index"]: e["embedding"] for e in worker.of("numbers") if e["event"] == "embedding"}
        packed = {e["index"]: e["embedding"] for e in worker.of("bytes") if e["event"] == "embedding"}
        for index in (0, 1):
            close(np.frombuffer(base64.b64decode(packed[index]), "<f4"), numbers[index])
        broken = worker.call({"id": "broken", "cmd": "embed", "input": ["a", {**part, "media": {"data": "AAAA"}}]})
        assert (broken["code"], broken["field"]) == ("invalid_request", "input[1].media.data")
        assert worker.quit() == 0
