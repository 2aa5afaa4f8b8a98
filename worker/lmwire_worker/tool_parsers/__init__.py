"""Parsers of tool calls in the text of models, and the table of their formats."""

from .derivation import NAME as DERIVED
from .derivation import derive_formats
from .format import ToolCallFragment, ToolCallParser, ToolFormat, WrittenCall
from .gemma_calls import GemmaCall, key_order
from .json_calls import JsonCall
from .literals import CALL_ID, NUMBER
from .nested_calls import ITEM, NestedCall
from .parameter_order import parameters_in_order
from .python_calls import PythonCall, call_text, literal
from .table import FORMATS
from .tagged_calls import TaggedCall
from .values import kind_of
from .whole_json import WholeJsonParser

__all__ = [
    "CALL_ID",
    "DERIVED",
    "FORMATS",
    "ITEM",
    "NUMBER",
    "GemmaCall",
    "JsonCall",
    "NestedCall",
    "PythonCall",
    "TaggedCall",
    "ToolCallFragment",
    "ToolCallParser",
    "ToolFormat",
    "WholeJsonParser",
    "WrittenCall",
    "call_text",
    "derive_formats",
    "key_order",
    "kind_of",
    "literal",
    "parameters_in_order",
]
