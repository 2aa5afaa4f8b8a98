"""For how long tests that draw damaged input go on drawing."""

import os


def fuzz_seconds(default: float) -> float:
    """Return the seconds to fuzz for: LMWIRE_FUZZ_SECONDS, or else the default."""
    return float(os.environ.get("LMWIRE_FUZZ_SECONDS") or default)
