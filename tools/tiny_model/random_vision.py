"""Writes tiny models with random weights for mlx-vlm. All take images, and some take sounds.

As with `random_model`, what they say means nothing; but it depends on every image and every sound that they are given.
"""

import argparse
import hashlib
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import random_model
from random_model import END_OF_TURN, SPECIAL

MARKS: Final = (
    "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>",
    "<start_of_image>", "<end_of_image>", "<image_soft_token>",
    "<fake_token_around_image>", "<image>", "<global-img>", "<end_of_utterance>",
    "<|audio>", "<|audio|>", "<audio|>",
)  # fmt: skip
VOCABULARY: Final = 512
_TEMPLATE: Final = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}PLACE{% elif part.type == 'audio' %}SOUND{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_TEXT: Final = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
}
_ENCODER: Final = {"hidden_size": 32, "intermediate_size": 64}
_PIXELS: Final = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_SCALED: Final = _PIXELS | {"do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True}

Ids = Callable[[str], int]
"""A token's id."""


def _qwen_marks(ids: Ids) -> dict[str, Any]:
    return {
        "image_token_id": ids("<|image_pad|>"),
        "video_token_id": ids("<|video_pad|>"),
        "vision_start_token_id": ids("<|vision_start|>"),
        "vision_end_token_id": ids("<|vision_end|>"),
    }


def _qwen_pixels(patch: int) -> dict[str, Any]:
    merged = (2 * patch) ** 2
    return _PIXELS | {
        "image_processor_type": "Qwen2VLImageProcessor",
        "patch_size": patch,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "min_pixels": 4 * merged,
        "max_pixels": 64 * merged,
    }


def _qwen2_5_vl(ids: Ids) -> dict[str, Any]:
    encoder = {
        "depth": 2, "out_hidden_size": 64, "num_heads": 2, "patch_size": 14, "spatial_patch_size": 14,
        "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [1],
        "in_channels": 3, "in_chans": 3,
    }  # fmt: skip
    rope = {"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}
    vision = {"vision_token_id": ids("<|image_pad|>")}
    return _TEXT | rope | _qwen_marks(ids) | vision | {"vision_config": _ENCODER | encoder}


def _qwen3_vl(ids: Ids) -> dict[str, Any]:
    encoder = {
        "depth": 2, "out_hidden_size": 64, "num_heads": 2, "patch_size": 16, "spatial_merge_size": 2,
        "temporal_patch_size": 2, "in_channels": 3, "num_position_embeddings": 64, "deepstack_visual_indexes": [0],
    }  # fmt: skip
    rope = {"rope_type": "default", "type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    text = _TEXT | {"model_type": "qwen3_vl_text", "head_dim": 16, "rope_scaling": rope}
    return _qwen_marks(ids) | {"text_config": text, "vision_config": _ENCODER | encoder | {"model_type": "qwen3_vl"}}


def _qwen3_5(ids: Ids) -> dict[str, Any]:
    rope = {"type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0, "partial_rotary_factor": 0.25}
    text = _TEXT | {
        "model_type": "qwen3_5_text", "num_hidden_layers": 4, "head_dim": 32, "full_attention_interval": 4,
        "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 32,
        "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4, "rope_parameters": rope,
    }  # fmt: skip
    encoder = {
        "model_type": "qwen3_5", "depth": 2, "out_hidden_size": 64, "num_heads": 2, "patch_size": 16,
        "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3, "num_position_embeddings": 64,
        "deepstack_visual_indexes": [],
    }  # fmt: skip
    return _qwen_marks(ids) | {"text_config": text, "vision_config": _ENCODER | encoder}


def _gemma3(ids: Ids) -> dict[str, Any]:
    text = _TEXT | {
        "model_type": "gemma3_text", "num_hidden_layers": 3, "head_dim": 16, "query_pre_attn_scalar": 16,
        "sliding_window": 32, "sliding_window_pattern": 3, "mm_tokens_per_image": 4,
    }  # fmt: skip
    encoder = {"num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 14, "image_size": 56}
    return {
        "image_token_index": ids("<image_soft_token>"),
        "boi_token_index": ids("<start_of_image>"),
        "eoi_token_index": ids("<end_of_image>"),
        "mm_tokens_per_image": 4,
        "hidden_size": 64,
        "vocab_size": VOCABULARY,
        "text_config": text,
        "vision_config": _ENCODER | encoder | {"model_type": "siglip_vision_model"},
    }


def _smolvlm(ids: Ids) -> dict[str, Any]:
    encoder = {"num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 14, "image_size": 56}
    return {
        "image_token_id": ids("<image>"),
        "scale_factor": 2,
        "vocab_size": VOCABULARY,
        "text_config": _TEXT | {"model_type": "llama", "head_dim": 16},
        "vision_config": _ENCODER | encoder | {"model_type": "smolvlm_vision"},
    }


def _gemma4(ids: Ids) -> dict[str, Any]:
    text = _TEXT | {
        "model_type": "gemma4_text", "num_hidden_layers": 4, "head_dim": 16, "global_head_dim": 32,
        "layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 32, "num_kv_shared_layers": 2,
        "vocab_size_per_layer_input": VOCABULARY, "hidden_size_per_layer_input": 8, "use_double_wide_mlp": False,
    }  # fmt: skip
    encoder = {
        "model_type": "gemma4_vision", "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
        "head_dim": 16, "global_head_dim": 16, "patch_size": 8, "pooling_kernel_size": 2, "default_output_length": 16,
        "position_embedding_size": 64,
    }  # fmt: skip
    listener = {
        "model_type": "gemma4_audio", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "subsampling_conv_channels": [8, 4], "output_proj_dims": 48,
    }  # fmt: skip
    return {
        "image_token_id": ids("<image>"),
        "audio_token_id": ids("<|audio|>"),
        "boi_token_id": ids("<start_of_image>"),
        "eoi_token_id": ids("<end_of_image>"),
        "boa_token_id": ids("<|audio>"),
        "eoa_token_id": ids("<audio|>"),
        "hidden_size": 64,
        "vocab_size": VOCABULARY,
        "text_config": text,
        "vision_config": _ENCODER | encoder,
        "audio_config": listener,
    }


def _gemma4_unified(ids: Ids) -> dict[str, Any]:
    config = _gemma4(ids)
    text = {
        "model_type": "gemma4_unified_text", "num_kv_shared_layers": 0, "hidden_size_per_layer_input": 0,
        "num_global_key_value_heads": 1, "use_bidirectional_attention": None,
    }  # fmt: skip
    encoder = {
        "model_type": "gemma4_unified_vision", "patch_size": 8, "pooling_kernel_size": 2, "model_patch_size": 16,
        "mm_embed_dim": 48, "mm_posemb_size": 64, "num_soft_tokens": 16, "output_proj_dims": 48,
    }  # fmt: skip
    listener = {"model_type": "gemma4_unified_audio"}
    return config | {"text_config": config["text_config"] | text, "vision_config": encoder, "audio_config": listener}


_GEMMA_MARKS: Final = {
    "image_token": "<image_soft_token>",
    "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>",
}
_GEMMA4_MARKS: Final = {
    "image_token": "<image>",
    "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>",
    "audio_token": "<|audio|>",
    "boa_token": "<|audio>",
    "eoa_token": "<audio|>",
}
_SMOL_MARKS: Final = {
    "fake_image_token": "<fake_token_around_image>",
    "image_token": "<image>",
    "global_image_token": "<global-img>",
    "end_of_utterance_token": "<end_of_utterance>",
}
_SIDE: Final = {"longest_edge": 56}
FAMILIES: Final[dict[str, dict[str, Any]]] = {
    "qwen2_5_vl": {
        "config": _qwen2_5_vl,
        "place": "<|vision_start|><|image_pad|><|vision_end|>",
        "processor": "Qwen2_5_VLProcessor",
        "pixels": _qwen_pixels(14),
    },
    "qwen3_vl": {
        "config": _qwen3_vl,
        "place": "<|vision_start|><|image_pad|><|vision_end|>",
        "processor": "Qwen3VLProcessor",
        "pixels": _qwen_pixels(16),
    },
    "qwen3_5": {
        "config": _qwen3_5,
        "place": "<|vision_start|><|image_pad|><|vision_end|>",
        "processor": "Qwen3VLProcessor",
        "pixels": _qwen_pixels(16),
    },
    "gemma3": {
        "config": _gemma3,
        "place": "<start_of_image>",
        "processor": "Gemma3Processor",
        "settings": {"image_seq_length": 4},
        "pixels": _SCALED | {"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 56, "width": 56}},
        "marks": _GEMMA_MARKS,
    },
    "smolvlm": {
        "config": _smolvlm,
        "place": "<image>",
        "processor": "SmolVLMProcessor",
        "settings": {"image_seq_len": 4},
        "pixels": _SCALED
        | {"image_processor_type": "SmolVLMImageProcessor", "size": _SIDE, "max_image_size": _SIDE}
        | {"do_image_splitting": False, "do_pad": True},
        "marks": _SMOL_MARKS,
    },
    "gemma4": {
        "config": _gemma4,
        "place": "<image>",
        "sound": "<|audio|>",
        "processor": "Gemma4Processor",
        "settings": {"image_processor": {"patch_size": 8, "pooling_kernel_size": 2, "max_soft_tokens": 16}},
        "pixels": {},
        "marks": _GEMMA4_MARKS,
    },
    "gemma4_unified": {
        "config": _gemma4_unified,
        "place": "<image>",
        "sound": "<|audio|>",
        "processor": "Gemma4UnifiedProcessor",
        "settings": {"image_processor": {"patch_size": 8, "pooling_kernel_size": 2, "max_soft_tokens": 16}},
        "pixels": {},
        "marks": _GEMMA4_MARKS,
    },
}
HEARING: Final = ("gemma4", "gemma4_unified")
"""The families that also take sounds."""


LARGER: Final = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "rope_scaling": {"mrope_section": [8, 12, 12]},
    "vision_config": {"hidden_size": 128, "intermediate_size": 256, "num_heads": 4, "out_hidden_size": 256},
}
"""Overrides that make a qwen2_5_vl of 3M parameters, for measurements: its work outweighs what surrounds it, and yet
takes no more than seconds for a photo where matrices are multiplied by a plain BLAS on a CPU."""


def write_vision_model(
    folder: Path,
    family: str = "qwen2_5_vl",
    *,
    seed: int = 0,
    pixels: dict[str, Any] | None = None,
    **overrides: Any,
) -> Path:
    """Write a float32 model with random weights unless the same one is there, and return the folder.

    Args:
        folder: Where to write; replaced when it holds anything else that this function wrote.
        family: One of `FAMILIES`.
        seed: Of the weights.
        pixels: Fields of preprocessor_config.json that differ from the family's.
        **overrides: Fields of config.json; those of objects in it are merged.
    """
    source = b"".join(Path(file).read_bytes() for file in (__file__, random_model.__file__))
    recipe = {
        "family": family,
        "seed": seed,
        "pixels": pixels,
        "overrides": overrides,
        "source": hashlib.sha256(source).hexdigest(),
    }
    if not random_model.begin(folder, recipe):
        return folder
    traits = FAMILIES[family]
    template = _TEMPLATE.replace("PLACE", traits["place"]).replace("SOUND", traits.get("sound", ""))
    marks = traits.get("marks", {})
    vocabulary = random_model.write_tokenizer(
        folder, VOCABULARY, (*SPECIAL, *MARKS), chat_template=template, extra_special_tokens=marks, **marks
    )
    config = {"model_type": family, "eos_token_id": vocabulary[END_OF_TURN], **traits["config"](vocabulary.__getitem__)}
    for name, value in overrides.items():
        config[name] = config[name] | value if isinstance(value, dict) else value
    processor = {"processor_class": traits["processor"]}
    _write(folder / "config.json", config)
    _write(folder / "preprocessor_config.json", processor | traits["pixels"] | (pixels or {}))
    _write(folder / "processor_config.json", processor | traits.get("settings", {}))
    _write_weights(folder, config, [vocabulary[mark] for mark in MARKS], seed)
    return random_model.finish(folder, recipe)


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1))


def _write_weights(folder: Path, config: dict[str, Any], silent: list[int], seed: int) -> None:
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_vlm.utils import update_module_configs

    mx.random.seed(seed)  # biases keep their initial values
    architecture = importlib.import_module(f"mlx_vlm.models.{config['model_type']}")
    own = json.loads(json.dumps(config))  # it is changed
    settings = architecture.ModelConfig.from_dict(own)
    model = architecture.Model(update_module_configs(settings, architecture, own, ["text", "vision", "audio"]))
    parameters: Any = tree_flatten(model.parameters())
    wider: list[tuple[str, mx.array]] = []
    for name, value in parameters:
        if value.ndim < 2 or "conv1d" in name:
            continue  # their initial values are what keeps a recurrent layer stable
        # With the usual small weights every greedy answer is one token over and over. What is seen has to be as loud.
        scale = 8 if "merger" in name or "embedding_projection" in name else 2
        weight = mx.random.normal(value.shape) * (scale / (value.size / value.shape[0]) ** 0.5)
        if value.shape[0] == VOCABULARY:
            weight[mx.array(silent)] *= 0.1  # a trained model says none of its marks for images
        wider.append((name, weight))
    model.load_weights(wider, strict=False)
    tensors: Any = dict(tree_flatten(model.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), tensors, metadata={"format": "mlx"})


def main() -> None:
    """Write a model with the options of the command line."""
    parser = argparse.ArgumentParser(description="Write a model that sees with random weights, to measure with.")
    parser.add_argument("folder", type=Path, metavar="OUT")
    folder = parser.parse_args().folder
    print(write_vision_model(folder, pixels={"max_pixels": 1024 * 28 * 28}, **LARGER))  # a photo is not made small


if __name__ == "__main__":
    main()
