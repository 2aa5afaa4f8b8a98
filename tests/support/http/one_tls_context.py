"""One TLS context for all HTTP clients of a run.

The clients of the tests speak HTTP without TLS. Each would still read all certificates of the machine when it is made,
which takes longer than most of its requests.
"""

import ssl
from collections.abc import Iterator
from functools import cache

import httpcore2
import pytest

_create_default_context = cache(ssl.create_default_context)
_default_ssl_context = cache(httpcore2.default_ssl_context)


@pytest.fixture(scope="module", autouse=True)
def one_tls_context() -> Iterator[None]:
    """Read the certificates once in the folder whose conftest.py imports this. Tests elsewhere may name their own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ssl, "create_default_context", _create_default_context)
        patched.setattr(httpcore2, "default_ssl_context", _default_ssl_context)
        yield
