"""Questions on the protocol, with answers that agree with PROTOCOL.md."""

from typing import Final

from . import phrases
from .example import Example, asked
from .source import Source

COMMANDS: Final = {
    "hello": "hello agrees on a protocol version and tells what the worker is. It is optional, and best sent first.",
    "load": "load loads a model in place of the present one. It is a barrier: earlier requests end first, later ones "
    "wait.",
    "unload": "unload drops the model and gives its memory back. Its done carries freed_bytes.",
    "generate": "generate continues a prompt as it stands, without a chat template.",
    "chat": "chat answers a conversation, written into the model's chat template.",
    "tokenize": "tokenize tells what a prompt comes to in tokens, without generating. Its done carries count.",
    "embed": "embed turns each input into a vector. Its done carries count and dimensions.",
    "transcribe": "transcribe writes down what is said in a recording. Its done carries language and duration_s.",
    "cache": "cache drops what is kept of earlier prompts and answers. Its done carries freed_bytes.",
    "info": "info tells what model is loaded, or fails with not_loaded.",
    "cancel": "cancel ends one request by its target, or all that can be cancelled. Its done carries matched.",
    "ping": "ping asks whether the worker lives and makes progress. It is answered at once, with the worker's state.",
    "stats": "stats asks for the worker's counters: requests, tokens and memory since its start.",
    "quit": "quit ends the worker. Its done is the last line; with drain, unfinished requests run to their end first.",
}
EVENTS: Final = {
    "progress": "progress tells how far a long step has come: stage, current, total and unit.",
    "token": "token carries generated token ids and the text that became certain with them.",
    "tool_call": "tool_call carries a tool call, or a piece of one: call_id and name first, then arguments, then "
    "complete.",
    "embedding": "embedding carries the vector of an input, or a piece of one.",
    "segment": "segment carries a stretch of a transcript: its text, and when it starts and ends.",
    "done": "done ends a request that succeeded. It is a terminal, and carries the result.",
    "error": "error tells of a failure: a sentence, a code, and whether a retry can help. With an id it ends that "
    "request.",
}
CODES: Final = {
    "parse_error": "parse_error: the line is not UTF-8, not JSON or not an object.",
    "line_too_long": "line_too_long: the line is longer than 32 MiB. It was skipped.",
    "invalid_request": "invalid_request: a field is missing, unknown, of the wrong type or out of range; field names "
    "it.",
    "unknown_command": "unknown_command: this worker has no such command.",
    "duplicate_id": "duplicate_id: the id is in flight. bad_id names it, and that request goes on.",
    "unsupported_protocol": "unsupported_protocol: worker and host speak no common version. The worker exits with "
    "code 76.",
    "busy": "busy: there are too many unfinished requests. Send it again when some have ended.",
    "draining": "draining: the worker is ending and takes no further requests.",
    "cancelled": "cancelled: a command without a partial result was cancelled.",
    "not_loaded": "not_loaded: no model is loaded. Send a load first.",
    "model_not_found": "model_not_found: the model is not on disk and was not fetched.",
    "bad_model": "bad_model: the model's files are damaged or incomplete.",
    "unsupported": "unsupported: the model, or this installation, cannot serve this.",
    "context_overflow": "context_overflow: the prompt is longer than the model's context.",
    "out_of_memory": "out_of_memory: it can never fit into memory.",
    "engine_error": "engine_error: the model library failed on this request. Other requests go on.",
    "internal": "internal: a bug in the worker. All requests end so, then the worker exits with code 70.",
    "worker_lost": "worker_lost is never on the wire: hosts report it when the pipe ended before a request's terminal.",
    "timeout": "timeout is never on the wire: hosts report it when they gave up waiting.",
}
RETRYABLE: Final = {"busy": "Yes, busy is retryable.", "model_not_found": "model_not_found is retryable only when the "
                    "network failed."}  # fmt: skip
EXITS: Final = {
    "0": "Exit code 0: a clean end, after quit, end of input, SIGTERM or SIGHUP.",
    "64": "Exit code 64: wrong use of the worker's command line.",
    "70": "Exit code 70: a bug in the worker, or its engine died.",
    "74": "Exit code 74: the host is gone.",
    "76": "Exit code 76: the host speaks no protocol version of the worker's.",
}
FINISHES: Final = {
    "stop": "stop: the model ended its turn, or a stop string came.",
    "length": "length: max_tokens was reached, or the context is full.",
    "cancelled": "cancelled: the request was cancelled; the text until then is valid.",
}

