"""A check of many small cases as one test: pytest spends more on a case of its own than such a case takes."""

from collections.abc import Callable, Collection
from typing import TypeVar

T = TypeVar("T")
Test = Callable[[], None]


def for_each(
    cases: Collection[T] | Callable[[], Collection[T]], named: Callable[[T], str] = str
) -> Callable[[Callable[[T], None]], Test]:
    """Return a decorator that makes a test of a check. The first case that fails ends the test, with its name.

    Args:
        cases: The cases; or a function that makes them when the test runs, if that takes long.
        named: Returns the name of a case.
    """

    def decorate(check: Callable[[T], None]) -> Test:
        def test() -> None:
            made = cases() if callable(cases) else cases
            assert made
            for case in made:
                try:
                    check(case)
                except BaseException as failure:
                    failure.add_note(f"The case: {named(case)}")
                    raise

        # Without `functools.wraps`, which would make pytest look for the check's parameter.
        test.__name__, test.__qualname__, test.__doc__ = check.__name__, check.__qualname__, check.__doc__
        test.__module__ = check.__module__
        return test

    return decorate
