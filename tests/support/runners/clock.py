"""A clock that a test moves, so that deadlines and waits are arithmetic."""


class Clock:
    """The time in seconds, which passes only where a test lets it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now
