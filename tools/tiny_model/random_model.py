"""Write tiny models with random weights, in the folder format that mlx-lm loads.

They speak in made-up syllables, which is enough to try the worker out and to test it: shapes, caches and tokenizers
are those of real architectures, and a whole model is a few kilobytes. Every Unicode text can be a prompt.
"""

import argparse
import hashlib
import importlib
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

SPECIAL: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END_OF_TURN: Final = SPECIAL[2]
CHAT_TEMPLATE: Final = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_LLAMA: Final = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
}
FAMILIES: Final[dict[str, dict[str, Any]]] = {
    "llama": _LLAMA,
    "qwen3": _LLAMA | {"architectures": ["Qwen3ForCausalLM"]},
    "gemma3_text": {
        "architectures": ["Gemma3ForCausalLM"],
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
        "rope_local_base_freq": 1e4,
        "query_pre_attn_scalar": 16,
        "sliding_window": 32,
        "sliding_window_pattern": 3,
        "max_position_embeddings": 4096,
    },
    "mamba": {
        "architectures": ["MambaForCausalLM"],
        "hidden_size": 64,
        "intermediate_size": 128,
        "state_size": 16,
        "num_hidden_layers": 2,
        "conv_kernel": 4,
        "use_bias": False,
        "use_conv_bias": True,
        "time_step_rank": 4,
        "tie_word_embeddings": True,
        "max_position_embeddings": 4096,
    },
    "qwen3_next": {
        "architectures": ["Qwen3NextForCausalLM"],
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "linear_conv_kernel_dim": 4,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 1,
        "shared_expert_intermediate_size": 64,
        "moe_intermediate_size": 64,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e4,
        "partial_rotary_factor": 0.25,
        "full_attention_interval": 4,
        "tie_word_embeddings": True,
        "max_position_embeddings": 4096,
    },
}
"""The config.json of each family. Keyword arguments of `write_model` override its fields."""


def write_model(
    folder: Path,
    family: str = "qwen3",
    *,
    dtype: str = "float32",
    quantize: tuple[int, int] | None = None,
    vocab_size: int = 512,
    printable: bool = True,
    end_scale: float = 1.3,
    seed: int = 0,
    special: tuple[str, ...] = SPECIAL,
    **overrides: Any,
) -> Path:
    """Write a model with random weights unless the same one is there, and return the folder.

    Args:
        folder: Receives the model. It is replaced if this function wrote another model into it.
        family: One of `FAMILIES`.
        dtype: Type of the weights: "float32" or "bfloat16".
        quantize: Bits and group size (32, 64 or 128, and a divisor of the layers' widths).
        vocab_size: Tokens, at least 272: every byte, syllables, the special ones.
        printable: Greedy text consists of syllables and spaces; off, of any bytes, which need not be valid UTF-8.
        end_scale: How eagerly the model ends its turn. 0: never, when greedy; 1: about as often as any other token.
        seed: Fixes the weights.
        special: The special tokens, those of `SPECIAL` among them.
        **overrides: Fields of config.json, for example `hidden_size=16`.
    """
    config = {"model_type": family, **FAMILIES[family], "vocab_size": vocab_size, **overrides}
    recipe = {"config": dict(config), "dtype": dtype, "quantize": quantize, "printable": printable}
    recipe |= {"end_scale": end_scale, "seed": seed, "special": special}
    recipe |= {"source": hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}
    if not begin(folder, recipe):
        return folder
    vocabulary = write_tokenizer(folder, vocab_size, special)
    config["eos_token_id"] = vocabulary[END_OF_TURN]
    silent = [
        token_id for text, token_id in vocabulary.items() if printable and (text in special or not _is_printable(text))
    ]
    scales = dict.fromkeys(silent, 0.1) | {vocabulary[END_OF_TURN]: end_scale}
    _write_weights(folder, config, scales, dtype=dtype, quantize=quantize, seed=seed)
    return finish(folder, recipe)


def write_custom_model(folder: Path, source: str, **config: Any) -> Path:
    """Write a model whose architecture is the Python code `source`, which loads only with trust_remote_code.

    The code defines `ModelArgs`, with a class method `from_dict(config)`, and `Model(args)`, an `mlx.nn.Module` with
    `layers` and `__call__(tokens, cache=None)`. Its one weight must be `weight`, float32 of shape [1].

    Args:
        folder: Receives the model.
        source: The Python code.
        **config: Fields of config.json.
    """
    config = {"vocab_size": 272, **config}
    recipe = {"source": source, "config": config}
    if not begin(folder, recipe):
        return folder
    import mlx.core as mx

    vocabulary = write_tokenizer(folder, config["vocab_size"])
    (folder / "model.py").write_text(source)
    fields = {"model_type": "custom", "model_file": "model.py", "hidden_size": 1, "num_hidden_layers": 1}
    fields |= {"max_position_embeddings": 4096, "eos_token_id": vocabulary[END_OF_TURN]}
    (folder / "config.json").write_text(json.dumps(fields | config, indent=1))
    mx.save_safetensors(str(folder / "model.safetensors"), {"weight": mx.ones(1)}, metadata={"format": "mlx"})
    return finish(folder, recipe)