_ABOUT: Final = (
    "What does {x} do?", "Explain {x}.", "What is {x}?", "What is {x} for?", "Tell me about {x}.", "Describe {x}.",
    "Can you explain {x}?", "Please explain {x}.", "How does {x} work?", "What does {x} mean?", "What about {x}?",
    "When is {x} used?", "I do not understand {x}.", "Tell me what {x} is.", "Please describe {x}.",
    "Explain {x} to me.", "What do I need {x} for?", "What's {x}?", "Say what {x} does.", "Give me a summary of {x}.",
    "Why is there {x}?", "I would like to know what {x} is.", "Could you tell me about {x}?", "Help me with {x}.",
    "What can you tell me about {x}?", "In lmwire, what is {x}?", "What does {x} do in lmwire?", "Define {x}.",
    "So, what is {x}?", "Do you know {x}?",
)  # fmt: skip
_NOUNS: Final = ("what {x} is", "what {x} does", "what {x} means", "the meaning of {x}", "the purpose of {x}", "{x}",
                 "what {x} is for")  # fmt: skip
_GOT: Final = (
    "Why did I get {x}?", "I got {x}. What does that mean?", "My request failed with {x}. Why?", "I see {x}. Why?",
    "The worker answered {x}. Why?", "What went wrong when I get {x}?", "When does the worker send {x}?",
    "My host received {x}. What is wrong?", "What should I do about {x}?", "It says {x}. What is that?",
)  # fmt: skip
_KINDS: Final = {
    "command": ("the command {x}", "the {x} command", "the command `{x}`", "`{x}`", "{x}"),
    "event": ("the event {x}", "the {x} event", "the event `{x}`", "a {x} event", "`{x}` events"),
    "code": ("the error code {x}", "the error {x}", "the code `{x}`", "the {x} error", "the error code `{x}`"),
    "exit": ("exit code {x}", "the exit code {x}", "exit status {x}", "the worker's exit code {x}", "exit code `{x}`"),
    "finish": ("the finish reason {x}", "finish_reason {x}", "finish reason `{x}`", "the finish_reason `{x}`",
               'finish_reason "{x}"'),
}  # fmt: skip
_RETRY: Final = (
    "Is {x} retryable?", "Can I retry after {x}?", "Should I send it again after {x}?", "May I retry {x}?",
    "Does a retry help with {x}?", "Is it worth to retry {x}?", "Can a request succeed later after {x}?",
    "Is the error {x} retryable?", "Can I try again after {x}?", "Is the code {x} retryable?",
)  # fmt: skip

