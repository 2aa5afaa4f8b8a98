"""Write tiny models with random weights for mlx-vlm. All take images, and some take sounds.

As with `random_model`, what they say means nothing; but it depends on every image and every sound that they are given.
"""

import argparse
import hashlib
import importlib
import json
from pathlib import Path
from typing import Any, Final

import random_model
import vision_recipes
from random_model import END_OF_TURN, SPECIAL
from vision_recipes import FAMILIES, HEARING, VOCABULARY

__all__ = ["FAMILIES", "HEARING", "LARGER", "MARKS", "write_vision_model"]

MARKS: Final = (
    "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>",
    "<start_of_image>", "<end_of_image>", "<image_soft_token>",
    "<fake_token_around_image>", "<image>", "<global-img>", "<end_of_utterance>",
    "<|audio>", "<|audio|>", "<audio|>",
)  # fmt: skip
_TEMPLATE: Final = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}PLACE{% elif part.type == 'audio' %}SOUND{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
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
    source = b"".join(Path(file).read_bytes() for file in (__file__, vision_recipes.__file__, random_model.__file__))
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
    config: dict[str, Any] = {
        "model_type": family,
        "eos_token_id": vocabulary[END_OF_TURN],
        **traits["config"](vocabulary.__getitem__),
    }
    for name, value in overrides.items():
        config[name] = config[name] | value if isinstance(value, dict) else value
    processor = {"processor_class": traits["processor"]}
    _write(folder / "config.json", config)
    _write(folder / "preprocessor_config.json", processor | traits["pixels"] | (pixels or {}))
    _write(folder / "processor_config.json", processor | traits.get("settings", {}))
    write_weights(folder, config, [vocabulary[mark] for mark in MARKS], seed)
    return random_model.finish(folder, recipe)


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1))


def write_weights(folder: Path, config: dict[str, Any], silent: list[int], seed: int) -> None:
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
