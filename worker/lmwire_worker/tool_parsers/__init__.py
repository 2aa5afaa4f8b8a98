"""Parsers of tool calls in the text of models, and the table of their formats."""

from .format import ToolCallFragment, ToolCallParser, ToolFormat
from .parameter_order import parameters_in_order
from .table import FORMATS, find_format

__all__ = ["FORMATS", "ToolCallFragment", "ToolCallParser", "ToolFormat", "find_format", "parameters_in_order"]
