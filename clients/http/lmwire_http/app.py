"""The application: every endpoint at its path, and what starts and ends with the server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from . import anthropic, openai, operations
from .dialects import OPENAI
from .endpoint import Endpoint
from .exchange import Served
from .failures import ApiError
from .operations.metrics import Metrics
from .pool import Pool
from .service import Service
from .settings import Settings

ENDPOINTS: Sequence[Endpoint] = (*openai.ENDPOINTS, *anthropic.ENDPOINTS, *operations.ENDPOINTS)


def make_app(settings: Settings) -> Starlette:
    """The server's application; its lifespan starts and ends the workers."""
    service = Service(settings, Pool(settings), Metrics())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            await service.pool.start()
            yield
        finally:
            await service.pool.close()

    return Starlette(
        routes=[Route(each.path, Served(each, service), methods=[each.method]) for each in ENDPOINTS],
        middleware=[_cors(settings.cors)] if settings.cors else [],
        exception_handlers={HTTPException: _unserved},
        lifespan=lifespan,
    )


def _cors(origins: Sequence[str]) -> Middleware:
    return Middleware(
        CORSMiddleware,
        allow_origins=[*origins],
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "retry-after"],
    )


async def _unserved(request: Request, error: Exception) -> Response:
    """What no endpoint serves: a path that there is not, or another method."""
    assert isinstance(error, HTTPException)
    known = ", ".join(sorted({each.path for each in ENDPOINTS}))
    message = f"{request.method} {request.url.path} is not served here; these are: {known}"
    body = OPENAI.body(ApiError(error.status_code, message, code="unknown_path"), "")
    return JSONResponse(body, error.status_code, headers=error.headers)
