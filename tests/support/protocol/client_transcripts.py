r"""Transcripts that are played to all clients: what a worker writes, and what each client's user must get.

The lines are those of a worker, with `$ID` in place of the request's id. A user gets each event with the fields that
this version of the protocol has. So an event is expected as its own line says, unless a transcript states otherwise.
"""

from dataclasses import dataclass, field
from typing import Any, Final

DONE: Final = (
    r'{"event":"done","id":"$ID","finish_reason":"stop","seed":7,'
    r'"usage":{"prompt_tokens":3,"cached_tokens":0,"completion_tokens":2},"timings":{"queued_ms":0.1,"total_ms":2}}'
)
_END: Final[dict[str, Any]] = {
    "event": "done",
    "finish_reason": "stop",
    "seed": 7,
    "usage": {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 2},
    "timings": {"queued_ms": 0.1, "total_ms": 2},
}
_VECTORS: Final[dict[str, Any]] = {
    "event": "done",
    "vectors": [[0.1, -1e-7, -0.0, 3], [1, -0.0, 0.1]],
    "usage": {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 0},
}
_MODEL: Final = (
    r'{"event":"done","id":"$ID","path":"/models/Straße \u6f22","model_type":"qwen3","vocab_size":151936,"layers":28,'
    r'"hidden_size":1024,"context_len":40960,"weights_bytes":9007199254740991,"capabilities":["generate","chat"],'
    r'"quantization":{"bits":4,"group_size":64},"adapter_path":"/a","chat_template_name":"role_content",'
    r'"batch_size":16,"sampling_defaults":{"temperature":0.6,"top_p":0.95,"top_k":20,"min_p":1e-7,'
    r'"repetition_penalty":1.0},"reasoning_efforts":["low","high"]}'
)


@dataclass(frozen=True)
class Transcript:
    """One request, the worker's lines for it, and the events that users get."""

    name: str
    lines: list[str]
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    """The command, unless it is a `generate` whose prompt is the name."""
    expected: list[dict[str, Any]] | None = None
    """The events, if they are not those of the lines."""
    is_whole: bool = False
    """The command's user gets the whole result: only the last event counts."""
    by_client: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    """The events of clients whose users get more than those of others."""

    @property
    def command(self) -> dict[str, Any]:
        """The command, as the drivers get it."""
        return {"cmd": "generate", "prompt": self.name, **self.fields} if "cmd" not in self.fields else self.fields

    @property
    def key(self) -> str:
        """The prompt, path or command for which the worker plays the transcript."""
        return self.command.get("prompt") or self.command.get("path") or self.command["cmd"]


def _token(members: str) -> str:
    return rf'{{"event":"token","id":"$ID",{members}}}'


