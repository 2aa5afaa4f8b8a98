"""Stop strings in a stream of text."""

from .scanner import Scanner as StopScanner
from .scanner import Strings as StopStrings

__all__ = ["StopScanner", "StopStrings"]
