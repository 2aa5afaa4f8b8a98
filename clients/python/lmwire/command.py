"""Entry point of `lmwire` scripts that were installed before the command line moved to `lmwire.cli`."""

from .cli import main

__all__ = ["main"]
