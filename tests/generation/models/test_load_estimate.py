"""The memory of a load, estimated from a model's files, and measured by the worker."""

from pathlib import Path
from typing import Any

import pytest

from lmwire_protocol import RequestError
from lmwire_worker.generation.admission import RowCost, short_answer_bytes
from lmwire_worker.generation.language_model import open_shared_weights
from lmwire_worker.models.device_memory import check_fits
from lmwire_worker.models.load_estimate import estimate_load_bytes
from lmwire_worker.models.model_files import read_json
from lmwire_worker.models.model_info import describe_model
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from random_model import FAMILIES, write_model

pytestmark = pytest.mark.slow

HEADERS_BYTES = 100_000
"""Bytes of a model's files that are not weights."""


def fits(folder: Path, memory: int) -> bool:
    """Return whether a worker with this memory accepts the load."""
    weights = open_shared_weights(folder, trust_remote_code=False)
    network = weights.new_network()
    tokenizer = load_tokenizer(folder, weights.config, trust_remote_code=False)
    try:
        model = describe_model(folder, weights.config, network, tokenizer)
        check_fits(model, short_answer_bytes(model, RowCost.measure(network)), memory, free=memory)
    except RequestError as error:
        assert error.code == "out_of_memory"
        return False
    return True


def estimated(folder: Path) -> int:
    return estimate_load_bytes(folder, read_json(folder / "config.json"))


# The state of mamba's layers, some kilobytes, is not estimated.
@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "mamba"])
def test_a_load_with_the_estimated_memory_succeeds(family: str, tmp_path: Path) -> None:
    folder = write_model(tmp_path / family, family)
    assert fits(folder, estimated(folder))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_estimate_of_a_model_with_full_attention_is_exact(dtype: str, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", "llama", dtype=dtype, torch_dtype=dtype)
    assert fits(folder, estimated(folder))
    assert not fits(folder, estimated(folder) - HEADERS_BYTES)


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}, 2 * 2 * 64 * 1024 * 4),
        (
            {"text_config": {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "dtype": "float16"}},
            2 * 2 * 64 * 1024 * 2,
        ),
        (
            {
                "num_hidden_layers": 4,
                "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
                "hidden_size": 64,
                "num_attention_heads": 4,
                "num_key_value_heads": 1,
                "max_position_embeddings": 256,
            },
            2 * 16 * 256 * 4,
        ),
        ({"num_hidden_layers": "many", "hidden_size": -1}, 0),
        ({}, 0),
    ],
)
def test_the_memory_of_an_answer_follows_the_config(config: dict[str, Any], answer: int, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"x" * 1000)
    (tmp_path / "consolidated.safetensors").write_bytes(b"x" * 5000)
    (tmp_path / "tokenizer.json").write_bytes(b"x" * 300)
    assert estimate_load_bytes(tmp_path, config) == 1000 + answer
