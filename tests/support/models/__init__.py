"""Tiny models and model folders, right ones and hostile ones."""
