"""Facts of a model's files that Ollama's clients see: parameters, their type and the licence."""

import json
from pathlib import Path

import pytest

from lmwire_http.ollama.model_files import Weights, read_licence, read_weights, short_number


def write_header(file: Path, **tensors: tuple[str, list[int]]) -> None:
    header = {name: {"dtype": kind, "shape": shape, "data_offsets": [0, 0]} for name, (kind, shape) in tensors.items()}
    text = json.dumps({"__metadata__": {"format": "mlx"}, **header}).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text)


def test_quantized_weights_count_once_each(tmp_path: Path) -> None:
    layer = {"w.weight": ("U32", [4, 8]), "w.scales": ("BF16", [4, 1]), "w.biases": ("BF16", [4, 1])}
    write_header(tmp_path / "model-1.safetensors", **layer)
    write_header(tmp_path / "model-2.safetensors", norm=("BF16", [10]))
    assert read_weights(str(tmp_path), 4, 1) == Weights(4 * 64 + 10)


def test_weights_of_different_bits_and_groups_count_once_each(tmp_path: Path) -> None:
    groups = {"group_size": 32, "bits": 4, "b": {"group_size": 128, "bits": 8}}
    (tmp_path / "config.json").write_text(json.dumps({"quantization": groups}))
    four = {"a.weight": ("U32", [2, 8]), "a.scales": ("F16", [2, 2]), "a.biases": ("F16", [2, 2])}
    eight = {"b.weight": ("U32", [2, 32]), "b.scales": ("F16", [2, 1])}
    write_header(tmp_path / "model.safetensors", **four, **eight)
    assert read_weights(str(tmp_path), 4, 2) == Weights(2 * 64 + 2 * 128)


def test_weights_that_are_not_quantized_have_the_type_of_most(tmp_path: Path) -> None:
    write_header(tmp_path / "model.safetensors", a=("BF16", [100]), b=("F32", [2, 3]))
    assert read_weights(str(tmp_path), None, 1) == Weights(106, "BF16")


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\x02" + bytes(7) + b"[]", b"\x07" + bytes(7) + b'{"a":1}'])
def test_files_that_are_no_weights_say_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    assert read_weights(str(tmp_path), None, len(content)) == Weights()
    assert read_weights(str(tmp_path / "nowhere"), None, 0) == Weights()


def test_a_licence_is_a_text_or_a_name_in_the_card(tmp_path: Path) -> None:
    assert read_licence(str(tmp_path)) == ""
    (tmp_path / "README.md").write_text("---\ntags:\n- mlx\nlicense: mit\n---\n# Model\nlicense: none\n")
    assert read_licence(str(tmp_path)) == "mit"
    (tmp_path / "LICENSE").write_text("Do as you like.")
    assert read_licence(str(tmp_path)) == "Do as you like."
    (tmp_path / "LICENSE").unlink()
    (tmp_path / "README.md").write_text("# Model\nlicense: none\n")
    assert read_licence(str(tmp_path)) == ""


def test_a_card_of_many_lines_without_an_end_takes_no_longer_than_others(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\n" + "license: x\n" * 20_000)
    assert read_licence(str(tmp_path)) == ""


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, ""), (999, "999"), (27_000, "27K"), (134_515_008, "134.52M"), (7 * 10**9, "7B"), (7_615_616_512, "7.6B")],
)
def test_numbers_of_parameters_are_short(count: int, text: str) -> None:
    assert short_number(count) == text