RECIPE: Final = "random_model.json"


def begin(folder: Path, recipe: dict[str, Any]) -> bool:
    """Return whether the folder must be written, and create it for that.

    `finish` writes the recipe last, so an incomplete model never counts as written.

    Args:
        folder: The model's folder.
        recipe: All that decides the model.
    """
    marker = folder / RECIPE
    if marker.exists():
        if json.loads(marker.read_text()) == json.loads(json.dumps(recipe)):
            return False
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return True


def finish(folder: Path, recipe: dict[str, Any]) -> Path:
    """Mark a folder as complete, and return it.

    Args:
        folder: The model's folder.
        recipe: All that decides the model.
    """
    (folder / RECIPE).write_text(json.dumps(recipe))
    return folder


def syllables() -> Iterator[tuple[str, str]]:
    """Yield the endless merges of a byte-level BPE vocabulary: `k a`, then `Ġ ka`, then `ka lo` … (Ġ is a space)."""
    known: list[str] = []
    for consonant, vowel in itertools.product("klmnprstvbdgfhjz", "aoieu"):
        known.append(consonant + vowel)
        yield consonant, vowel
        yield "Ġ", known[-1]
    for size in itertools.count(1):
        heads = ["".join(parts) for parts in itertools.product(known, repeat=size)]
        yield from itertools.product(heads, known)


def write_tokenizer(folder: Path, vocab_size: int, special: tuple[str, ...] = SPECIAL, **fields: Any) -> dict[str, int]:
    """Write a tokenizer, and return its token ids by text.

    Args:
        folder: The model's folder.
        vocab_size: Number of tokens.
        special: The special tokens.
        **fields: Fields of tokenizer_config.json.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    if vocab_size < len(letters) + len(special):
        raise ValueError(f"vocab_size is {vocab_size}: it must hold {len(letters) + len(special)} tokens at least")
    merges = list(itertools.islice(syllables(), vocab_size - len(letters) - len(special)))
    vocabulary = {text: index for index, text in enumerate(letters + ["".join(merge) for merge in merges])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END_OF_TURN, "pad_token": SPECIAL[0]}
    config |= {"chat_template": CHAT_TEMPLATE, "clean_up_tokenization_spaces": False, **fields}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return tokenizer.get_vocab()


def _is_printable(token: str) -> bool:
    return token in ("Ġ", ".", ",") or (len(token) > 1 and token not in SPECIAL)


def _write_weights(
    folder: Path,
    config: dict[str, Any],
    scales: dict[int, float],
    *,
    dtype: str,
    quantize: tuple[int, int] | None,
    seed: int,
) -> None:
    import mlx.core as mx
    from mlx import nn
    from mlx.utils import tree_flatten

    architecture = importlib.import_module(f"mlx_lm.models.{config['model_type']}")
    mx.random.seed(seed)
    model = architecture.Model(architecture.ModelArgs.from_dict(config))
    weights = []
    parameters: Any = tree_flatten(model.parameters())
    for name, value in parameters:
        if value.ndim < 2 or "conv" in name or "A_log" in name:
            continue  # their initial values are what keeps a recurrent layer stable
        # With the usual small weights every greedy answer is one token over and over.
        wider = mx.random.normal(value.shape) * (3 / value.shape[-1] ** 0.5)
        if value.shape[0] == config["vocab_size"]:
            if config["model_type"] == "gemma3_text":
                wider /= 8  # it scales its embeddings itself
            for token, scale in scales.items():  # a row scaled down gives logits near 0, which greedy hardly picks
                wider[token] *= scale
        weights.append((name, wider))
    model.load_weights(weights, strict=False)
    model.set_dtype(getattr(mx, dtype))
    if quantize is not None:
        bits, group_size = quantize
        nn.quantize(model, group_size=group_size, bits=bits)
        config["quantization"] = {"bits": bits, "group_size": group_size}
    tensors = dict(tree_flatten(model.parameters()))
    if config["model_type"] == "gemma3_text":
        tensors = {name: value for name, value in tensors.items() if not name.startswith("lm_head")}  # it ties them
    mx.save_safetensors(str(folder / "model.safetensors"), tensors, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config, indent=1))


def main() -> None:
    """Write a model with the options of the command line."""
    parser = argparse.ArgumentParser(description="Write a tiny model with random weights: it answers in syllables.")
    parser.add_argument("folder", type=Path, metavar="OUT")
    parser.add_argument("--family", choices=FAMILIES, default="qwen3")
    parser.add_argument("--vocab-size", type=int, default=512, metavar="N", help="tokens (default: 512)")
    parser.add_argument("--layers", type=int, metavar="N", help="layers (default: the family's)")
    arguments = parser.parse_args()
    layers = {} if arguments.layers is None else {"num_hidden_layers": arguments.layers}
    print(write_model(arguments.folder, arguments.family, vocab_size=arguments.vocab_size, **layers))


if __name__ == "__main__":
    main()
