"""Tiny vision models of further families, to test what is special about their processors and encoders."""

from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from random_vision import FAMILIES, write_vision_model
from support.models.talking_vision import rename_placeholders

_TEXT: Final = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "max_position_embeddings": 4096,
}
_ENCODER: Final = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "patch_size": 14,
    "image_size": 56,
}
_CLIP: Final = _ENCODER | {"model_type": "clip_vision_model", "projection_dim": 64}
_SIGLIP: Final = _ENCODER | {"model_type": "siglip_vision_model", "projection_dim": 64}
_PIXTRAL: Final = _ENCODER | {"model_type": "pixtral", "head_dim": 16, "image_size": 112}
_GLM: Final = {
    "model_type": "glm4v", "depth": 2, "num_heads": 2, "hidden_size": 32, "intermediate_size": 64, "patch_size": 14,
    "out_hidden_size": 64, "image_size": 56,
}  # fmt: skip
_LLAMA4: Final = _ENCODER | {
    "model_type": "llama4_vision_model", "initializer_range": 0.02, "norm_eps": 1e-5, "num_channels": 3,
    "pixel_shuffle_ratio": 0.5, "projector_dropout": 0.0, "projector_input_dim": 64, "projector_output_dim": 64,
    "rope_theta": 10000.0, "vision_feature_layer": -1, "vision_feature_select_strategy": "default",
    "vision_output_dim": 64, "intermediate_size": 128,
}  # fmt: skip
_EXPERTS: Final = {
    "intermediate_size_mlp": 64, "num_local_experts": 2, "no_rope_layers": [1, 0], "attention_chunk_size": 64,
    "interleave_moe_layer_step": 1, "head_dim": 16,
}  # fmt: skip
_SIDES: Final = {"height": 56, "width": 56}
_SCALED: Final = {
    "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_resize": True, "do_rescale": True,
    "rescale_factor": 1 / 255, "do_normalize": True,
}  # fmt: skip
_CLIP_PIXELS: Final = _SCALED | {"size": {"shortest_edge": 56}, "crop_size": _SIDES, "do_center_crop": True}
_GRID: Final = {"image_grid_pinpoints": [[56, 56], [56, 112], [112, 56], [112, 112]]}
_PIXTRAL_MARKS: Final = {
    "image_token": "<image>",
    "image_break_token": "<|vision_start|>",
    "image_end_token": "<|vision_end|>",
}
_LLAVA: Final = {"patch_size": 14, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}


def _family(
    processor: str,
    pixels: dict[str, Any],
    text: dict[str, Any],
    encoder: dict[str, Any],
    *,
    placeholder: str = "<image>",
    settings: dict[str, Any] | None = None,
    **config: Any,
) -> dict[str, Any]:
    """Return the description of a family for `write_vision_model`. Each image is written as one mark."""

    def describe(ids: Any) -> dict[str, Any]:
        tokens = {
            "image_token_index": ids(placeholder),
            "image_token_id": ids(placeholder),
            "video_token_id": ids("<|video_pad|>"),
        }
        edges = {"vision_start_token_id": ids("<|vision_start|>"), "vision_end_token_id": ids("<|vision_end|>")}
        more = {"vocab_size": 512, "hidden_size": 64, "projection_dim": 64}
        return tokens | edges | more | {"text_config": _TEXT | text, "vision_config": encoder} | config

    return {
        "config": describe,
        "place": placeholder,
        "processor": processor,
        "settings": settings or {},
        "pixels": pixels,
    }


