"""Ids of OpenAI's objects."""

import secrets


def new_id(kind: str) -> str:
    """Return a new id, such as `chatcmpl-…` for the kind `chatcmpl`."""
    return f"{kind}-{secrets.token_hex(16)}"
