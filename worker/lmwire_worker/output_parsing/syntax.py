"""The syntax of a model's output, found from its tokenizer."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lmwire_protocol import RequestError

from ..models.tokenizer import Tokenizer
from ..tool_parsers import ToolFormat
from .families import ContentMarkers, ReasoningMarkers, find_content_markers, find_reasoning_markers, find_states
from .messages import FAMILIES, HARMONY_TOKENS
from .states import CONTENT, State


class Syntax(Struct, frozen=True):
    """The markup of a model's answers."""

    states: Mapping[str, State]
    initial: str
    """Name of the state at the start of the assistant's turn."""
    think_start: str | None
    """Marker that starts reasoning; None for a model without reasoning."""
    think_end: str | None
    """Marker that ends reasoning."""
    tools: ToolFormat | None
    """Format of tool calls; None for a model without tools."""
    content_markers: Sequence[ContentMarkers] = ()
    """Markers that may stand around content."""
    unread: tuple[str, ...] = ()
    """Parts of the model's `response_template` that are not read."""
    assumes_tools: bool = False
    """True if nothing names the format of tool calls, so that the prompt must describe one."""

    @classmethod
    def of(
        cls,
        tokenizer: Tokenizer,
        model_type: str,
        tools: ToolFormat | None,
        reasoning_markers: ReasoningMarkers | None = None,
        *,
        assumes_tools: bool = False,
    ) -> "Syntax":
        """Return the syntax of a model, by its format of calls, the markers in its vocabulary and in its template.

        Args:
            tokenizer: The model's tokenizer.
            model_type: The `model_type` of the model's configuration.
            tools: The format of tool calls.
            reasoning_markers: The markers around reasoning; None to find them.
            assumes_tools: Nothing names the format of tool calls.

        Raises:
            RequestError: unsupported: markers are given, and the model's answers are messages with channels.
        """
        vocabulary = tokenizer.vocabulary
        is_harmony = model_type == "gpt_oss" and vocabulary >= HARMONY_TOKENS
        name = "harmony" if is_harmony else tools.name if tools is not None and tools.name != "harmony" else ""
        if (family := FAMILIES.get(name)) is not None:
            if reasoning_markers is not None:
                problem = "this model's answers are messages with channels, which the worker knows; leave it out"
                raise RequestError("unsupported", f"reasoning_start: {problem}", field="reasoning_start")
            return cls(
                family.states, family.initial, *(family.reasoning or (None, None)), tools, assumes_tools=assumes_tools
            )
        templates = tokenizer.chat_template or ""
        template = templates if isinstance(templates, str) else "".join(templates.values())
        markers = reasoning_markers or find_reasoning_markers(vocabulary, template)
        content_markers = find_content_markers(vocabulary, template)
        states = find_states(markers, content_markers, tools)
        return cls(states, CONTENT, *(markers or (None, None)), tools, content_markers, assumes_tools=assumes_tools)

    @property
    def has_reasoning(self) -> bool:
        """Return whether answers can contain reasoning."""
        return self.think_start is not None

    def without_call(self, name: str) -> str:
        """Return the name of the state after a call's start marker that counts as text."""
        return CONTENT if self.states[name].kind == "header" else name
