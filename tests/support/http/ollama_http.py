"""Helpers for the tests of Ollama's API: its own clients, and a tool."""

from typing import Any, Final

import ollama

from support.http.http_server import Server

MODEL: Final = "mock"
WEATHER: Final[Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather now.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
GREEDY: Final = {"temperature": 0}


def client(server: Server) -> ollama.Client:
    """Return a client of a server."""
    return ollama.Client(host=server.url)


def async_client(server: Server) -> ollama.AsyncClient:
    """Return an asynchronous client of a server."""
    return ollama.AsyncClient(host=server.url)


def user(content: str, **fields: Any) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content, **fields}
