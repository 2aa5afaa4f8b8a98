"""OpenAI's responses: conversations that the server stores, so that they can be continued."""
