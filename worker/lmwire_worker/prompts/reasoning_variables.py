"""Find the variables with which a chat template turns reasoning on or off, or takes an effort, by rendering them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

from lmwire_protocol.limits import EFFORT_BUDGETS

from .chat_template import ChatTemplate
from .template_probe import USER, MessageFormat
from .turns import Turn

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
_ABOUT_REASONING: Final = re.compile("think|reason|effort")
_TAKES_EFFORT: Final = re.compile("effort|strength|level")
_NEGATED: Final = re.compile("(?:skip|disable|no|without)_")
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


@dataclass(frozen=True, slots=True)
class ReasoningVariables:
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


@dataclass(frozen=True, slots=True)
class _Finder:
    """Renders a small conversation with one value after another."""

    template: ChatTemplate
    message_format: MessageFormat
    texts: dict[str, str] = field(default_factory=dict[str, str])
    """The prompts so far, by their variables."""

    def find(self) -> ReasoningVariables:
        """Return what the template takes."""
        known = self.template.variables
        listed = sorted(known) if known is not None else _USUAL_NAMES
        names = [name for name in listed if _ABOUT_REASONING.search(name)][:_MAX_VARIABLES]
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
        return not source or re.search(rf"""(["']){value}\1""", source) is not None

    def _differ(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Return whether two sets of variables both give a prompt, and different ones."""
        texts = self._render(one), self._render(other)
        return all(texts) and texts[0] != texts[1]

    def _render(self, variables: Mapping[str, Any]) -> str:
        key = repr(sorted(variables.items()))
        if key not in self.texts:
            messages = self.message_format.messages([Turn("user", USER)])
            self.texts[key] = self.template.try_render(messages, **variables)
        return self.texts[key]
