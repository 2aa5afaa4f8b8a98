"""The numbers of protocol 1 that both ends must agree on. Sizes are bytes of encoded UTF-8 unless said otherwise."""

PROTOCOL_VERSION = 1
"""The highest protocol version that this package speaks; `hello` negotiates it."""

LINE_IN_BYTES = 32 * 1024 * 1024
"""A command's line, without its newline. A longer one is answered `line_too_long` and skipped to its newline."""

LINE_OUT_BYTES = 60 * 1024
"""Every line a worker writes is shorter than this, newline included: a default Go `bufio.Scanner` and a default
asyncio stream reader both give up at 64 KiB."""

TEXT_BYTES = 32 * 1024
"""The JSON form of one piece of text in an event; longer text continues in the next event."""

TOKEN_IDS = 4096
"""Token ids in one event, a count."""

ERROR_BYTES = 4 * 1024
"""The JSON form of an error's sentence; a longer one is cut and ends in an ellipsis."""

ID_BYTES = 128
"""A request id, at least 1 byte."""

CLIENT_BYTES = 128
"""`hello`'s `client`."""

REQUESTS = 1024
"""Unfinished requests, a count; one more is refused with `busy`."""

QUEUED_BYTES = 256 * 1024 * 1024
"""The lines of unfinished requests together; more is refused with `busy`."""

TERMINAL_BYTES = 8 * 1024
"""Room that every accepted request keeps in the outbox for its last line, which therefore never waits."""

REPLY_BYTES = 1024 * 1024
"""Replies that the worker's reader may have waiting (pongs, refusals); at this mark it stops reading."""

MAX_INT = 2**53 - 1
"""The largest integer on the wire: what every JSON reader holds exactly."""

STOP_STRINGS = 16
"""Stop strings of one request, a count."""

STOP_BYTES = 1024
"""One stop string, at least 1 byte."""

STOP_TOLD_BYTES = 3 * 1024
"""The JSON form of one stop string where there are several choices, each of whose ends names one in the same line."""

LOGIT_BIASES = 1024
"""Tokens with a bias of one request, a count."""

CHOICES = 1024
"""Texts that `format` can let a model choose from, a count."""

TOOLS = 1024
"""Tools of one request, a count."""

NAME_CHARACTERS = 128
"""A function's name, at least 1; a count of characters."""

TOP_LOGPROBS = 20
"""Alternatives of one token, a count."""

LOGPROB_CHARACTERS = 256
"""A token's text among log-probabilities; a longer one is cut, a count of characters."""

INPUTS = 2048
"""Texts and images of one `embed`, a count."""

EMBEDDING_VALUES = 2048
"""Numbers of one embedding in one event, a count; more continue in the next event."""

SPEECH_PROMPT_BYTES = 4 * 1024
"""`transcribe`'s `prompt`."""

BANNER_BYTES = 64 * 1024
"""Lines that are no JSON objects which a client skips before the reply to its `hello` (login banners)."""

CLIENT_LINE_BYTES = 1024 * 1024
"""A line from a worker longer than this is a violation: the client ends the worker."""
