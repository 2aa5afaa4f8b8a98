"""Prompts: the chat template turns messages, tools and media into text, and the tokenizer turns text into tokens."""
