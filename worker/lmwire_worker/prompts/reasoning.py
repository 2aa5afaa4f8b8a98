"""The reasoning switch: a variable of the chat template, or text that opens or closes the reasoning."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from lmwire_protocol import RequestError

from ..output_parsing import Syntax
from .chat_template import ChatTemplate
from .template_probe import ANSWER, REASONING, USER, MessageFormat
from .turns import Turn

_FLAGS: Final = ("enable_thinking", "thinking")
_EFFORT: Final = "reasoning_effort"
_BUDGET: Final = "thinking_budget"
_HARMONY_ANSWER: Final = "<|channel|>final<|message|>"


@dataclass(frozen=True)
class ReasoningSwitch:
    """Turns a model's reasoning on or off for one request.

    Args:
        mode: The request's `reasoning`.
        template: The chat template.
        message_format: The form in which the template takes messages.
        syntax: The model's output syntax.
    """

    mode: Literal["auto", "on", "off"]
    template: ChatTemplate
    message_format: MessageFormat
    syntax: Syntax

    def variables(self) -> dict[str, Any]:
        """Return the template variables that set the mode; empty if the template has none.

        Raises:
            RequestError: unsupported: the mode is `on`, and the model has no reasoning to turn on.
        """
        if self.mode == "auto":
            return {}
        if self.mode == "on" and not (self.syntax.has_reasoning and (self._switch or self._template_has_markers())):
            problem = "reasoning: this model has no reasoning to turn on; leave it at `auto`"
            raise RequestError("unsupported", problem, field="reasoning")
        return self._switch

    def opening_text(self, opening: str, *, prefix: str, may_call: bool) -> str:
        """Return the text to add after the opening of the assistant's turn, so that the answer follows the mode.

        Args:
            opening: The opening that the template wrote.
            prefix: The request's prefix, which follows the added text. With a prefix, no reasoning is opened.
            may_call: The answer may call tools.
        """
        if self.mode == "auto" or not self.syntax.has_reasoning:
            return ""
        begins, ends = self._delimiters(opening, may_call=may_call)
        thinking = self._is_open(opening)
        if self.mode == "on":
            return "" if thinking or prefix else begins
        if thinking:
            return ends
        return begins + ends if self._template_has_markers() and not self._switch else ""

    def open_reasoning(self, opening: str) -> str:
        """Return the opening of the assistant's turn with open reasoning.

        Args:
            opening: The opening that the template wrote, which may have closed the reasoning.
        """
        if self._is_open(opening):
            return opening
        begins, _ = self._delimiters(opening, may_call=False)
        for marker in (self.syntax.think_end, self.syntax.think_start):
            if marker and marker in opening:
                opening = opening[: opening.rfind(marker)]
        return opening + begins

    def closing_text(self, opening: str) -> str:
        """Return the text between reasoning and content.

        Args:
            opening: The opening of the assistant's turn.
        """
        return self._delimiters(opening, may_call=False)[1]

    @cached_property
    def _switch(self) -> dict[str, Any]:
        """Template variables that turn reasoning on or off; empty if the template has no switch."""
        on = self.mode == "on"
        found: dict[str, Any] = {name: on for name in _FLAGS if self._differs(name, True, False)}
        if not on and self._differs(_BUDGET, 0, 1):
            found[_BUDGET] = 0
        if self._reads(_EFFORT) and self._try_render({_EFFORT: "none"}) and not self._try_render({_EFFORT: "qv"}):
            # The template validates the effort and accepts `none`. One that accepts anything has no meaning for `none`.
            found[_EFFORT] = "high" if on else "none"
        return found

    def _differs(self, name: str, one: object, other: object) -> bool:
        return self._reads(name) and self._try_render({name: one}) != self._try_render({name: other})

    def _reads(self, name: str) -> bool:
        return self.template.variables is None or name in self.template.variables

    def _try_render(self, variables: dict[str, Any]) -> str:
        return self.template.try_render(self.message_format.messages([Turn("user", USER)]), **variables)

    def _template_has_markers(self) -> bool:
        """Return whether the template mentions the reasoning markers: many vocabularies have unused ones."""
        marks = (self.syntax.think_start, self.syntax.think_end)
        return any(mark is not None and mark in self.template.source for mark in marks)

    def _is_open(self, opening: str) -> bool:
        start, end = self.syntax.think_start, self.syntax.think_end
        return start is not None and opening.rfind(start) > (opening.rfind(end) if end else -1)

    def _delimiters(self, opening: str, *, may_call: bool) -> tuple[str, str]:
        """Return the texts that open and close reasoning, as the template writes them around past reasoning.

        If the template drops past reasoning, they are the markers with line breaks.
        """
        start, end = self.syntax.think_start or "", self.syntax.think_end or ""
        turns = [Turn("user", USER), Turn("assistant", ANSWER, reasoning=REASONING)]
        text = self.template.try_render(self.message_format.messages(turns), add_generation_prompt=False)
        before, _, after = text.partition(REASONING)
        begins = before.rpartition(USER)[2]
        begins = begins.rpartition(opening)[2] if opening in begins else begins[begins.find(start) :]
        ends = after.partition(ANSWER)[0]
        if may_call:  # in harmony, content and calls have different headers: the model must choose
            ends = ends.removesuffix(_HARMONY_ANSWER)
        return begins if start in begins else f"{start}\n", ends if end in ends else f"\n{end}\n\n"
