"""Qwen3-Omni over a real worker's pipes, and the models of mlx-vlm and mlx-audio that cannot be served."""

import json
from pathlib import Path

import mlx.core as mx
import pytest
from mlx_lm.models.cache import KVCache, RotatingKVCache
from mlx_vlm.models.gemma3n.config import TextConfig
from mlx_vlm.models.gemma3n.language import LanguageModel

from lmwire_protocol import Load, RequestError
from lmwire_worker.loading.model_kind import check_support
from lmwire_worker.loading.model_loader import MlxModelLoader
from lmwire_worker.models.local_models import find_in_folders
from random_model import write_model
from random_vision import write_vision_model
from support.media.reading_media import TONES, encoded, in_base64, picture
from support.process.worker_process import Event, WorkerProcess

pytestmark = pytest.mark.slow


def chat(id: str, *media: Event) -> Event:
    messages = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, *media]}]
    return {"id": id, "cmd": "chat", "messages": messages, "max_tokens": 6, "ignore_eos": True, "logprobs": True}


@pytest.mark.nightly  # test_wire.py sends sounds to another model
def test_qwen3_omni_sees_and_hears_through_the_worker(tmp_path: Path) -> None:
    image = {"type": "image", "media": {"data": in_base64(encoded(picture(size=(96, 64))))}}
    sound = {"type": "audio", "media": {"data": in_base64((TONES / "tone.flac").read_bytes())}}
    with WorkerProcess() as worker:
        loaded = worker.load(write_vision_model(tmp_path / "omni", "qwen3_omni_moe"))
        assert {"images", "sounds"} <= {*loaded["capabilities"]}
        asked = {"neither": (), "image": (image,), "sound": (sound,), "both": (image, sound)}
        counts = {id: worker.call(chat(id, *media))["usage"]["prompt_tokens"] for id, media in asked.items()}
    assert counts["both"] - counts["image"] == counts["sound"] - counts["neither"] > 0
    assert counts["image"] > counts["neither"]


def test_qwen3_omni_is_listed_and_loaded_without_the_part_that_speaks(tmp_path: Path) -> None:
    folder = write_vision_model(tmp_path / "omni", "qwen3_omni_moe")
    (listed,) = find_in_folders([str(folder)], check_support)
    assert (listed.problem, listed.context_len, listed.kind) == (None, 4096, "vision")
    loader = MlxModelLoader()
    loader.prepare()
    runner = loader.open(Load(path=str(folder)), lambda *progress: None, lambda: None)
    assert runner.model.weights_bytes < listed.size_bytes / 2


def gemma_3n() -> LanguageModel:
    mx.random.seed(0)
    config = TextConfig(
        model_type="gemma3n_text", hidden_size=64, num_hidden_layers=4, intermediate_size=[64] * 4, head_dim=16,  # pyright: ignore[reportArgumentType]
        vocab_size=128, vocab_size_per_layer_input=128, num_key_value_heads=2, laurel_rank=8, altup_num_inputs=2,
        hidden_size_per_layer_input=8, sliding_window=32, num_kv_shared_layers=2,
        layer_types=["sliding_attention", "full_attention"] * 2, activation_sparsity_pattern=[0.0] * 4,
    )  # fmt: skip
    return LanguageModel(config)


def logits(model: LanguageModel, *chunks: list[int]) -> mx.array:
    cache = [RotatingKVCache(32), KVCache()]
    return [model(mx.array([chunk]), cache=cache).logits[0, -1] for chunk in chunks][-1]


def test_mlx_vlms_gemma_3n_cannot_be_checked() -> None:
    """The reason why Gemma 3n is served as a text model. If this fails, mlx-vlm was mended: serve its images."""
    model, tokens = gemma_3n(), [*range(1, 30)]
    whole = logits(model, tokens)
    assert mx.abs(whole - logits(model, tokens[:10], tokens[10:])).max() > 0.1 * mx.std(whole)
    embedded = model(
        mx.array([tokens]),
        inputs_embeds=model.model.embed_tokens(mx.array([tokens])),
        per_layer_inputs=model.model.get_per_layer_inputs(mx.array([tokens])),
    ).logits[0, -1]
    assert mx.abs(model(mx.array([tokens])).logits[0, -1] - embedded).max() > 0.1 * mx.std(whole)


@pytest.mark.parametrize("model_type", ["voxtral", "voxtral_realtime"])
def test_voxtral_is_refused_by_its_type(tmp_path: Path, model_type: str) -> None:
    folder = write_model(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text()) | {"model_type": model_type}
    (folder / "config.json").write_text(json.dumps(config))
    (listed,) = find_in_folders([str(folder)], check_support)
    assert listed.problem and f"`{model_type}`" in listed.problem
    loader = MlxModelLoader()
    loader.prepare()
    with pytest.raises(RequestError, match=model_type) as refused:
        loader.open(Load(path=str(folder)), lambda *progress: None, lambda: None)
    assert refused.value.code in ("unsupported", "bad_model")
