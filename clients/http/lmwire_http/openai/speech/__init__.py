"""OpenAI's speech from text."""
