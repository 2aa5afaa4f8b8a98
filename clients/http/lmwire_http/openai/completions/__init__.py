"""OpenAI's completions: continuations of plain prompts."""
