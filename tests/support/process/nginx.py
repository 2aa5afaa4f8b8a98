"""nginx with a configuration of a test."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.process.programs import program
from support.process.worker_process import SECONDS

_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextmanager
def nginx(folder: Path, http: str) -> Iterator[None]:
    """Run nginx until the block's end. It returns to the shell when it listens, so nothing needs to wait for it.

    Args:
        folder: Where it writes its files; `access.log` has the ids of requests.
        http: The directives of its `http` block.
    """
    paths = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in _TEMPORARY)
    log = f"log_format ids '$request_id'; access_log {folder}/access.log ids;"
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; error_log {folder}/error.log; events {{}}\nhttp {{ {log} {paths}\n{http}\n}}\n"
    )
    command = [program("nginx"), "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
    subprocess.run(command, check=True, timeout=SECONDS)
    try:
        yield
    finally:
        subprocess.run([*command, "-s", "quit"], check=True, timeout=SECONDS)
