"""Programs of strangers, chat templates and grammars, run in small processes of their own.

Either can take any time and any memory, and neither can be interrupted in a thread. A process can: it limits itself,
and its end harms nobody. It has no model library, none of the host's pipes, and ends with the worker.
"""

from .process import Exhausted, Sandbox

__all__ = ["Exhausted", "Sandbox"]
