"""A base lends its weights: networks share them, and nothing else."""

from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx import nn

from lmwire_worker.models.weights import SharedWeights, list_files


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.tied = self.first
        self.layers = [nn.Linear(2, 2), {"gate": nn.Linear(2, 2)}]
        self.pair = (nn.Linear(2, 2), mx.ones(1))


def base_of(folder: Path) -> tuple[SharedWeights, Any]:
    modules = Network().eval()
    return SharedWeights(folder, list_files(folder), modules, {}), modules


def test_a_network_shares_every_weight(tmp_path: Path) -> None:
    base, modules = base_of(tmp_path)
    network: Any = base.new_network()
    assert network.first.weight is modules.first.weight
    assert network.layers[1]["gate"].weight is modules.layers[1]["gate"].weight
    assert network.pair[1] is modules.pair[1]
    assert not network.first.training


def test_no_change_of_a_network_reaches_the_base_or_another_network(tmp_path: Path) -> None:
    base, modules = base_of(tmp_path)
    changed: Any = base.new_network()
    changed.first.weight = mx.zeros((2, 2))
    changed.layers[0] = changed.layers[1]["gate"] = nn.Identity()
    changed.pair[0].weight = mx.zeros((2, 2))
    changed.kept = lambda: None
    another: Any = base.new_network()
    for network in (modules, another):
        assert mx.any(network.first.weight != 0) and mx.any(network.pair[0].weight != 0)
        assert isinstance(network.layers[0], nn.Linear) and isinstance(network.layers[1]["gate"], nn.Linear)
        assert "kept" not in vars(network)


def test_a_module_that_has_two_places_is_one_module(tmp_path: Path) -> None:
    network: Any = base_of(tmp_path)[0].new_network()
    assert network.tied is network.first


def test_the_shared_base_is_not_among_a_networks_parameters(tmp_path: Path) -> None:
    base, modules = base_of(tmp_path)
    assert base.new_network().parameters() == modules.parameters()


def test_a_base_is_of_its_folder_until_a_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"1")
    base = base_of(tmp_path)[0]
    assert base.matches(tmp_path, None) and not base.matches(tmp_path.parent, None)
    file.write_bytes(b"22")
    assert not base.matches(tmp_path, None)
