"""Whether a model thinks before it answers: its template's own switch, or the beginning of the answer."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from lmwire_protocol import RequestError

from ..output_parsing import Syntax
from .chat_template import ChatTemplate
from .template_probe import ANSWER, THOUGHT, USER, Shape
from .turns import Turn

_FLAGS: Final = ("enable_thinking", "thinking")
_EFFORT: Final = "reasoning_effort"
_BUDGET: Final = "thinking_budget"
_HARMONY_ANSWER: Final = "<|channel|>final<|message|>"


@dataclass(frozen=True)
class Reasoning:
    """A request's wish.

    Args:
        wish: The request's `reasoning`.
        template: That writes its prompt.
        shape: In which the template takes messages.
        syntax: The model's marks.
    """

    wish: Literal["auto", "on", "off"]
    template: ChatTemplate
    shape: Shape
    syntax: Syntax

    def variables(self) -> dict[str, Any]:
        """What switches the template.

        Raises:
            RequestError: unsupported, when the model cannot be made to think.
        """
        if self.wish == "auto":
            return {}
        if self.wish == "on" and not (self.syntax.thinks and (self._switch or self._is_known())):
            problem = "reasoning: this model has no reasoning to turn on; leave it at `auto`"
            raise RequestError("unsupported", problem, field="reasoning")
        return self._switch

    def start(self, opening: str, *, prefix: str, calls: bool) -> str:
        """What to put behind the opening of the assistant's turn, where the template leaves the wish to the model.

        Args:
            opening: What the template wrote.
            prefix: What the request puts behind it: with one, the turn has begun already.
            calls: The answer may call tools.
        """
        if self.wish == "auto" or not self.syntax.thinks:
            return ""
        begins, ends = self._marks(opening, calls=calls)
        thinking = self._is_open(opening)
        if self.wish == "on":
            return "" if thinking or prefix else begins
        if thinking:
            return ends
        return begins + ends if self._is_known() and not self._switch else ""

    @cached_property
    def _switch(self) -> dict[str, Any]:
        """The variables that turn it on, or off; none when this template has no switch."""
        on = self.wish == "on"
        found: dict[str, Any] = {name: on for name in _FLAGS if self._differs(name, True, False)}
        if not on and self._differs(_BUDGET, 0, 1):
            found[_BUDGET] = 0
        if self._reads(_EFFORT) and self._attempt({_EFFORT: "none"}) and not self._attempt({_EFFORT: "qv"}):
            # It checks the effort and lets `none` pass. One that checks nothing knows no `none` either.
            found[_EFFORT] = "high" if on else "none"
        return found

    def _differs(self, name: str, one: object, other: object) -> bool:
        return self._reads(name) and self._attempt({name: one}) != self._attempt({name: other})

    def _reads(self, name: str) -> bool:
        return self.template.variables is None or name in self.template.variables

    def _attempt(self, variables: dict[str, Any]) -> str:
        return self.template.attempt(self.shape.messages([Turn("user", USER)]), **variables)

    def _is_known(self) -> bool:
        """Many vocabularies have marks for thoughts that their models never have; their templates know better."""
        marks = (self.syntax.think_start, self.syntax.think_end)
        return any(mark is not None and mark in self.template.source for mark in marks)

    def _is_open(self, opening: str) -> bool:
        start, end = self.syntax.think_start, self.syntax.think_end
        return start is not None and opening.rfind(start) > (opening.rfind(end) if end else -1)

    def _marks(self, opening: str, *, calls: bool) -> tuple[str, str]:
        """How this family begins a thought and how it ends one: as the template writes a past one, if it does."""
        start, end = self.syntax.think_start or "", self.syntax.think_end or ""
        turns = [Turn("user", USER), Turn("assistant", ANSWER, reasoning=THOUGHT)]
        text = self.template.attempt(self.shape.messages(turns), add_generation_prompt=False)
        before, _, behind = text.partition(THOUGHT)
        begins = before.rpartition(USER)[2]
        begins = begins.rpartition(opening)[2] if opening in begins else begins[begins.find(start) :]
        ends = behind.partition(ANSWER)[0]
        if calls:  # harmony's answers and calls are messages with different heads: leave open which one comes
            ends = ends.removesuffix(_HARMONY_ANSWER)
        return begins if start in begins else f"{start}\n", ends if end in ends else f"\n{end}\n\n"