TRANSCRIPTS: Final = [
    Transcript(
        "plain tokens",
        [
            _token(r'"token":" Once","token_ids":[9038]'),
            _token(r'"token":"","token_ids":[0]'),
            _token(r'"token":" upon","token_ids":[]'),
            _token(r'"token":" a \"time\"\n\t\\/","token_ids":[1,22,333]'),
            _token(r'"token":"é漢😀 e\u0301","token_ids":[9007199254740991]'),
            DONE,
        ],
    ),
    Transcript(
        "spellings of texts and numbers",
        [
            _token(r'"token":"\u0041\/\b\f\r\u0000\u001f\u007f\u0085\u2028\u2029\ufeff\uffff","token_ids":[1]'),
            _token(r'"token":"\ud83d\ude00 \ud834\udd1e","token_ids":[1]'),
            _token(r'"token":"👨‍👩‍👧 \u200d<&>","token_ids":[1]'),
            r' { "token_ids" : [ 1 , 2 ] , "token" : "a" , "id" : "$ID" , "event" : "\u0074oken" } ' + "\r",
            _token(r'"token":"first","token_ids":[1],"token":"last","token_ids":[2]'),
            DONE,
        ],
        expected=[
            {"event": "token", "token": "A/\b\f\r\0\x1f\x7f\x85\u2028\u2029\ufeff\uffff", "token_ids": [1]},
            {"event": "token", "token": "\U0001f600 \U0001d11e", "token_ids": [1]},
            {"event": "token", "token": "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u200d<&>", "token_ids": [1]},
            {"event": "token", "token": "a", "token_ids": [1, 2]},
            {"event": "token", "token": "last", "token_ids": [2]},
            _END,
        ],
    ),
    Transcript(
        "log-probabilities",
        [
            _token(
                r'"token":" a","token_ids":[264],"logprobs":[{"token_id":264,"token":" a",'
                r'"logprob":-0.2231435513142097,"top":[{"token_id":264,"token":" a","logprob":-0.0},'
                r'{"token_id":1,"token":"\ufffd","logprob":-1e-7,"bytes":[240,159]},{"token_id":2,"token":"never"}]}]'
            ),
            _token(
                r'"token":"b","token_ids":[1,2,3],"logprobs":[{"token_id":1,"token":"b","logprob":-5e-324,"text":""},'
                r'{"token_id":2,"token":"c","logprob":-1.7976931348623157e308},'
                r'{"token_id":3,"token":"d","logprob":-25e-1,"bytes":[100],"text":"d"}]'
            ),
            _token(
                r'"token":"","token_ids":[1,2],"logprobs":[{"token_id":1,"token":"","logprob":-1},'
                r'{"token_id":2,"token":"","logprob":-0.30000000000000004,"top":[]}]'
            ),
            DONE,
        ],
    ),
    Transcript(
        "log-probabilities of the prompt",
        [
            _token(
                r'"token":"","token_ids":[],"prompt_logprobs":[{"token_id":5,"token":"a"},'
                r'{"token_id":6,"token":"b","logprob":-1e-300}]'
            ),
            DONE,
        ],
    ),
    Transcript(
        "reasoning and tool calls",
        [
            _token(r'"token":"So.","token_ids":[1],"channel":"reasoning"'),
            _token(r'"token":"","token_ids":[2],"channel":"reasoning"'),
            _token(r'"token":"Well:","token_ids":[3],"channel":"content"'),
            r'{"event":"tool_call","id":"$ID","index":0,"call_id":"call_1","name":"weather","arguments":"{\"city\":"}',
            r'{"event":"tool_call","id":"$ID","index":0,"arguments":"\"Rom\u00e9 \ud83d\ude00\",'
            r'\"n\":12345678901234567890}"}',
            r'{"event":"tool_call","id":"$ID","index":0,"complete":true}',
            r'{"event":"tool_call","id":"$ID","index":1,"call_id":"call_2","name":"none","arguments":"{","complete":false}',
            _token(r'"token":"<none>{","token_ids":[],"call":true'),
            DONE.replace('"stop"', '"tool_calls"'),
        ],
    ),
    Transcript(
        "choices and a whole end",
        [
            r'{"event":"progress","id":"$ID","stage":"prefill","current":0,"total":9007199254740991,"unit":"tokens"}',
            r'{"event":"progress","id":"$ID","stage":"prefill","current":9007199254740990,"unit":"tokens"}',
            _token(r'"token":"a","token_ids":[1],"choice":0'),
            _token(r'"token":"b","token_ids":[2],"choice":1'),
            _token(r'"token":"c","token_ids":[3],"choice":1,"channel":"reasoning"'),
            r'{"event":"done","id":"$ID","finish_reason":"length","stop":" \n","seed":9007199254740991,'
            r'"usage":{"prompt_tokens":9007199254740991,"cached_tokens":2,"completion_tokens":3,"reasoning_tokens":1,'
            r'"draft_accepted":1},"timings":{"queued_ms":1e-7,"prefill_ms":21.4,"first_token_ms":21.5,"total_ms":1e21,'
            r'"prompt_tps":1542.1,"decode_tps":173.90000000000001},"choices":[{"finish_reason":"length",'
            r'"completion_tokens":1,"stop":" \n"},{"finish_reason":"capacity","completion_tokens":2}]}',
        ],
        fields={"n": 2},
    ),
    Transcript(
        "nulls are absent",
        [
            r'{"event":"progress","id":"$ID","stage":"prefill","current":1,"total":null,"unit":"tokens"}',
            _token(
                r'"token":"a","token_ids":[1],"choice":null,"channel":null,"call":null,"prompt_logprobs":null,'
                r'"logprobs":[{"token_id":1,"token":"a","logprob":null,"bytes":null,"top":null,"text":null}]'
            ),
            r'{"event":"tool_call","id":"$ID","index":0,"choice":null,"call_id":null,"name":null,"arguments":null,'
            r'"complete":null}',
            r'{"event":"done","id":"$ID","finish_reason":"stop","stop":null,"seed":7,"usage":{"prompt_tokens":3,'
            r'"cached_tokens":0,"completion_tokens":2,"reasoning_tokens":null,"draft_accepted":null},"timings":'
            r'{"queued_ms":0.1,"prefill_ms":null,"first_token_ms":null,"total_ms":2,"prompt_tps":null,"decode_tps":null},'
            r'"choices":null}',
        ],
    ),
    Transcript(
        "an error with fields",
        [
            r'{"event":"error","id":"$ID","error":"messages[2]: \u201cno\u201d \ud83d\ude00","code":"invalid_request",'
            r'"retryable":false,"field":"messages[2].content[0].text"}'
        ],
    ),
    Transcript(
        "an error after text",
        [
            _token(r'"token":"Half","token_ids":[1]'),
            r'{"event":"error","id":"$ID","error":"the engine failed","code":"engine_error","retryable":true,'
            r'"field":null,"bad_id":"x","protocols":[1,2]}',
        ],
    ),
    Transcript(
        "a load",
        [
            r'{"event":"progress","id":"$ID","stage":"download","current":1048576,"unit":"bytes"}',
            r'{"event":"progress","id":"$ID","stage":"warm_up","current":1,"total":2,"unit":"steps"}',
            _MODEL,
        ],
        fields={"cmd": "load", "path": "whole"},
    ),
    Transcript(
        "a load that fails",
        [r'{"event":"error","id":"$ID","error":"no","code":"bad_model","retryable":false,"loaded":false}'],
        fields={"cmd": "load", "path": "broken"},
    ),
    Transcript("the model", [_MODEL], fields={"cmd": "info"}),
    Transcript(
        "a ping",
        [r'{"event":"done","id":"$ID","state":"running","step_age_ms":-0.0,"active":1,"queued":2}'],
        fields={"cmd": "ping"},
    ),
    Transcript(
        "counters",
        [
            r'{"event":"done","id":"$ID","uptime_ms":1e-7,"requests":{"accepted":1,"active":2,"queued":3,"done":4,'
            r'"errors":5,"cancelled":6},"tokens":{"prompt":9007199254740991,"completion":0},"memory":{"active_bytes":1,'
            r'"cache_bytes":2,"peak_bytes":3},"outbox_bytes":4,"cache":{"bytes":1,"budget_bytes":2,"entries":3,"hits":4,'
            r'"misses":5,"saved_tokens":6,"evictions":7,"mismatches":8}}'
        ],
        fields={"cmd": "stats"},
    ),
    Transcript(
        "the tokens of a prompt",
        [
            _token(r'"token":"<s>é","token_ids":[1,2]'),
            _token(r'"token":" \ud83d\ude00","token_ids":[9007199254740991]'),
            r'{"event":"done","id":"$ID","count":3}',
        ],
        fields={"cmd": "tokenize", "prompt": "the tokens of a prompt"},
        expected=[
            {"event": "done", "text": "<s>é \U0001f600", "token_ids": [1, 2, 9007199254740991], "count": 3},
        ],
        is_whole=True,
    ),
    Transcript(
        "vectors",
        [
            r'{"event":"embedding","id":"$ID","index":1,"dims":3,"embedding":"AACAPwAAAIDNzMw9"}',
            r'{"event":"embedding","id":"$ID","index":0,"dims":4,"embedding":[0.1,-1e-7]}',
            r'{"event":"embedding","id":"$ID","index":0,"offset":2,"dims":4,"embedding":[-0.0,3]}',
            r'{"event":"done","id":"$ID","count":2,"dimensions":3,"usage":{"prompt_tokens":3,"cached_tokens":0,'
            r'"completion_tokens":0}}',
        ],
        fields={"cmd": "embed", "input": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        expected=[_VECTORS],
        by_client={"node": [{**_VECTORS, "dimensions": 3}]},
        is_whole=True,
    ),
    Transcript(
        "a recording",
        [
            r'{"event":"progress","id":"$ID","stage":"transcribe","current":0,"total":5,"unit":"seconds"}',
            r'{"event":"segment","id":"$ID","index":0,"start_s":0,"end_s":1.1,"text":"Buy \u00e9.","words":['
            r'{"text":"Buy ","start_s":-0.0,"end_s":1e-7}]}',
            r'{"event":"segment","id":"$ID","index":1,"start_s":1.1,"end_s":2.5,"text":" End.","words":null}',
            r'{"event":"done","id":"$ID","finish_reason":"tired","duration_s":2.5000000000000004,"language":"en",'
            r'"timings":{"queued_ms":0.1,"total_ms":2}}',
        ],
        fields={"cmd": "transcribe", "audio": {"path": "/a.wav"}},
        expected=[
            {
                "event": "done",
                "text": "Buy é. End.",
                "segments": [
                    {
                        "index": 0,
                        "start_s": 0,
                        "end_s": 1.1,
                        "text": "Buy é.",
                        "words": [{"text": "Buy ", "start_s": -0.0, "end_s": 1e-7}],
                    },
                    {"index": 1, "start_s": 1.1, "end_s": 2.5, "text": " End."},
                ],
                "language": "en",
                "duration_s": 2.5000000000000004,
                "finish_reason": "other",
            }
        ],
        is_whole=True,
    ),
    Transcript(
        "a speech",
        [
            r'{"event":"audio","id":"$ID","index":0,"sample_rate":8000,"audio":"AQD//w=="}',
            r'{"event":"audio","id":"$ID","index":1,"sample_rate":8000,"audio":"AIA="}',
            r'{"event":"done","id":"$ID","finish_reason":"length","duration_s":0.000375,"seed":7,'
            r'"timings":{"queued_ms":0.1,"total_ms":2}}',
        ],
        fields={"cmd": "speak", "text": "a"},
        expected=[
            {
                "event": "done",
                "samples": [1, -1, -32768],
                "sample_rate": 8000,
                "seed": 7,
                "duration_s": 0.000375,
                "finish_reason": "length",
            }
        ],
        is_whole=True,
    ),
    Transcript(
        "a later version",
        [
            r'{"event":"mood","id":"$ID","value":[1,null,{"a":-0.0}]}',
            r'{"event":"mood","id":"of nobody"}',
            r'{"event":"toString","id":"$ID"}',
            r'{"event":"progress","id":"$ID","stage":7}',
            _token(r'"token":"a","token_ids":[1],"mood":{"b":[1e-7]}'),
            _token(r'"token":"music","token_ids":[2],"channel":"audio"'),
            DONE.replace('"stop"', '"bored"').replace('"seed":7', '"seed":7,"mood":1'),
        ],
        expected=[
            {"event": "token", "token": "a", "token_ids": [1]},
            {"event": "token", "token": "music", "token_ids": [2], "channel": "audio"},
            {**_END, "finish_reason": "other"},
        ],
        by_client={
            "rust": [
                {"event": "unknown", "value": [1, None, {"a": -0.0}]},
                {"event": "unknown"},
                {"event": "token", "token": "a", "token_ids": [1]},
                {"event": "token", "token": "music", "token_ids": [2], "channel": "audio"},
                {**_END, "finish_reason": "other"},
            ],
            "node": [
                {"event": "token", "token": "a", "token_ids": [1], "mood": {"b": [1e-7]}},
                {"event": "token", "token": "music", "token_ids": [2], "channel": "audio"},
                {**_END, "finish_reason": "other"},
            ],
            "c": [
                {"event": "token", "token": "a", "token_ids": [1], "mood": {"b": [1e-7]}},
                {"event": "token", "token": "music", "token_ids": [2], "channel": "audio"},
                {**_END, "finish_reason": "other", "mood": 1},
            ],
        },
    ),
    Transcript(
        "an error of a later version",
        [r'{"event":"error","id":"$ID","error":"no","code":"too_tired","retryable":true}'],
    ),
]
