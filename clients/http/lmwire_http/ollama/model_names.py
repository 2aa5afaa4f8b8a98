"""Names of models in Ollama's API, which may end with a tag."""

from typing import Final

_DEFAULT_TAG: Final = ":latest"


def without_tag(name: str) -> str:
    """Return the name on this server. Ollama's clients may add the tag `latest`, which stands for no tag."""
    return name.removesuffix(_DEFAULT_TAG)
