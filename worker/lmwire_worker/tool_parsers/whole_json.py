"""Calls in JSON without a marker, from models whose format is another."""

from collections.abc import Generator
from typing import Any

from lmwire_protocol.imports import lazy_pattern

from .base import Fragments
from .json_calls import DescribedCall, LlamaParser, read_call
from .objects import ObjectEnd, read_object


class WholeJsonParser(LlamaParser):
    """Parses content that is calls in JSON and nothing else, as models of other formats write them now and then.

    The calls stand alone, in a list or in a code fence, and have arguments. Only the request's functions count. The
    section is abandoned at the first text that cannot be of this kind. No call is reported before the end.
    """

    separators = lazy_pattern(r"(?:[\s,;\[\]]|```(?:json)?)*")
    _opening = lazy_pattern(r"\s{0,64}(?:```(?:json)?\s{0,8})?(?:\[\s{0,8})?(?=\{)")
    _undecided = lazy_pattern(r"\s{0,64}(?:`{1,2}|```(?:j|js|jso|json)?\s{0,8})?(?:\[\s{0,8})?")
    _closing = lazy_pattern(r"[\s\]]*(?:```\s*)?")

    def parse(self) -> Fragments:
        """Parse the calls."""
        while not self.is_over and self._undecided.fullmatch(self.text):
            yield None
        opening = self._opening.match(self.text)
        at = opening.end() if opening else None
        calls: list[tuple[int, int, DescribedCall]] = []
        while at is not None and (start := (yield from self._next_call(at))) is not None:
            end = yield from self._find_call(start)
            call = None if end is None else read_call(self.text[start:end])
            if end is None or call is None or not self.accepts(call.name):
                break
            calls.append((start, end, call))
            at = end
            while not self.is_over and self._skip_separators(at) is None:
                yield None
            if self._closing.fullmatch(self.text, at) and self.is_closed:
                for start, end, call in calls:
                    yield from self.add_whole_call(start, end, *call)
                return
        self.is_abandoned = True

    def _find_call(self, start: int) -> Generator[Any, None, int | None]:
        """Wait for the end of an object with arguments; return it, or None if there is none."""
        whole = ObjectEnd(start)
        while (end := whole.find(self.text)) is None:
            if self.is_over:
                return None
            yield None
        values = read_object(self.text[start:end]) or {}
        values = values["function"] if isinstance(values.get("function"), dict) else values
        return end if values.keys() & {"arguments", "parameters"} else None

    def _skip_separators(self, at: int) -> int | None:
        match = self.separators.match(self.text, at)
        start = match.end() if match else at
        return None if "```json".startswith(self.text[start:]) else start