MORE: Final[dict[str, dict[str, Any]]] = {
    "llava": _family(
        "LlavaProcessor",
        _CLIP_PIXELS | {"image_processor_type": "CLIPImageProcessor"},
        {"model_type": "llama"},
        _CLIP,
        settings=_LLAVA,
    ),
    "llava_next": _family(
        "LlavaNextProcessor",
        _CLIP_PIXELS | _GRID | {"image_processor_type": "LlavaNextImageProcessor"},
        {"model_type": "llama"},
        _CLIP,
        settings=_LLAVA,
    ),
    "llava_onevision": _family(
        "LlavaOnevisionProcessor",
        _SCALED | _GRID | {"image_processor_type": "LlavaOnevisionImageProcessor", "size": _SIDES},
        {"model_type": "qwen2"},
        _SIGLIP,
        settings={"num_image_tokens": 16, "vision_feature_select_strategy": "full"},
        image_grid_pinpoints=_GRID["image_grid_pinpoints"],
    ),
    "paligemma": _family(
        "PaliGemmaProcessor",
        _SCALED | {"image_processor_type": "SiglipImageProcessor", "size": _SIDES, "image_seq_length": 16},
        {"model_type": "gemma", "head_dim": 16},
        _SIGLIP,
    )
    | {"marks": {"bos_token": "<global-img>"}},
    "idefics3": _family(
        "Idefics3Processor",
        _SCALED
        | {"image_processor_type": "Idefics3ImageProcessor", "size": {"longest_edge": 56}, "do_pad": True}
        | {"max_image_size": {"longest_edge": 56}, "do_image_splitting": False},
        {"model_type": "llama"},
        _ENCODER | {"model_type": "idefics3"},
        settings={"image_seq_len": 4},
        scale_factor=2,
    ),
    "pixtral": _family(
        "PixtralProcessor",
        _SCALED | {"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 112}, "patch_size": 14},
        {"model_type": "mistral", "head_dim": 16},
        _PIXTRAL,
        settings=_PIXTRAL_MARKS | {"patch_size": 14},
    ),
    "mistral3": _family(
        "PixtralProcessor",
        _SCALED | {"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 112}, "patch_size": 28},
        {"model_type": "mistral", "head_dim": 16},
        _PIXTRAL,
        settings=_PIXTRAL_MARKS | {"patch_size": 14, "spatial_merge_size": 2},
        spatial_merge_size=2,
    ),
    "internvl_chat": _family(
        "InternVLChatProcessor",
        _SCALED | {"image_processor_type": "InternVLImageProcessor", "size": _SIDES},
        {"model_type": "qwen2"},
        _ENCODER | {"model_type": "intern_vit_6b"},
        placeholder="<image_soft_token>",
        settings={"num_image_token": 4},
    )
    | {"place": "<image>"},
    "glm4v": _family(
        "Glm4vProcessor",
        _SCALED
        | {"image_processor_type": "Glm4vImageProcessor", "patch_size": 14, "merge_size": 2, "temporal_patch_size": 2}
        | {"size": {"shortest_edge": 4 * 28**2, "longest_edge": 64 * 28**2}},
        {"model_type": "glm4v_text", "rope_scaling": {"rope_type": "default", "mrope_section": [2, 1, 1]}},
        _GLM,
    )
    | {"marks": {"image_token": "<image>", "video_token": "<|video_pad|>"}},
    "llama4": _family(
        "Llama4Processor",
        _SCALED | {"image_processor_type": "Llama4ImageProcessorFast", "size": _SIDES, "max_patches": 1},
        {"model_type": "llama4_text"} | _EXPERTS,
        _LLAMA4,
        settings={"patch_size": 14, "pixel_shuffle_ratio": 0.5},
    ),
}
_OTHER_NAMES: Final = {
    "internvl_chat": {
        "<image_soft_token>": "<IMG_CONTEXT>",
        "<start_of_image>": "<img>",
        "<end_of_image>": "</img>",
        "<image>": "<unused>",
    }
}
"""New texts of marks, for families whose processors require those texts."""


def write_another_vision_model(folder: Path, family: str) -> Path:
    """Write a model of a family in `MORE` to a new folder, and return the folder."""
    with patch.dict(FAMILIES, MORE):
        write_vision_model(folder, family)
    rename_placeholders(folder, _OTHER_NAMES.get(family, {}))
    return folder
