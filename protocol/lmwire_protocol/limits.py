"""The numbers of protocol 1 that both sides share. Sizes are bytes of encoded UTF-8 unless stated otherwise."""

PROTOCOL_VERSION = 1
"""The highest protocol version that this package speaks; `hello` negotiates it."""

LINE_IN_BYTES = 32 * 1024 * 1024
"""A command's line, without its newline. A longer one is answered `line_too_long` and skipped to its newline."""

LINE_OUT_BYTES = 60 * 1024
"""Every line that a worker writes is shorter than this, newline included. A default Go `bufio.Scanner` and a default
asyncio stream reader both fail at 64 KiB."""

TEXT_BYTES = 32 * 1024
"""The JSON form of the text in one event; longer text continues in the next event."""

TOKEN_IDS = 4096
"""Token ids in one event, a count."""

ERROR_BYTES = 4 * 1024
"""The JSON form of an error's sentence; a longer one is cut and ends in an ellipsis."""

ID_BYTES = 128
"""A request id; it has at least 1 byte."""

CLIENT_BYTES = 128
"""`hello`'s `client`."""

REQUESTS = 1024
"""Unfinished requests, a count; one more is refused with `busy`."""

QUEUED_BYTES = 256 * 1024 * 1024
"""The lines of unfinished requests together; more is refused with `busy`."""

TERMINAL_BYTES = 8 * 1024
"""Space in the output queue that is reserved for the last line of each accepted request, which thus never waits."""

REPLY_BYTES = 1024 * 1024
"""Replies of the worker's reader that may wait to be written, such as pongs and errors. At this size it stops
reading."""

MAX_INT = 2**53 - 1
"""The largest integer on the wire, which every JSON reader represents exactly."""

STOP_STRINGS = 16
"""Stop strings of one request, a count."""

STOP_BYTES = 1024
"""One stop string; it has at least 1 byte."""

STOP_TOLD_BYTES = 3 * 1024
"""The JSON form of one stop string of a request with several choices: one line names a stop string for each choice."""

DRY_BREAKERS = 64
"""Strings across which no repetition reaches, in one request, a count."""

DRY_BREAKER_BYTES = 64
"""One of these strings; it has at least 1 byte."""

BANNED_STRINGS = 256
"""Strings that one request bans, a count."""

BANNED_STRING_BYTES = 256
"""One of these strings; it has at least 1 byte."""

MARKER_CHARACTERS = 128
"""One marker around reasoning; it has at least 1 character."""

LOGIT_BIASES = 1024
"""Tokens with a bias in one request, a count."""

CHOICES = 1024
"""Texts of a `choice` format, a count."""

CONTEXT_FILES = 256
"""Files beside a gap to fill in one request, a count."""

MESSAGES = 10_000
"""Messages of one request, a count."""

PARTS = 4096
"""Parts of one message's content, a count."""

TOOL_CALLS = 1024
"""Calls of one message, a count."""

PROMPT_TOKENS = 1024 * 1024
"""Token ids of one request, a count."""

MEMBERS = 10_000
"""Members of an object that may have any, such as a schema or a call's arguments, a count."""

TOOLS = 1024
"""Tools of one request, a count."""

NAME_CHARACTERS = 128
"""A function's name, a count of characters; it has at least 1."""

TOP_LOGPROBS = 20
"""Alternatives of one token, a count."""

PROMPT_LOGPROBS = 32 * 1024
"""Tokens of a prompt with log-probabilities, a count."""

LOGPROB_CHARACTERS = 256
"""A token's text among log-probabilities, a count of characters; a longer text is cut."""

INPUTS = 2048
"""Texts and images of one `embed`, a count."""

EMBEDDING_VALUES = 2048
"""Numbers of one embedding in one event, a count; more continue in the next event."""

SPEECH_PROMPT_BYTES = 4 * 1024
"""`transcribe`'s `prompt`, and `speak`'s `instructions`."""

SPOKEN_TEXT_BYTES = 16 * 1024
"""`speak`'s `text`."""

MAX_SPOKEN_S = 3600
"""Seconds of one `speak`'s speech, a count."""

AUDIO_BYTES = 32 * 1024
"""Samples of one `audio` event, before base64."""

BANNER_BYTES = 64 * 1024
"""Lines before the reply to `hello` that are not JSON objects, such as a login banner: a client skips them."""

CLIENT_LINE_BYTES = 1024 * 1024
"""A line from a worker. A longer one is a violation: the host kills the worker."""

EFFORT_BUDGETS = {"minimal": 256, "low": 1024, "medium": 8192}
"""Reasoning budgets, in tokens, of efforts that a chat template does not take. Higher efforts have none."""
