"""The ranks' machines, and the environment in which MLX connects them."""

import contextlib
import importlib.metadata
import json
import os
import socket
import tempfile
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

BACKENDS: Final = ("ring", "nccl", "jaccl")
"""MLX's backends that a rank can be started for. Each connects by environment variables."""
FIRST_PORT: Final = 32323
"""Port of rank 0 on a machine of a hosts file, as for mlx.launch. Each further rank has the next one."""
THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1", "")
MAX_RANKS: Final = 64


class InvalidHosts(Exception):
    """Raised for a hosts file that cannot be used."""


class Host(Struct, frozen=True):
    """The place of one rank."""

    ssh: str | None
    """The name that ssh takes; None for this machine."""
    address: str
    """The IP address at which the other ranks reach it."""
    rdma: list[Any] | None = None
    """Thunderbolt devices towards each other rank, for JACCL."""


def default_backend() -> str:
    """Return the backend for this installation of MLX: NCCL with its package for CUDA."""
    installed = {distribution.name for distribution in importlib.metadata.distributions()}
    return "nccl" if installed & {"mlx-cuda-12", "mlx-cuda-13"} else "ring"


def local_hosts(count: int) -> list[Host]:
    """Return the places of ranks that all run on this machine."""
    return [Host(None, "127.0.0.1")] * count


def read_hosts(path: Path) -> list[Host]:
    """Return the places of the ranks from a hosts file: the JSON of mlx.launch.

    Args:
        path: The file: a list of objects with `ssh` and `ips`. The first one is this machine.

    Raises:
        InvalidHosts: The file is missing or has another form.
    """
    try:
        entries = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InvalidHosts(f"{path} cannot be read: {error}") from None
    if isinstance(entries, dict):
        entries = entries.get("hosts")
    if not isinstance(entries, list) or not 2 <= len(entries) <= MAX_RANKS:
        raise InvalidHosts(f"{path} must be a list of 2 to {MAX_RANKS} hosts, each with `ssh` and `ips`")
    return [_host(path, index, entry) for index, entry in enumerate(entries)]


def _host(path: Path, index: int, entry: Any) -> Host:
    ssh, ips = (entry.get("ssh"), entry.get("ips")) if isinstance(entry, dict) else (None, None)
    if not isinstance(ssh, str) or not isinstance(ips, list) or not all(isinstance(ip, str) for ip in ips):
        raise InvalidHosts(f"{path}: host {index} needs `ssh`, a text, and `ips`, a list of addresses")
    if ssh.startswith("-"):  # ssh would read it as an option
        raise InvalidHosts(f"{path}: `ssh` of host {index} is {ssh!r}; it must be a host's name")
    is_here = index == 0 or ssh in THIS_MACHINE
    if not ips and not is_here:
        raise InvalidHosts(f"{path}: host {index} needs its address in `ips`")
    rdma = entry.get("rdma")
    return Host(None if is_here else ssh, ips[0] if ips else "127.0.0.1", rdma if isinstance(rdma, list) else None)


class Environment(Struct, frozen=True):
    """The variables and files by which MLX connects the ranks, the same for each but for `MLX_RANK`."""

    variables: dict[str, str]
    files: dict[str, str]
    """Contents of the files that further variables name."""

    def apply(self) -> None:
        """Set this process's variables, and write the files into its directory for temporary files."""
        os.environ.update(self.variables)
        for variable, content in self.files.items():
            descriptor, path = tempfile.mkstemp(prefix="lmwire-ranks-", suffix=".json")
            with os.fdopen(descriptor, "w") as file:
                file.write(content)
            os.environ[variable] = path

    def remove_files(self) -> None:
        """Remove the files. MLX has read them."""
        for variable in self.files:
            with contextlib.suppress(OSError):
                Path(os.environ[variable]).unlink()


def group_environment(hosts: list[Host], backend: str) -> Environment:
    """Return what connects the ranks.

    Args:
        hosts: The place of each rank.
        backend: MLX's backend.
    """
    is_local = all(host.ssh is None and host.address == "127.0.0.1" for host in hosts)
    ports = _free_ports(len(hosts)) if is_local else [FIRST_PORT + rank for rank in range(len(hosts))]
    if backend == "nccl":
        size = {"MLX_WORLD_SIZE": str(len(hosts))}
        return Environment(size | {"NCCL_HOST_IP": hosts[0].address, "NCCL_PORT": str(ports[0])}, {})
    if backend == "jaccl":
        devices = json.dumps([host.rdma for host in hosts])
        coordinator = f"{hosts[0].address}:{ports[0]}"
        return Environment({"MLX_JACCL_COORDINATOR": coordinator}, {"MLX_IBV_DEVICES": devices})
    addresses = [[f"{host.address}:{port}"] for host, port in zip(hosts, ports, strict=True)]
    return Environment({}, {"MLX_HOSTFILE": json.dumps(addresses)})


def rank_environment(hosts: list[Host], backend: str, rank: int) -> dict[str, str]:
    """Return the environment variables of one rank alone."""
    own = {"MLX_RANK": str(rank)}
    if backend == "nccl":  # each rank of a machine has a GPU of its own
        local = sum(host.ssh == hosts[rank].ssh for host in hosts[:rank])
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if hosts[rank].ssh is None else []
        own["CUDA_VISIBLE_DEVICES"] = visible[local] if local < len(visible) and visible[local] else str(local)
    return own


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
