"""Folders of models that bring code wherever a library might look for it. All of it leaves a mark when it runs."""

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any, Final

import mlx.core as mx

import random_model
import random_vision

AUTO_CLASSES: Final = (
    "AutoConfig", "AutoTokenizer", "AutoProcessor", "AutoImageProcessor", "AutoFeatureExtractor", "AutoVideoProcessor",
    "AutoModel", "AutoModelForCausalLM", "AutoModelForImageTextToText",
)  # fmt: skip
MODULE: Final = "brought"
SETTINGS: Final = (
    "config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json",
    "video_preprocessor_config.json", "feature_extractor_config.json", "generation_config.json",
)  # fmt: skip
PICKLES: Final = ("pytorch_model.bin", "model.pt", "model.pth", "vocab.pkl", "conds.pkl", "training_args.bin")
GOT: Final = {
    "model_type": "got",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "rms_norm_eps": 1e-6,
    "vocab_size": random_vision.VOCABULARY,
    "vision_config": {
        "embed_dim": 32, "depth": 1, "num_heads": 2, "img_size": 64, "out_chans": 32, "out_dim": 64,
        "global_attn_indexes": [0], "window_size": 2,
    },
}  # fmt: skip
"""Config of a model type whose processor in mlx-vlm always trusts the model's code."""


class Trap:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self._marker), "w")


def bring_code(folder: Path, marker: Path, types: tuple[str, ...] = ()) -> None:
    """Put code into a model's folder under every name that a library could import, and name it in all settings.

    Args:
        folder: The model's folder.
        marker: The file that the code creates.
        types: Model types that modules are named after.
    """
    classes = "".join(f"class {name}: pass\n" for name in ("Brought", "Model", "ModelArgs", "ModelConfig"))
    source = f"open({str(marker)!r}, 'w').close()\n{classes}"
    kinds = ("processing", "tokenization", "image_processing", "modeling", "configuration", "feature_extraction")
    names = {
        MODULE,
        "model",
        "__init__",
        "sitecustomize",
        "torch",
        "setup",
        *(f"{k}_{t}" for k in kinds for t in types),
    }
    for name in names:
        (folder / f"{name}.py").write_text(source)
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text(source)
    reference = f"{MODULE}.Brought"
    references: dict[str, Any] = dict.fromkeys(AUTO_CLASSES, reference)
    references["AutoTokenizer"] = [reference, reference]
    for name in SETTINGS:
        path = folder / name
        settings = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(settings | {"auto_map": references}))
    for name in PICKLES:
        (folder / name).write_bytes(pickle.dumps(Trap(marker)))
    for name in ("weights.npz", "speakers.npz"):
        (folder / name).write_bytes(_pickled_array(marker))


def write_hostile_model(folder: Path, marker: Path, model_type: str, *, base_type: str | None = None) -> Path:
    """Write a folder of a type, whose weights are not those of the type, and return it.

    Args:
        folder: Where to write.
        marker: The file that the code in it creates.
        model_type: The type in its config.json.
        base_type: Another type that its modules are named after.
    """
    folder.mkdir(parents=True)
    random_model.write_tokenizer(folder, 512)
    config = {"model_type": model_type, "vision_config": {"hidden_size": 8}, "text_config": {"hidden_size": 8}}
    (folder / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(folder / "model.safetensors"), {"vision.weight": mx.ones(8), "weight": mx.ones(8)})
    bring_code(folder, marker, tuple({model_type, base_type or model_type}))
    return folder


def write_hostile_got(folder: Path, marker: Path) -> Path:
    """Write a whole model of the type `got`, which lacks nothing to be loaded, and return its folder."""
    folder.mkdir(parents=True)
    random_model.write_tokenizer(folder, random_vision.VOCABULARY, (*random_model.SPECIAL, *random_vision.MARKS))
    config = json.loads(json.dumps(GOT))
    (folder / "config.json").write_text(json.dumps(config))
    random_vision.write_weights(folder, config, [0], 0)
    bring_code(folder, marker, ("got",))
    return folder


def _pickled_array(marker: Path) -> bytes:
    """Return a numpy archive with an array of objects, whose pickle creates the file `mark`."""
    import numpy as np

    array, file = io.BytesIO(), io.BytesIO()
    holder = np.empty(1, object)
    holder[0] = Trap(marker)
    np.save(array, holder, allow_pickle=True)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("array.npy", array.getvalue())
    return file.getvalue()
