#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
#![forbid(unsafe_code)]

#[cfg(not(unix))]
compile_error!("lmwire runs on macOS and Linux");

mod answer;
mod builder;
mod circuit_breaker;
mod connection;
mod control;
mod decode;
mod error;
mod event;
mod features;
mod find;
mod format;
mod lines;
mod message;
mod params;
mod process;
mod results;
#[cfg(test)]
mod schema_tests;
mod session;
#[cfg(test)]
mod session_tests;
mod stream;
mod supervisor;
mod tool;
mod watchdog;
mod worker;

pub use answer::{Accumulator, Answer, AnswerChoice};
pub use builder::{ShutdownTimeouts, WorkerBuilder};
pub use circuit_breaker::CircuitBreaker;
pub use error::{Error, ErrorCode, LossReason, RequestError, Result, WorkerLost};
pub use event::{
    AudioChunk, CacheMiss, Channel, Choice, Event, Finish, FinishReason, LoadEvent, Logprob, Progress, Segment,
    Timings, Token, ToolCallDelta, TopLogprob, Usage, Word,
};
pub use format::Format;
pub use message::{Content, Media, Message, Part, Role, ToolCall};
pub use params::{Chat, ContextFile, Embed, Generate, Load, Prompt, Speak, Tokenize, Transcribe};
pub use results::{
    CacheStats, Embeddings, Hello, Limits, MemoryStats, Model, PingReply, Quantization, RankGroup, Ranks, RequestStats,
    SamplingDefaults, Speech, SpeechEnd, Stats, TokenStats, Tokens, Transcript, TranscriptEnd,
};
pub use stream::{AnswerStream, RequestStream};
pub use supervisor::Supervisor;
pub use tool::{Function, Tool, ToolChoice};
pub use worker::Worker;

/// The version of this crate. [`WorkerBuilder::uvx`] starts the same version of the worker.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const PROTOCOL_VERSION: u64 = 1;
