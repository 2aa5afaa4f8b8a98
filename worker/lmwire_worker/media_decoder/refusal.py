"""The error of a file that is not decoded."""


class RefusedError(Exception):
    """A file cannot be decoded. The sentence follows the field's path, as in "input[0].media.data: is damaged"."""


class MissingLibraryError(Exception):
    """A format's library is not installed.

    Args:
        library: The library's name.
        extra: The extra of lmwire that installs it.
        purpose: What it does, as in "reads images".
    """

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(library)
        self.library = library
        self.extra = extra
        self.purpose = purpose
