"""Adapters with random weights, and a host that puts them on models."""

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx_lm
from mlx.utils import tree_flatten
from mlx_lm.tuner.utils import linear_to_lora_layers

from lmwire_protocol import Load
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.loading.model_loader import MlxModelLoader


class Host:
    """Engine that loads one model after another, as a worker does."""

    def __init__(self) -> None:
        self._engine = MlxModelLoader()
        self._engine.prepare()
        self._runner: GenerationRunner | None = None
        self.read: list[int] = []
        """Bytes of weights that each load read."""

    def load(self, path: Path, adapter: Path | None = None, **fields: Any) -> GenerationRunner:
        self.read.append(0)
        request = Load(path=str(path), adapter_path=str(adapter) if adapter else None, **fields)
        runner = self._engine.open(request, self._report, self.close)
        assert isinstance(runner, GenerationRunner)
        self._runner = runner
        return runner

    def close(self) -> None:
        if self._runner:
            self._runner.close()
            self._runner = None

    def _report(self, stage: str, current: int, total: int | None, unit: str) -> None:
        if stage == "read":
            self.read[-1] = current


def write_adapter(folder: Path, model: Path, *, seed: int = 1, dora: bool = False, **parameters: Any) -> Path:
    """Write an adapter as mlx-lm's training does, with weights that change every answer."""
    network = mlx_lm.load(str(model))[0]
    network.freeze()
    settings = {"rank": 4, "scale": 10.0, "dropout": 0.5, **parameters}
    linear_to_lora_layers(network, -1, settings, use_dora=dora)
    mx.random.seed(seed)
    trained: Any = tree_flatten(network.trainable_parameters())
    weights = {name: value if name.endswith(".m") else mx.random.normal(value.shape) * 0.3 for name, value in trained}
    folder.mkdir()
    mx.save_safetensors(str(folder / "adapters.safetensors"), weights)
    config = {"fine_tune_type": "dora" if dora else "lora", "num_layers": -1, "lora_parameters": settings}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder
