"""What answers are held to, token by token: formats, calls that must be made, and the length of thoughts.

A request's grammar covers its whole answer: a thought, if the model thinks, then text of the format or calls. Rows of
a batch that have one get a bit mask in each step. Grammars are llguidance's.
"""

from .answer import is_constrained
from .constraint import Constraint
from .grammars import Grammars
from .token_masks import Masks

__all__ = ["Constraint", "Grammars", "Masks", "is_constrained"]
