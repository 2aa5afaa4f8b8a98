"""Write SmolLM2-135M-Instruct as a model folder, from the GGUF file of a Python package.

`mx.load` reads its weights in 4 bits as MLX's quantized arrays. Names, the order of some rows, the tokenizer and the
configuration differ.
"""

import json
from pathlib import Path
from typing import Any, Final

_NAMES: Final = {
    "token_embd.": "model.embed_tokens.",
    "output_norm.": "model.norm.",
    "blk.": "model.layers.",
    ".attn_norm.": ".input_layernorm.",
    ".attn_output.": ".self_attn.o_proj.",
    ".attn_q.": ".self_attn.q_proj.",
    ".attn_k.": ".self_attn.k_proj.",
    ".attn_v.": ".self_attn.v_proj.",
    ".ffn_norm.": ".post_attention_layernorm.",
    ".ffn_gate.": ".mlp.gate_proj.",
    ".ffn_up.": ".mlp.up_proj.",
    ".ffn_down.": ".mlp.down_proj.",
}
_CONTROL: Final = 3
"""Type of a token that marks something, such as the end of a turn."""
_SAMPLING: Final = {"do_sample": True, "temperature": 0.2, "top_p": 0.9}
"""Sampling that the model's makers advise. At a temperature of 1, a model of this size writes nonsense."""
_GROUP: Final = 32
"""Weights that share a scale, in GGUF's Q4_1 and Q8_0."""


def convert(gguf: Path, folder: Path) -> None:
    """Write the model folder of a GGUF file.

    Scales, and weights without any, are float32 where the processor computes, since it is slower with halves.

    Args:
        gguf: The file of a model of Llama's architecture whose tokenizer is SmolLM2's.
        folder: The folder to write, which does not exist.

    Raises:
        OSError: The folder cannot be written.
        RuntimeError: The file cannot be read.
    """
    import mlx.core as mx

    loaded: Any = mx.load(str(gguf), return_metadata=True)
    arrays, metadata = loaded
    facts: dict[str, Any] = {
        name: value.item() if isinstance(value, mx.array) and value.size == 1 else value
        for name, value in metadata.items()
    }
    dtype = mx.float32 if mx.default_device() == mx.cpu else mx.float16
    heads = {"attn_q": facts["llama.attention.head_count"], "attn_k": facts["llama.attention.head_count_kv"]}
    weights: dict[str, mx.array] = {}
    for name, array in arrays.items():
        part = name.split(".")[2] if name.startswith("blk.") else ""
        ordered = _in_order(array, heads[part]) if part in heads else array
        weights[_renamed(name)] = ordered.astype(dtype) if mx.issubdtype(array.dtype, mx.floating) else ordered
    bits = {name: _bits(name, weights) for name in weights if name.endswith(".scales")}
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(_config(facts, bits), indent=1))
    (folder / "generation_config.json").write_text(json.dumps(_SAMPLING, indent=1))
    (folder / "tokenizer_config.json").write_text(json.dumps(_tokenizer_config(facts), indent=1))
    _tokenizer(facts).save(str(folder / "tokenizer.json"))
    if licence := facts.get("general.license"):
        (folder / "README.md").write_text(f"---\nlicense: {licence}\n---\n")


def _bits(scales: str, weights: dict[str, Any]) -> int:
    """Return the bits of a quantized weight: as many as fit the packed 32-bit words."""
    packed, groups = weights[f"{scales.removesuffix('scales')}weight"], weights[scales]
    return 32 * packed.shape[-1] // (_GROUP * groups.shape[-1])


def _renamed(name: str) -> str:
    for theirs, ours in _NAMES.items():
        name = name.replace(theirs, ours)
    return name


def _in_order(array: Any, heads: int) -> Any:
    """Return the rows of queries or keys in Hugging Face's order: GGUF interleaves the halves that RoPE rotates."""
    rows = array.shape[0] // heads
    return array.reshape(heads, rows // 2, 2, -1).swapaxes(1, 2).reshape(array.shape)


def _config(facts: dict[str, Any], bits: dict[str, int]) -> dict[str, Any]:
    modules = {name.removesuffix(".scales"): {"group_size": _GROUP, "bits": count} for name, count in bits.items()}
    quantization = {"quantization": {"group_size": _GROUP, "bits": min(bits.values()), **modules}} if bits else {}
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": facts["llama.embedding_length"],
        "intermediate_size": facts["llama.feed_forward_length"],
        "num_hidden_layers": facts["llama.block_count"],
        "num_attention_heads": facts["llama.attention.head_count"],
        "num_key_value_heads": facts["llama.attention.head_count_kv"],
        "rms_norm_eps": facts["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": facts["llama.rope.freq_base"],
        "max_position_embeddings": facts["llama.context_length"],
        "vocab_size": facts["llama.vocab_size"],
        "bos_token_id": facts["tokenizer.ggml.bos_token_id"],
        "eos_token_id": facts["tokenizer.ggml.eos_token_id"],
        "tie_word_embeddings": True,
        **quantization,
    }


def _tokenizer_config(facts: dict[str, Any]) -> dict[str, Any]:
    tokens = facts["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "GPT2Tokenizer",
        "bos_token": tokens[facts["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[facts["tokenizer.ggml.eos_token_id"]],
        "unk_token": tokens[facts["tokenizer.ggml.unknown_token_id"]],
        "pad_token": tokens[facts["tokenizer.ggml.padding_token_id"]],
        "model_max_length": facts["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
        "chat_template": facts["tokenizer.chat_template"],
    }


def _tokenizer(facts: dict[str, Any]) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = facts["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    tokenizer: Any = Tokenizer(models.BPE(vocab={token: id for id, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = facts["tokenizer.ggml.token_type"].tolist()
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    return tokenizer
