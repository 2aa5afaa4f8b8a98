"""The choice of a display for stdout."""

import sys

from .plain_display import PlainDisplay, TerminalDisplay


def choose_display(*, formatted: bool) -> PlainDisplay:
    """Return the display for one answer on stdout.

    Args:
        formatted: Whether to format Markdown. That needs rich and a terminal; without them the text stays plain.
    """
    if not sys.stdout.isatty():
        return PlainDisplay()
    if not formatted:
        return TerminalDisplay()
    try:
        import rich
    except ImportError:
        return TerminalDisplay()
    if rich.get_console().is_dumb_terminal:
        return TerminalDisplay()
    from .markdown_display import MarkdownDisplay

    return MarkdownDisplay(rich.get_console())
