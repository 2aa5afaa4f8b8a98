"""The memory of this machine's device, as the server sees it before it starts a worker."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from lmwire import DeviceMemory, LmwireError

_RELEASE_S: Final = 10.0
"""Longest wait for the memory of workers that have exited, in seconds. macOS frees a GPU's memory a while later."""
_POLL_S: Final = 0.25
_log = logging.getLogger("lmwire_http")


class DeviceGauge:
    """Measures the device's memory in a process of its own.

    Args:
        measure: Returns the memory. It is called in a thread.
    """

    def __init__(self, measure: Callable[[], DeviceMemory]) -> None:
        self._measure = measure

    async def read(self) -> DeviceMemory | None:
        """Return the device's memory; None if it cannot be measured."""
        try:
            return await asyncio.to_thread(self._measure)
        except LmwireError as error:
            _log.warning("%s", error)
            return None

    async def shortage(self, need: int) -> int:
        """Return the bytes that are missing for a need, in bytes; 0 if nothing is missing or that is unknown."""
        memory = await self.read()
        return max(0, need - memory.free_bytes) if memory else 0

    async def wait_until_free(self, need: int) -> None:
        """Return when the device has the memory, or after some seconds: the worker then decides.

        Args:
            need: Memory in bytes.
        """
        try:
            async with asyncio.timeout(_RELEASE_S):
                while await self.shortage(need):
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            _log.warning("the memory of unloaded models is not free after %.0f s", _RELEASE_S)
