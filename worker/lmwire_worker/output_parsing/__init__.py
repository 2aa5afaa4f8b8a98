"""Output parsing: separates a model's answer into content, reasoning and tool calls.

Each family of models marks these in the text in its own way. `Syntax` describes a model's markers, and is found from
its tokenizer. `OutputParser` parses one answer as it comes. No text is lost or changed: the joined fragments are the
decoded answer, with all white space, without its markers and the headers of its messages.

Markers can overlap. These rules follow what models mean by them:

- Reasoning starts at its marker anywhere in the content. An answer can have several stretches of reasoning.
- In reasoning, only its end marker and the start of a tool call count. Other markers are part of the reasoning.
- In some families a complete call in reasoning ends the reasoning. They may close the reasoning late: that marker is
  not text. If the call proves invalid, the reasoning goes on.
- In other families, a call in reasoning that closes is quoted, and part of the reasoning. It is a call if the reasoning
  never closes.
- White space between two calls, and between a call and the end, is not text.
- In a tool call, only its end marker counts. Markers in the arguments are part of them.
- An end marker of reasoning without a start marker is not text. The text before it was content, and stays that.
- The end marker of a tool call without a start marker is text, except in families that write it twice.
- Text that starts like a marker and does not become one is text, also at the end of an answer. An incomplete end
  marker after complete calls is dropped with the calls.
- A section without a complete call is text with its markers. So is the rest of a section with complete calls; if the
  format has no end marker, it is content after them, without the start marker.
- A call that the prompt started, with a prefix, is text: the host has its beginning.
"""

from .families import find_states
from .messages import FAMILIES
from .output_parser import OutputParser, TextFragment, start_state
from .states import CONTENT, REASONING
from .syntax import Syntax

__all__ = ["CONTENT", "FAMILIES", "REASONING", "OutputParser", "Syntax", "TextFragment", "find_states", "start_state"]
