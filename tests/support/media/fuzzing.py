"""For how long tests that draw damaged input go on drawing."""

import os


def fuzz_seconds(short: float = 0.5) -> float:
    """Return the seconds for one test with random input; LMWIRE_FUZZ_SECONDS sets them for all.

    Args:
        short: What the suite takes.
    """
    return float(os.environ.get("LMWIRE_FUZZ_SECONDS", short))
