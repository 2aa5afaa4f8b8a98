"""Why an image or a sound cannot be had."""


class Problem(Exception):
    """Worded to go behind the field's path: "messages[0].content[1].media.data: is empty".

    Args:
        sentence: What is wrong, and what to do.
        code: The protocol's error code.
        retryable: Whether the same request may succeed later.
    """

    def __init__(self, sentence: str, code: str = "invalid_request", *, retryable: bool = False) -> None:
        super().__init__(sentence)
        self.code = code
        self.retryable = retryable
