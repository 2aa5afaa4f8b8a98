"""Tool calls in the text of models: one table of formats."""

from .format import CallReader, CallText, ToolFormat
from .table import FORMATS, find_format

__all__ = ["FORMATS", "CallReader", "CallText", "ToolFormat", "find_format"]
