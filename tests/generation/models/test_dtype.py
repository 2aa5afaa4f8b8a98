"""`dtype` of a load: the type of the numbers that are not quantized, on this machine's device."""

from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten

from lmwire_protocol import Generate
from random_model import write_model
from support.models.adapters import Host
from support.runners.generation_runners import ask

pytestmark = pytest.mark.slow

UNTOUCHED = {mx.uint32}
"""The type of quantized weights."""


def types_of(runner: Any) -> set[Any]:
    leaves: Any = tree_flatten(runner.network.parameters())
    return {weight.dtype for _, weight in leaves}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("quantize", [None, (4, 32)])
def test_a_load_converts_the_numbers_that_are_not_quantized(
    tmp_path: Path, dtype: str, quantize: tuple[int, int] | None
) -> None:
    folder = write_model(tmp_path / "model", dtype="bfloat16", quantize=quantize)
    runner = Host().load(folder, dtype=dtype)
    assert types_of(runner) - UNTOUCHED == {getattr(mx, dtype)}
    assert len(ask(runner, Generate(prompt=[10, 20], max_tokens=4))[0].token_ids) > 0


def test_another_type_reads_the_weights_anew_and_the_same_one_does_not(tmp_path: Path) -> None:
    folder, host = write_model(tmp_path / "model", dtype="bfloat16"), Host()
    first = host.load(folder)
    assert types_of(first) == {mx.bfloat16}
    assert types_of(host.load(folder, dtype="float32")) == {mx.float32}
    assert types_of(host.load(folder)) == {mx.bfloat16}


@pytest.mark.skipif(mx.default_device() != mx.cpu, reason="float16 is fast on a GPU")
def test_on_a_cpu_float16_becomes_float32_unless_the_load_says_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_model(tmp_path / "model", dtype="float16", quantize=(4, 32))
    assert types_of(Host().load(folder)) - UNTOUCHED == {mx.float32}
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"lmwire: {folder}: float16 becomes float32, ")
    assert "`dtype` of the load (--dtype) chooses otherwise" in line
    for dtype in ("float16", "bfloat16"):
        assert types_of(Host().load(folder, dtype=dtype)) - UNTOUCHED == {getattr(mx, dtype)}
    assert capsys.readouterr().err == ""
