"""Every event of protocol 1. The field `event` tells them apart; `done` has a form for each command.

A field that a line lacks is None here: writers leave absent fields out, and readers ignore fields that they do not
know.
"""

from typing import Final

from .base import Count, Done, Error, Event, Milliseconds, Seconds
from .embeddings import Embedding, EmbedDone
from .generation import (
    CacheMiss,
    Channel,
    Choice,
    FinishReason,
    Logprob,
    ResultDone,
    Timings,
    Token,
    TokenizeDone,
    ToolCall,
    TopLogprob,
    Usage,
)
from .model import CacheDone, ModelDone, Progress, Quantization, RankInfo, SamplingDefaults, Stage, Unit, UnloadDone
from .session import (
    CacheStats,
    CancelDone,
    HelloDone,
    Limits,
    MemoryStats,
    PingDone,
    QuitDone,
    RankGroup,
    RequestStats,
    State,
    StatsDone,
    TokenStats,
)
from .speech import Audio, SpeakDone
from .transcription import Segment, TranscribeDone, Word

__all__ = [
    "EVENTS",
    "Audio",
    "CacheDone",
    "CacheMiss",
    "CacheStats",
    "CancelDone",
    "Channel",
    "Choice",
    "Count",
    "Done",
    "EmbedDone",
    "Embedding",
    "Error",
    "Event",
    "FinishReason",
    "HelloDone",
    "Limits",
    "Logprob",
    "MemoryStats",
    "Milliseconds",
    "ModelDone",
    "PingDone",
    "Progress",
    "Quantization",
    "QuitDone",
    "RankGroup",
    "RankInfo",
    "RequestStats",
    "ResultDone",
    "SamplingDefaults",
    "Seconds",
    "Segment",
    "SpeakDone",
    "Stage",
    "State",
    "StatsDone",
    "Timings",
    "Token",
    "TokenStats",
    "TokenizeDone",
    "ToolCall",
    "TopLogprob",
    "TranscribeDone",
    "Unit",
    "UnloadDone",
    "Usage",
    "Word",
]

EVENTS: Final[dict[str, type[Event]]] = {
    "progress": Progress,
    "token": Token,
    "tool_call": ToolCall,
    "embedding": Embedding,
    "segment": Segment,
    "audio": Audio,
    "error": Error,
    "done": Done,
}
"""Every event by the value of `event`."""
