"""Prompts: messages, tools and media become text by the chat template, and then tokens."""
