"""The machines of the ranks, and how MLX finds them."""

import json
from pathlib import Path
from typing import Any

import pytest

from lmwire_worker.ranks.hosts import (
    FIRST_PORT,
    Host,
    InvalidHosts,
    group_environment,
    local_hosts,
    rank_environment,
    read_hosts,
)

TWO = [{"ssh": "studio", "ips": ["10.0.0.1"]}, {"ssh": "mini", "ips": ["10.0.0.2", "10.0.1.2"]}]


def write(folder: Path, content: Any) -> Path:
    path = folder / "hosts.json"
    path.write_text(json.dumps(content))
    return path


def test_the_first_host_is_this_machine(tmp_path: Path) -> None:
    assert read_hosts(write(tmp_path, TWO)) == [Host(None, "10.0.0.1"), Host("mini", "10.0.0.2")]


def test_a_file_with_settings_of_mlx_launch_is_read(tmp_path: Path) -> None:
    assert len(read_hosts(write(tmp_path, {"backend": "ring", "hosts": TWO}))) == 2


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "must be a list of 2 to 64 hosts"),
        (TWO[:1], "must be a list of 2 to 64 hosts"),
        ("mini", "must be a list of 2 to 64 hosts"),
        ([TWO[0], {"ssh": "mini"}], "host 1 needs `ssh`, a text, and `ips`"),
        ([TWO[0], {"ssh": "mini", "ips": []}], "host 1 needs its address"),
        ([TWO[0], {"ssh": "-oProxyCommand=x", "ips": ["10.0.0.2"]}], "it must be a host's name"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, content: Any, problem: str) -> None:
    with pytest.raises(InvalidHosts, match=problem):
        read_hosts(write(tmp_path, content))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidHosts, match="cannot be read"):
        read_hosts(tmp_path / "none.json")


def test_a_ring_of_this_machine_has_ports_of_its_own() -> None:
    first, second = (group_environment(local_hosts(3), "ring").files["MLX_HOSTFILE"] for _ in range(2))
    addresses = json.loads(first)
    assert len({address for (address,) in addresses}) == 3
    assert first != second


def test_a_ring_of_machines_has_the_known_ports(tmp_path: Path) -> None:
    hosts = read_hosts(write(tmp_path, TWO))
    addresses = json.loads(group_environment(hosts, "ring").files["MLX_HOSTFILE"])
    assert addresses == [[f"10.0.0.1:{FIRST_PORT}"], [f"10.0.0.2:{FIRST_PORT + 1}"]]


def test_each_rank_of_a_machine_has_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    hosts = [*local_hosts(2), Host("other", "10.0.0.2"), Host("other", "10.0.0.2")]
    gpus = [rank_environment(hosts, "nccl", rank)["CUDA_VISIBLE_DEVICES"] for rank in range(4)]
    assert gpus == ["4", "6", "0", "1"]


def test_thunderbolt_is_told_its_devices() -> None:
    hosts = [Host(None, "10.0.0.1", [None, "rdma_en5"]), Host("mini", "10.0.0.2", ["rdma_en5", None])]
    environment = group_environment(hosts, "jaccl")
    assert environment.variables == {"MLX_JACCL_COORDINATOR": f"10.0.0.1:{FIRST_PORT}"}
    assert json.loads(environment.files["MLX_IBV_DEVICES"]) == [[None, "rdma_en5"], ["rdma_en5", None]]
