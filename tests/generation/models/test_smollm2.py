"""A GGUF file becomes a model folder."""

import json
from functools import reduce
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from lmwire_protocol import Generate
from lmwire_worker.models.smollm2 import convert
from random_model import SPECIAL, write_model
from support.runners.generation_runners import ask, open_runner

pytestmark = pytest.mark.slow

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.layers": "blk",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model", "llama", dtype="float32")


@pytest.fixture
def gguf(folder: Path, tmp_path: Path) -> Path:
    """Write a model as llama.cpp does: with other names, and with the halves of each rotated pair side by side."""
    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = dict(sorted((id, token) for token, id in tokenizer["model"]["vocab"].items()))
    tokens |= {added["id"]: added["content"] for added in tokenizer["added_tokens"]}
    special = [token for token in tokens.values() if token in SPECIAL]
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    arrays: dict[str, mx.array] = {}
    loaded: Any = mx.load(str(folder / "model.safetensors"))
    for name, array in loaded.items():
        renamed = reduce(lambda made, names: made.replace(*names), NAMES.items(), name)
        count = heads.get(renamed.split(".")[2], 0) if renamed.startswith("blk.") else 0
        pairs = array.reshape(count, 2, array.shape[0] // count // 2, -1).swapaxes(1, 2) if count else array
        arrays[renamed] = mx.contiguous(pairs.reshape(array.shape))
    ids = {token: id for id, token in tokens.items()}
    kinds = [3 if token in special else 1 for token in tokens.values()]
    numbers = {
        "llama.embedding_length": config["hidden_size"],
        "llama.feed_forward_length": config["intermediate_size"],
        "llama.block_count": config["num_hidden_layers"],
        "llama.attention.head_count": config["num_attention_heads"],
        "llama.attention.head_count_kv": config["num_key_value_heads"],
        "llama.context_length": config["max_position_embeddings"],
        "llama.vocab_size": config["vocab_size"],
        "tokenizer.ggml.bos_token_id": ids[SPECIAL[1]],
        "tokenizer.ggml.eos_token_id": ids[SPECIAL[2]],
        "tokenizer.ggml.unknown_token_id": ids[SPECIAL[0]],
        "tokenizer.ggml.padding_token_id": ids[SPECIAL[0]],
    }
    metadata: dict[str, Any] = {
        **{name: mx.array(number, dtype=mx.uint32) for name, number in numbers.items()},
        "llama.attention.layer_norm_rms_epsilon": mx.array(config["rms_norm_eps"]),
        "llama.rope.freq_base": mx.array(config["rope_theta"]),
        "tokenizer.ggml.tokens": [*tokens.values()],
        "tokenizer.ggml.token_type": mx.array(kinds, dtype=mx.int32),
        "tokenizer.ggml.merges": [" ".join(merge) for merge in tokenizer["model"]["merges"]],
        "general.license": "apache-2.0",
        "tokenizer.chat_template": json.loads((folder / "tokenizer_config.json").read_text())["chat_template"],
    }
    mx.save_gguf(str(tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf"), arrays, metadata)
    return tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_the_folder_answers_as_the_model_from_which_the_file_was_made(gguf: Path, folder: Path, tmp_path: Path) -> None:
    convert(gguf, tmp_path / "converted")
    sampling = json.loads((tmp_path / "converted/generation_config.json").read_text())
    assert sampling == {"do_sample": True, "temperature": 0.2, "top_p": 0.9}, "a server's default, with sense"
    card = (tmp_path / "converted/README.md").read_text()
    assert card == "---\nlicense: apache-2.0\n---\n", "what /api/show reports"
    before, after = open_runner(folder), open_runner(tmp_path / "converted")
    for prompt in ("ka lo mi", "<|im_start|>user\nru se<|im_end|>\n"):
        request = Generate(prompt=prompt, max_tokens=12)
        assert ask(after, request) == ask(before, request)
