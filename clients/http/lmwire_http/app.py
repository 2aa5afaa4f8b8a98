"""The application: every endpoint at its path, and what starts and ends with the server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp

from . import anthropic, openai, operations
from .http.app_state import Service, make_service
from .http.endpoint import Endpoint
from .http.openapi import document_endpoint
from .http.origin_guard import Guard
from .http.routing import make_router
from .settings import Settings

_APIS: Sequence[Endpoint] = (*openai.ENDPOINTS, *anthropic.ENDPOINTS, *operations.ENDPOINTS)
ENDPOINTS: Sequence[Endpoint] = (*_APIS, document_endpoint(_APIS))


def make_app(settings: Settings) -> ASGIApp:
    """The server's application; its lifespan starts and ends the workers."""
    return app_of(make_service(settings))


def app_of(service: Service) -> ASGIApp:
    """The application of a service, for those who hold on to it."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        service.startup.begin(service.pool.start())
        try:
            yield
        finally:
            await service.startup.stop()
            await service.pool.close()

    return Guard(make_router(ENDPOINTS, service, lifespan), service)
