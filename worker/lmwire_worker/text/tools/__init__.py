"""Tool calls in the text of models: one table of formats."""

from .format import CallReader, CallText, ToolFormat

__all__ = ["CallReader", "CallText", "ToolFormat"]