_MORE: Final = (
    ("The commands are hello, load, unload, generate, chat, tokenize, embed, transcribe, cache, info, cancel, ping, "
     "stats and quit.",
     ("Which commands are there?", "What commands are there?", "List the commands.", "Name all commands.",
      "What are the commands?", "Which commands does lmwire have?", "Tell me the commands.", "Show me all commands.",
      "What commands can I send?", "Give me a list of the commands.")),
    ("There are seven events: progress, token, tool_call, embedding, segment, done and error.",
     ("Which events are there?", "What events are there?", "List the events.", "Name all events.",
      "What are the events?", "Which events does the worker send?", "Tell me the events.", "Show me all events.",
      "What events can I get?", "Give me a list of the events.")),
    ("done and error are terminals: every request ends with exactly one of them.",
     ("What is a terminal?", "Which events are terminals?", "How does a request end?", "What are terminals?",
      "Explain terminals.", "Which events end a request?", "What ends a request?",
      "How do I know that a request ended?",
      "What does terminal mean?", "Tell me what a terminal is.")),
    ("hello, cancel, ping, stats and quit are out of band: they are answered at once.",
     ("Which commands are out of band?", "What does out of band mean?", "Which commands are answered at once?",
      "Explain out of band.", "What are out-of-band commands?", "Which commands do not wait?",
      "Name the out-of-band commands.", "List the commands that are out of band.", "What is out of band?",
      "Tell me which commands are out of band.")),
    ("load and unload are barriers: earlier requests end first, and later ones wait for them.",
     ("Which commands are barriers?", "What is a barrier?", "What does barrier mean?", "Explain barriers.",
      "Name the barriers.", "Which commands wait for others?", "What are barriers?", "Tell me what a barrier is.",
      "List the barriers.", "Which command is a barrier?")),
    ("A line to the worker is at most 32 MiB; a line from the worker is under 60 KiB.",
     ("How long can a line be?", "What is the limit of a line?", "How long may a line be?", "How large is a line?",
      "What is the longest line?", "Is there a limit for lines?", "How many bytes can a line have?",
      "What is the maximum length of a line?", "How big can a line get?", "Tell me the limit of a line.")),
    ("An id is a string of 1 to 128 bytes. It is in flight until its terminal, and may be used again afterwards.",
     ("What is an id?", "What can an id be?", "How long can an id be?", "Explain ids.", "Can I use an id again?",
      "What are ids?", "What does in flight mean?", "How do ids work?", "May I reuse an id?", "Tell me about ids.")),
    ("The default temperature is 0, which is greedy: always the most probable token.",
     ("What is the default temperature?", "What does temperature 0 mean?", "Which temperature is the default?",
      "Tell me about temperature.", "What is greedy?", "Explain temperature.", "What is temperature?",
      "How do I set the temperature?", "What is the temperature by default?", "What does temperature do?")),
    ("busy is retryable, and model_not_found when the network failed. The member retryable decides.",
     ("Which errors are retryable?", "Which error codes are retryable?", "Which codes can be retried?",
      "When can I retry?", "Which errors can I retry?", "What is retryable?", "When should I retry?",
      "List the retryable errors.", "What errors are worth a retry?", "Name the retryable codes.")),
    ("The states are idle, loading, running, paused and draining.",
     ("Which states are there?", "What states does a worker have?", "List the states.", "What can state be?",
      "Name the states of a worker.", "What states can ping report?", "Which states does ping report?",
      "What are the states?", "What is the state in ping?", "Tell me the states.")),
)  # fmt: skip
"""Further answers, each with its questions."""


def command(source: Source) -> Example:
    """Ask for the purpose of a command."""
    name = source.any(list(COMMANDS))
    return asked("protocol: commands", _about(source, _called(source, "command", name)), COMMANDS[name])


def event(source: Source) -> Example:
    """Ask for the meaning of an event."""
    name = source.any(list(EVENTS))
    return asked("protocol: events", _about(source, _called(source, "event", name)), EVENTS[name])


def code(source: Source) -> Example:
    """Ask for the meaning of an error code, or if a retry may help."""
    name = source.any(list(CODES))
    if source.chance(0.2):
        answer = RETRYABLE.get(name, f"No, {name} is not retryable.")
        return asked(
            "protocol: error codes", phrases.spoken(source, source.one(_RETRY).format(x=_quoted(source, name))), answer
        )
    x = _quoted(source, name) if "_" in name and source.chance(0.5) else _called(source, "code", name)
    return asked("protocol: error codes", _about(source, x, _ABOUT if source.chance(0.6) else _GOT), CODES[name])


def more(source: Source) -> Example:
    """Ask about exit codes, finish reasons and the rest."""
    kind = source.any(["exit", "finish", "more", "more"])
    if kind == "more":
        answer, questions = source.any(_MORE)
        return asked("protocol: the rest", phrases.spoken(source, source.one(questions)), answer)
    answers = EXITS if kind == "exit" else FINISHES
    name = source.any(list(answers))
    return asked("protocol: the rest", _about(source, _called(source, kind, name)), answers[name])


def _about(source: Source, x: str, frames: tuple[str, ...] = _ABOUT) -> str:
    frame = phrases.told(source, source.any(_NOUNS)) if source.chance(0.5) else source.one(frames)
    return phrases.spoken(source, frame.format(x=x))


def _called(source: Source, kind: str, name: str) -> str:
    return source.any(_KINDS[kind]).format(x=name)


def _quoted(source: Source, name: str) -> str:
    return f"`{name}`" if source.chance(0.3) else name
