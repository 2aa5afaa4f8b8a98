"""Configurations of tiny models for mlx-vlm, by family."""

from collections.abc import Callable
from typing import Any, Final

VOCABULARY: Final = 512
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


def _qwen3_omni_moe(ids: Ids) -> dict[str, Any]:
    rope = {"rope_type": "default", "type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    text = _TEXT | {
        "model_type": "qwen3_omni_moe_text", "head_dim": 16, "rope_scaling": rope, "num_experts": 4,
        "num_experts_per_tok": 2, "decoder_sparse_step": 1, "mlp_only_layers": [], "moe_intermediate_size": 32,
    }  # fmt: skip
    encoder = {
        "depth": 2, "out_hidden_size": 64, "num_heads": 2, "patch_size": 16, "spatial_patch_size": 16,
        "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3, "in_chans": 3,
        "num_position_embeddings": 64, "deepstack_visual_indexes": [0],
        "model_type": "qwen3_omni_moe_vision_encoder",
    }  # fmt: skip
    listener = {
        "d_model": 32, "encoder_layers": 2, "num_hidden_layers": 2, "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64, "num_mel_bins": 128, "output_dim": 64, "downsample_hidden_size": 8, "n_window": 50,
        "n_window_infer": 100,
    }  # fmt: skip
    thinker = {
        "model_type": "qwen3_omni_moe_thinker",
        "audio_token_id": ids("<|audio|>"),
        "audio_start_token_id": ids("<|audio>"),
        "audio_end_token_id": ids("<audio|>"),
        "text_config": text,
        "vision_config": _ENCODER | encoder,
        "audio_config": listener,
    }
    speaker = {
        "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 16, "vocab_size": 32,
        "decoder_dim": 32, "codebook_dim": 16, "codebook_size": 16,
    }  # fmt: skip
    return {
        "thinker_config": _qwen_marks(ids) | thinker,
        "talker_config": {"text_config": text, "code_predictor_config": speaker | {"layer_types": ["full_attention"]}},
        "code2wav_config": speaker,
    }


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
_OMNI_MARKS: Final = {
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
    "audio_token": "<|audio|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    "audio_bos_token": "<|audio>",
    "audio_eos_token": "<audio|>",
}
_MEL: Final = {
    "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 128, "sampling_rate": 16_000,
    "hop_length": 160, "n_fft": 400, "chunk_length": 30, "return_attention_mask": True,
}  # fmt: skip
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
    "qwen3_omni_moe": {
        "config": _qwen3_omni_moe,
        "place": "<|vision_start|><|image_pad|><|vision_end|>",
        "sound": "<|audio><|audio|><audio|>",
        "processor": "Qwen3OmniMoeProcessor",
        "pixels": _qwen_pixels(16) | _MEL,
        "marks": _OMNI_MARKS,
    },
}
HEARING: Final = ("gemma4", "gemma4_unified", "qwen3_omni_moe")
"""The families that also take sounds."""
