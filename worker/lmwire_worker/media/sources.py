"""The bytes of an image or a sound, from where a request says they are."""

from .items import Item
from .policy import Policy


def read_source(item: Item, policy: Policy) -> bytes:
    """At least one byte, at most `policy.max_bytes`. Raises Problem."""
    raise NotImplementedError
