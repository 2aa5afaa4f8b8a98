"""The server's process: its socket, its loop, and its end."""

import logging
import socket
import sys

import uvicorn

from .app import make_app
from .settings import Settings


def serve(settings: Settings) -> int:
    """Serves until SIGINT or SIGTERM, and then lets running requests end."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    config = uvicorn.Config(
        make_app(settings),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(settings.drain_s),
    )
    listening = socket.create_server((settings.host, settings.port), reuse_port=False)
    host, port = listening.getsockname()[:2]
    print(f"lmwire serves on http://{host}:{port}", file=sys.stderr, flush=True)
    uvicorn.Server(config).run([listening])
    return 0
