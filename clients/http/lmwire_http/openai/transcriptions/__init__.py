"""OpenAI's transcriptions of audio."""
