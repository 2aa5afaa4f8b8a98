"""Names that resemble a misspelt one."""

from collections.abc import Collection, Sequence


def suggestion(name: str, known: Collection[str], mark: str = "", cutoff: float = 0.6) -> str:
    """Return the end of an error message that names the closest known name; empty if none is close.

    Args:
        name: The misspelt name.
        known: The names that exist.
        mark: What to write before the name, such as `$`.
        cutoff: The similarity that counts as close, from 0 to 1.
    """
    import difflib  # only a mistake needs it, and the help must be quick

    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"; did you mean {mark}{near[0]}?" if near else ""


def unrecognized(arguments: Sequence[str], known: Collection[str]) -> str:
    """Return the error message for arguments that a command does not have.

    Args:
        arguments: The words of the command line.
        known: The options of the command.
    """
    options = (word.partition("=")[0] for word in arguments if word.startswith("-"))
    hints = (suggestion(option, known) for option in options)
    return f"unrecognized arguments: {' '.join(arguments)}{next(filter(None, hints), '')}"
