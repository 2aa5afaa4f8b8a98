"""The reasoning switch: variables of the chat template, or text that opens or closes the reasoning."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

from msgspec import Struct

from lmwire_protocol import RequestError
from lmwire_protocol.commands import ReasoningEffort
from lmwire_protocol.imports import lazy_pattern
from lmwire_protocol.limits import EFFORT_BUDGETS

from ..models.tokenizer import Tokenizer
from ..output_parsing import Syntax
from .chat_template import ChatTemplate, Probe, select_template
from .template_traits import (
    ANSWER,
    FUNCTION,
    REASONING,
    USER,
    MessageFormat,
    TemplateTraits,
    probe_template,
    render_reasoning,
)
from .turns import Turn

_ANSWER_HEADERS: Final = (
    "<|channel|>final<|message|>",
    " to=user<|message|>",
    "<|content|>",
    "<|START_RESPONSE|>",
    "<|START_TEXT|>",
)
"""Headers of content after reasoning. Calls have others, so that the model must choose if it may call."""


class ReasoningSwitch(Struct, frozen=True):
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
    def found(self) -> "ReasoningVariables":
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


# The variables with which a template turns reasoning on or off, or takes an effort, are found by rendering them.

_SUBSTITUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "minimal": ("minimal", "low"),
    "low": ("low", "minimal"),
    "medium": ("medium",),
    "high": ("high",),
    "xhigh": ("xhigh", "max", "high"),
    "max": ("max", "xhigh", "high"),
}
"""The efforts that can stand for each effort, best first, from the lowest effort to the highest."""
_USUAL: Final = ("low", "medium", "high")
"""The efforts of a template that writes any word into the prompt."""
_ABOUT_REASONING: Final = lazy_pattern("(?!reasoning_content)[^.]*(?:think|reason|effort)")
_TAKES_EFFORT: Final = lazy_pattern("effort|strength|level")
_NEGATED: Final = lazy_pattern("(?:skip|disable|no|without)_")
_USUAL_NAMES: Final = ("enable_thinking", "thinking", "reasoning_effort", "thinking_budget")
"""Variables to try with a program in Python, which does not list its own."""
_WORD_PAIRS: Final = (
    ("high", "none"),
    ("high", "no_think"),
    ("enabled", "disabled"),
    ("on", "off"),
    ("thinking", "chat"),
    ("think", "no_think"),
)
"""Values that turn reasoning on, and off."""
_MAX_VARIABLES: Final = 8
"""Most variables of a template that are tried. Templates have three at most, and each costs some twenty renderings."""
_UNKNOWN: Final = "qvword"
"""A value that no template knows."""


class ReasoningVariables(Struct, frozen=True):
    """Variables of a chat template that concern reasoning."""

    on: Mapping[str, Any]
    """Variables that turn reasoning on; empty if the template has no switch."""
    off: Mapping[str, Any]
    """Variables that turn reasoning off; empty if the template has no switch."""
    efforts: Mapping[str, Mapping[str, Any]]
    """The variable for each effort that the template takes, from the lowest effort to the highest."""

    def for_effort(self, effort: str) -> Mapping[str, Any] | None:
        """Return the variable for an effort, or for the one closest to it; None if the template has none like it."""
        return next((self.efforts[word] for word in _SUBSTITUTES[effort] if word in self.efforts), None)


_FOUND: Final[WeakKeyDictionary[ChatTemplate, ReasoningVariables]] = WeakKeyDictionary()


def find_reasoning_variables(template: ChatTemplate, message_format: MessageFormat) -> ReasoningVariables:
    """Return what a template takes about reasoning, which is found once.

    Args:
        template: The template.
        message_format: The form in which it takes messages.

    Raises:
        RequestError: invalid_request: the template exceeds a limit even for a small conversation.
    """
    if (found := _FOUND.get(template)) is None:
        found = _FOUND[template] = _Finder(template, message_format).find()
    return found


class _Finder(Struct, frozen=True):
    """Renders a small conversation with one value after another."""

    template: ChatTemplate
    message_format: MessageFormat
    texts: dict[str, str] = {}
    """The prompts so far, by their variables."""

    def find(self) -> ReasoningVariables:
        """Return what the template takes."""
        known = self.template.variables
        listed = sorted(known) if known is not None else _USUAL_NAMES
        names = [name for name in listed if _ABOUT_REASONING.match(name)][:_MAX_VARIABLES]
        switches = [name for name in names if not name.endswith("budget") and not _TAKES_EFFORT.search(name)]
        self._render_ahead({name: value} for name in switches for value in (True, False))
        on: dict[str, Any] = {}
        off: dict[str, Any] = {}
        for name in names:
            if name.endswith("budget"):
                if self._differ({name: 0}, {name: 1}):
                    off[name] = 0
            elif (pair := self._find_pair(name)) is not None:
                on[name], off[name] = pair
        efforts: dict[str, Mapping[str, Any]] = {}
        for name in names:
            others = {other: value for other, value in on.items() if other != name}
            efforts = efforts or dict(self._find_efforts(name, others))
        return ReasoningVariables(on, off, efforts)

    def _find_pair(self, name: str) -> tuple[Any, Any] | None:
        """Return the values of a variable that turn reasoning on and off, or None if it does not."""
        if not _TAKES_EFFORT.search(name):
            on = _NEGATED.match(name) is None
            if self._differ({name: True}, {name: False}) and str(True) not in self._render({name: True}):
                return on, not on
        for on, off in _WORD_PAIRS:
            is_known = self._names(off) and (self._names(on) or self._knows(name, off))
            if is_known and self._differ({name: on}, {name: off}):
                return on, off
        return None

    def _find_efforts(self, name: str, on: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the efforts that a variable takes, each with the variable's value.

        Args:
            name: The variable.
            on: The other variables that turn reasoning on.
        """
        if name.endswith("budget"):
            limited = [effort for effort in _SUBSTITUTES if effort in EFFORT_BUDGETS]
            budgets = [(effort, {name: EFFORT_BUDGETS[effort]}) for effort in limited]
            if self._differ({**on, **budgets[0][1]}, {**on, **budgets[-1][1]}):
                yield from budgets
            return
        if not _TAKES_EFFORT.search(name):
            return
        self._render_ahead([on, *({**on, name: value} for value in (_UNKNOWN, *_SUBSTITUTES))])
        is_printed = _UNKNOWN in self._render({**on, name: _UNKNOWN})
        found: list[tuple[str, Mapping[str, Any]]] = []
        texts = {self._render(on)}
        for effort in _SUBSTITUTES:
            value = True if name.startswith(f"{effort}_") else effort
            text = self._render({**on, name: value})
            usual = effort in _USUAL if is_printed else self._knows(name, effort, on)
            if text and (usual or self._names(effort) or value is True):
                found.append((effort, {name: value}))
                texts.add(text)
        if len(texts) > 1:
            yield from found

    def _knows(self, name: str, value: str, others: Mapping[str, Any] = {}) -> bool:
        """Return whether the template writes another prompt for a value than for an unknown one."""
        text = self._render({**others, name: value})
        return bool(text) and text != self._render({**others, name: _UNKNOWN}).replace(_UNKNOWN, value)

    def _names(self, value: str) -> bool:
        """Return whether the template's source has a value as a text, or has no source."""
        source = self.template.source
        return not source or f'"{value}"' in source or f"'{value}'" in source

    def _differ(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Return whether two sets of variables both give a prompt, and different ones."""
        texts = self._render(one), self._render(other)
        return all(texts) and texts[0] != texts[1]

    def _render_ahead(self, settings: Iterable[Mapping[str, Any]]) -> None:
        self.template.render_ahead(map(self._probe, settings))

    def _render(self, variables: Mapping[str, Any]) -> str:
        key = repr(sorted(variables.items()))
        if key not in self.texts:
            self.texts[key] = self.template.probe(self._probe(variables))
        return self.texts[key]

    def _probe(self, variables: Mapping[str, Any]) -> Probe:
        return Probe(self.message_format.messages([Turn("user", USER)]), variables=variables)
