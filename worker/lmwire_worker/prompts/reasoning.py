"""The reasoning switch: variables of the chat template, or text that opens or closes the reasoning."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from lmwire_protocol import RequestError
from lmwire_protocol.commands import ReasoningEffort
from lmwire_protocol.limits import EFFORT_BUDGETS

from ..models.tokenizer import Tokenizer
from ..output_parsing import Syntax
from .chat_template import select_template
from .reasoning_variables import ReasoningVariables, find_reasoning_variables
from .template_probe import ANSWER, FUNCTION, REASONING, USER, TemplateTraits, probe_template, render_reasoning
from .turns import Turn

_ANSWER_HEADERS: Final = (
    "<|channel|>final<|message|>",
    " to=user<|message|>",
    "<|content|>",
    "<|START_RESPONSE|>",
    "<|START_TEXT|>",
)
"""Headers of content after reasoning. Calls have others, so that the model must choose if it may call."""


@dataclass(frozen=True, slots=True)
class ReasoningSwitch:
    """Turns a model's reasoning on or off for one request.

    Args:
        mode: The request's `reasoning`.
        effort: The request's `reasoning_effort`.
        traits: The features of the chat template.
        syntax: The model's output syntax.
    """

    mode: Literal["auto", "on", "off"]
    effort: ReasoningEffort | None
    traits: TemplateTraits
    syntax: Syntax

    def variables(self) -> dict[str, Any]:
        """Return the template variables that set the mode and the effort; empty if the template has none.

        Raises:
            RequestError: unsupported: the mode is `on`, and the model has no reasoning to turn on.
        """
        if self.mode == "off":
            return {**self.found.off}
        if self.mode == "on" and not self.can_reason:
            problem = "reasoning: this model has no reasoning to turn on; leave it at `auto`"
            raise RequestError("unsupported", problem, field="reasoning")
        return {**(self.found.on if self.mode == "on" else {}), **(self._effort_variables or {})}

    @property
    def can_reason(self) -> bool:
        """Return whether the model has reasoning that can be turned on."""
        is_known = bool(self.found.on or self.found.efforts) or self._template_has_markers()
        return self.syntax.has_reasoning and is_known

    @property
    def effort_budget(self) -> int | None:
        """The reasoning budget that stands for an effort which the template does not take, in tokens; None without."""
        if self.effort is None or self._effort_variables is not None:
            return None
        return EFFORT_BUDGETS.get(self.effort)

    def opening_text(self, opening: str, *, prefix: str, may_call: bool) -> str:
        """Return the text to add after the opening of the assistant's turn, so that the answer follows the mode.

        A template that takes the effort decides itself how the turn opens.

        Args:
            opening: The opening that the template wrote.
            prefix: The request's prefix, which follows the added text. With a prefix, no reasoning is opened.
            may_call: The answer may call tools.
        """
        if self.mode == "auto" or not self.syntax.has_reasoning:
            return ""
        if self.mode == "on" and self._effort_variables is not None:
            return ""
        begins, ends = self._delimiters(opening, may_call=may_call)
        thinking = self._is_open(opening)
        if self.mode == "on":
            return "" if thinking or prefix else begins
        if thinking:
            return ends
        return begins + ends if self._template_has_markers() and not self.found.off else ""

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

    @property
    def found(self) -> ReasoningVariables:
        """Return what the template takes about reasoning."""
        return find_reasoning_variables(self.traits.template, self.traits.message_format)

    @property
    def _effort_variables(self) -> Mapping[str, Any] | None:
        """Template variables for the effort; None without an effort, or if the template does not take it."""
        return None if self.effort is None else self.found.for_effort(self.effort)

    def _template_has_markers(self) -> bool:
        """Return whether the template mentions the reasoning markers: many vocabularies have unused ones."""
        marks = (self.syntax.think_start, self.syntax.think_end)
        return any(mark is not None and mark in self.traits.template.source for mark in marks)

    def _is_open(self, opening: str) -> bool:
        start, end = self.syntax.think_start, self.syntax.think_end
        return start is not None and opening.rfind(start) > (opening.rfind(end) if end else -1)

    def _delimiters(self, opening: str, *, may_call: bool) -> tuple[str, str]:
        """Return the texts that open and close reasoning, as the template writes them around past reasoning.

        If the template drops past reasoning, they are the markers with line breaks.
        """
        start, end = self.syntax.think_start or "", self.syntax.think_end or ""
        before, found, after = render_reasoning(self.traits.template, **self.found.on).partition(REASONING)
        if not found:
            return self._empty_delimiters(start, end)
        begins = before.rpartition(opening)[2] if opening in before else before[before.find(start) :]
        ends = after.partition(ANSWER)[0]
        if FUNCTION in ends:  # a call stands between reasoning and content
            ends = ends.partition(end)[0] + end
        for header in _ANSWER_HEADERS if may_call else ():
            ends = ends.removesuffix(header)
        usual_start, usual_end = _usual_delimiters(start, end)
        return begins if start in begins else usual_start, ends if end in ends else usual_end

    def _empty_delimiters(self, start: str, end: str) -> tuple[str, str]:
        """Return the texts that open and close reasoning if the template drops past reasoning."""
        messages = self.traits.message_format.messages([Turn("user", USER), Turn("assistant", ANSWER)])
        text = self.traits.template.try_render(messages, add_generation_prompt=False, **self.found.on)
        if f"{start}{end}{ANSWER}" in text:
            return start, end
        return _usual_delimiters(start, end)


def _usual_delimiters(start: str, end: str) -> tuple[str, str]:
    return f"{start}\n", f"\n{end}\n\n"


def find_efforts(tokenizer: Tokenizer, syntax: Syntax) -> list[str] | None:
    """Return the reasoning efforts that a model's chat template takes; None for a model that does not reason.

    Args:
        tokenizer: The model's tokenizer, which has the template.
        syntax: The model's output syntax.
    """
    try:
        traits = probe_template(select_template(tokenizer, None, tools=False))
        switch = ReasoningSwitch("auto", None, traits, syntax)
        return list(switch.found.efforts) if switch.can_reason else None
    except RequestError:  # the template cannot be used: its requests report it
        return None
