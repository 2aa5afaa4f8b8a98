"""Helpers for the tests of Anthropic's API: clients that do not retry, and a tool."""

from typing import Any, Final

import anthropic

from support.http.http_server import Server

MODEL: Final = "mock"
WEATHER: Final[Any] = {
    "name": "weather",
    "description": "The weather now.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def client(server: Server, **options: Any) -> anthropic.Anthropic:
    """Return a client of a server."""
    return anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=0, **options)


def async_client(server: Server) -> anthropic.AsyncAnthropic:
    """Return an asynchronous client of a server."""
    return anthropic.AsyncAnthropic(base_url=server.url, api_key="any", max_retries=0)


def user(content: Any) -> Any:
    """Return a user's message."""
    return {"role": "user", "content": content}
