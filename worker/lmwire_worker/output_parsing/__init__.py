"""A model's answer told apart: what it thinks, what it says, and what it calls.

Models mark up their answers in the text itself, each family in its own way. `Syntax` is a model's way, found from its
tokenizer; `Answer` reads one answer by it, as it comes. Text is never lost and never changed: what an answer is told
apart into, joined, is the decoded answer without its markers and the headers of its messages, white space included.

Where markers stand in one another's way, this is what models mean by them:

- A thought begins at its marker wherever it stands in the content, so that an answer can think several times.
- In a thought only its end counts, and the start of a call. Other markers there are part of the thought.
- A whole call in a thought ends the thought. Models that call before they close it go on with the answer, or close it
  late, which is no text then. What looks like a call there and is none was only thought about: the thought goes on.
- In a call only its end counts. Markers in its arguments are part of them.
- An end without a start is text.
- What begins like a marker and does not become one is text, at the end of an answer too. Only what there is of an end
  marker goes with the whole calls before it.
- A section without a whole call is text with its markers, and so is the rest of one that holds whole calls.
- A call that the prompt began (by a prefix) is text: the host has its beginning.
"""

from .answer import Answer, Text
from .states import CONTENT, REASONING
from .syntax import Syntax

__all__ = ["CONTENT", "REASONING", "Answer", "Syntax", "Text"]
