"""Measure models of several sizes on several numbers of ranks, and plot the curves.

`python tools/tiny_model/rank_curve.py OUT` does all of it.
It writes models with random weights in the shapes of Qwen3, one after the other, and runs `lmwire bench ranks` on
each. OUT.json has the results of all, and OUT.png the curves. A model takes its size on the disk while it is measured.
"""

import argparse
import json
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from random_model import write_tokenizer

VOCABULARY: Final = 151_936
_QWEN3: Final[dict[str, Any]] = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": VOCABULARY,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "max_position_embeddings": 40_960,
    "tie_word_embeddings": False,
}
_FIELDS: Final = ("hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads")
_TIED: Final = {"tie_word_embeddings": True}
SHAPES: Final[dict[str, dict[str, Any]]] = {
    "tiny": dict(zip(_FIELDS, (256, 4, 512, 8), strict=True)) | _TIED | {"head_dim": 32, "vocab_size": 512},
    "0.6B": dict(zip(_FIELDS, (1024, 28, 3072, 16), strict=True)) | _TIED,
    "4B": dict(zip(_FIELDS, (2560, 36, 9728, 32), strict=True)) | _TIED,
    "8B": dict(zip(_FIELDS, (4096, 36, 12_288, 32), strict=True)),
    "32B": dict(zip(_FIELDS, (5120, 64, 25_600, 64), strict=True)),
}
"""Fields of config.json for each size. `tiny` tries the program out."""


def write_shape(folder: Path, shape: str) -> Path:
    """Write a model with random weights in bfloat16, a file for each layer, and return its folder.

    Args:
        folder: An empty folder.
        shape: One of `SHAPES`.
    """
    import mlx.core as mx

    config = _QWEN3 | SHAPES[shape]
    vocabulary = write_tokenizer(folder, config["vocab_size"])
    config["eos_token_id"] = vocabulary["<|im_end|>"]
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    index: dict[str, str] = {}
    total = 0
    for number, shapes in enumerate(_parts(config)):
        weights = {name: _weight(size).astype(mx.bfloat16) for name, size in shapes.items()}
        file = f"model-{number:05}.safetensors"
        mx.save_safetensors(str(folder / file), weights, metadata={"format": "mlx"})
        index |= dict.fromkeys(weights, file)
        total += sum(weight.nbytes for weight in weights.values())
    described = {"metadata": {"total_size": total}, "weight_map": index}
    (folder / "model.safetensors.index.json").write_text(json.dumps(described))
    return folder


def _weight(shape: tuple[int, ...]) -> Any:
    import mlx.core as mx

    return mx.ones(shape) if len(shape) == 1 else mx.random.normal(shape) / shape[-1] ** 0.5


def _parts(config: dict[str, Any]) -> Iterator[dict[str, tuple[int, ...]]]:
    """Yield the shapes of the weights, by name: the tables, then each layer."""
    width, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    table = (config["vocab_size"], width)
    tables: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": table, "model.norm.weight": (width,)}
    yield tables | ({} if config["tie_word_embeddings"] else {"lm_head.weight": table})
    layer = {
        **{"self_attn.q_proj": (queries, width), "self_attn.k_proj": (keys, width), "self_attn.v_proj": (keys, width)},
        **{"self_attn.o_proj": (width, queries), "self_attn.q_norm": (head,), "self_attn.k_norm": (head,)},
        **{"mlp.gate_proj": (inner, width), "mlp.up_proj": (inner, width), "mlp.down_proj": (width, inner)},
        **{"input_layernorm": (width,), "post_attention_layernorm": (width,)},
    }
    for number in range(config["num_hidden_layers"]):
        yield {f"model.layers.{number}.{name}.weight": shape for name, shape in layer.items()}


def measure(shape: str, ranks: list[int], tokens: int, rounds: int) -> dict[str, Any]:
    """Return the report of `lmwire bench ranks` for a shape.

    Args:
        shape: One of `SHAPES`.
        ranks: The numbers of ranks besides one.
        tokens: Length of each stream, in tokens.
        rounds: How often everything is measured.
    """
    with tempfile.TemporaryDirectory() as folder:
        model = write_shape(Path(folder), shape)
        options = ["--model", str(model), "--tokens", str(tokens), "--rounds", str(rounds), "--json"]
        lmwire = str(Path(sysconfig.get_path("scripts")) / "lmwire")
        command = [lmwire, "bench", "ranks", *options, "--ranks", *map(str, ranks)]
        report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return report | {"model": shape}


def plot(reports: list[dict[str, Any]], path: Path) -> None:
    """Plot the tokens a second by the number of ranks, for each size and number of streams.

    Args:
        reports: The reports of all shapes.
        path: The PNG file.
    """
    import_module("matplotlib").use("agg")
    pyplot = import_module("matplotlib.pyplot")
    canvas, axes = pyplot.subplots(1, len(reports), squeeze=False, figsize=(5 * len(reports), 4), layout="tight")
    for report, axis in zip(reports, axes[0], strict=True):
        for streams, points in _curves(report["figures"]).items():
            axis.plot(*zip(*points, strict=True), marker="o", label=streams)
        axis.set(title=report["model"], xlabel="ranks", ylabel="tokens a second", xscale="log", yscale="log")
        axis.legend()
    canvas.savefig(path, format="png", dpi=120)
    pyplot.close(canvas)


def _curves(figures: list[dict[str, Any]]) -> dict[str, list[tuple[int, float]]]:
    """Return the points (ranks, tokens a second) of the worker and of mlx_lm, by the number of streams and whose."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for figure in figures:
        streams, _, rest = figure["name"].partition(", ")
        if not rest.endswith("against mlx_lm's plain loop"):
            continue
        size = int(rest.split()[0])
        curves.setdefault(streams, []).append((size, figure["absolute"]))
        curves.setdefault(f"{streams}, mlx_lm", []).append((size, figure["absolute"] / figure["value"]))
    return curves


def main() -> None:
    """Measure, and write the files."""
    parser = argparse.ArgumentParser(description="Measure models of several sizes on several numbers of ranks.")
    parser.add_argument("out", type=Path, metavar="OUT", help="path of the results, without .json")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["0.6B", "4B", "8B", "32B"], metavar="SHAPE")
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 4, 8], metavar="N", help="besides one")
    parser.add_argument("--tokens", type=int, default=128, metavar="N", help="length of each stream")
    parser.add_argument("--rounds", type=int, default=2, metavar="N")
    arguments = parser.parse_args()
    reports: list[dict[str, Any]] = []
    for shape in arguments.shapes:
        reports.append(measure(shape, arguments.ranks, arguments.tokens, arguments.rounds))
        # Written after each shape, so that a later failure loses nothing.
        arguments.out.with_suffix(".json").write_text(json.dumps(reports, indent=2) + "\n")
    plot(reports, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
