"""The chat page in a browser."""
