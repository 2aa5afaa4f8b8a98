"""The application: every endpoint at its path, and what starts and ends with the server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp

from . import anthropic, openai, operations
from .endpoint import Endpoint
from .openapi import document_endpoint
from .operations.metrics import Metrics
from .operations.origins import letting_pages_ask
from .pool import Pool
from .routing import make_router
from .running import Running
from .service import Service
from .settings import Settings

_APIS: Sequence[Endpoint] = (*openai.ENDPOINTS, *anthropic.ENDPOINTS, *operations.ENDPOINTS)
ENDPOINTS: Sequence[Endpoint] = (*_APIS, document_endpoint(_APIS))


def make_app(settings: Settings) -> ASGIApp:
    """The server's application; its lifespan starts and ends the workers."""
    return serving(Service(settings, Pool(settings), Metrics(), Running()))


def serving(service: Service) -> ASGIApp:
    """The application of a service, for those who hold on to it."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        try:
            await service.pool.start()
            yield
        finally:
            await service.pool.close()

    router = make_router(ENDPOINTS, service, lifespan)
    origins = service.settings.cors
    return letting_pages_ask(router, origins) if origins else router
