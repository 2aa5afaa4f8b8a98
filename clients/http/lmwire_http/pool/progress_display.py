"""Displays of how far loads and prefills have come. The default one logs downloads."""

import logging
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TypeAlias

from lmwire_protocol.events import Progress

_STEPS: Final = 10
"""Number of lines for a download, without the first one."""
_log = logging.getLogger("lmwire_http")

OnProgress: TypeAlias = Callable[[Progress], None]
ShowProgress: TypeAlias = Callable[[str], AbstractContextManager[OnProgress]]
"""Shows one load or prefill of the model with this name. The block gets a function that takes the progress events."""


@contextmanager
def log_downloads(model: str) -> Generator[OnProgress]:
    """Log the download of a model while the block runs; see `ShowProgress`."""
    yield DownloadLog(model)


class DownloadLog:
    """Logs a line at each tenth of a download. Its object is called with each progress event of a load.

    Args:
        model: The model's name.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._last = -1

    def __call__(self, event: Progress) -> None:
        """Log a line if the download has come another tenth."""
        if event.stage != "download" or not event.total:
            return
        tenth = event.current * _STEPS // event.total
        if tenth > self._last:
            self._last = tenth
            _log.info("downloading %s: %d of %d MB", self._model, event.current // 10**6, event.total // 10**6)
