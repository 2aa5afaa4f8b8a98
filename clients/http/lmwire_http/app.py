"""The ASGI application: every endpoint at its path, and the start and end of the workers."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from starlette.types import ASGIApp

from . import anthropic, llama_cpp, mcp, ollama, openai, operations, page, rerank
from .http.context import AppState, make_app_state
from .http.endpoint import Endpoint
from .http.openapi import make_document_endpoint
from .http.origin_guard import OriginGuard
from .http.routing import make_router
from .settings import Settings

_APIS: Sequence[Endpoint] = (
    *openai.ENDPOINTS,
    *anthropic.ENDPOINTS,
    *ollama.ENDPOINTS,
    *llama_cpp.ENDPOINTS,
    *rerank.ENDPOINTS,
    *mcp.ENDPOINTS,
    *operations.ENDPOINTS,
    *page.ENDPOINTS,
)
_UNSUPPORTED_PATHS: Mapping[str, str] = {**openai.UNSUPPORTED_PATHS, **ollama.UNSUPPORTED_PATHS}
ENDPOINTS: Sequence[Endpoint] = (*_APIS, make_document_endpoint(_APIS))


def make_app(settings: Settings) -> ASGIApp:
    """Return the server's application. Its lifespan starts and ends the workers."""
    return make_app_with_state(make_app_state(settings))


def make_app_with_state(state: AppState) -> ASGIApp:
    """Return the application for a state that the caller keeps."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None]:
        async with state.mcp_servers or nullcontext():
            state.startup.begin(state.pool.start())
            try:
                yield
            finally:
                await state.startup.stop()
                await state.pool.close()
                if state.tracer:
                    await asyncio.to_thread(state.tracer.close)

    return OriginGuard(make_router(ENDPOINTS, _UNSUPPORTED_PATHS, state, lifespan), state)
