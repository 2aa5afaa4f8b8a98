"""Log how far the download of a model has come."""

import logging
from typing import Final

from lmwire_protocol.events import Progress

_STEPS: Final = 10
"""Number of lines for a download, without the first one."""
_log = logging.getLogger("lmwire_http")


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
