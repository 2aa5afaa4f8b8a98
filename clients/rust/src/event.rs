use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::results::Model;

/// Reads null like an absent field, as the protocol wants it.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Reads an object alone: serde's own structs can be lists as well.
pub(crate) fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<T, D::Error> {
    let object = Map::deserialize(from)?;
    serde_json::from_value(Value::Object(object)).map_err(D::Error::custom)
}

/// A part of an answer. The last one is the [`Finish`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Generated tokens and their text.
    Token(Token),
    /// A part of a tool call.
    ToolCall(ToolCallDelta),
    /// How far a long operation has come.
    Progress(Progress),
    /// The end of the answer.
    Finish(Finish),
    /// An event of a later version of the protocol, as JSON.
    Unknown(Value),
}

impl Event {
    /// Return the answer's new text. It is empty for reasoning, tool calls, progress and the end.
    pub fn text(&self) -> &str {
        match self {
            Event::Token(token) if token.channel == Channel::Content => &token.text,
            _ => "",
        }
    }
}

/// A step of a load. The last one has the model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LoadEvent {
    /// How far the load has come.
    Progress(Progress),
    /// The loaded model.
    Loaded(Box<Model>),
}

/// What a [`Token`] belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Channel {
    /// The answer.
    #[default]
    Content,
    /// What a reasoning model writes before its answer.
    Reasoning,
    /// A channel of a later version.
    #[serde(untagged)]
    Unknown(String),
}

/// Generated tokens and their text, which may be empty: text ends at the end of a character.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Text of the channel. [`Event::text`] is the answer's.
    #[serde(rename = "token")]
    pub text: String,
    /// The tokens.
    pub token_ids: Vec<u64>,
    /// Number of the answer, with `n` above 1.
    #[serde(default, deserialize_with = "or_default")]
    pub choice: usize,
    /// The channel.
    #[serde(default, deserialize_with = "or_default")]
    pub channel: Channel,
    /// Whether the text belongs to a call that was cut off.
    #[serde(default, deserialize_with = "or_default")]
    pub call: bool,
    /// One for each of `token_ids`, if they were requested.
    pub logprobs: Option<Vec<Logprob>>,
    /// The next tokens of the prompt, if they were requested. Such an event has no text.
    pub prompt_logprobs: Option<Vec<Logprob>>,
}

/// The log-probability of a token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Logprob {
    /// The token.
    pub token_id: u64,
    /// The token's own text, at most 256 characters.
    pub token: String,
    /// Natural logarithm of its probability. None for a probability of 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprob: Option<f64>,
    /// Its bytes, if its text alone is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Vec<u64>>,
    /// The most probable tokens in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top: Option<Vec<TopLogprob>>,
    /// The part of its text that the answer contains. None: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// One of the most probable tokens in a place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopLogprob {
    /// The token.
    pub token_id: u64,
    /// The token's own text, at most 256 characters.
    pub token: String,
    /// Natural logarithm of its probability. None for a probability of 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprob: Option<f64>,
    /// Its bytes, if its text alone is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Vec<u64>>,
}

/// A part of a tool call. [`Accumulator`](crate::Accumulator) joins the parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCallDelta {
    /// Number of the answer, with `n` above 1.
    #[serde(default, deserialize_with = "or_default")]
    pub choice: usize,
    /// Number of the call in its answer.
    pub index: usize,
    /// In the first part: the call's id.
    pub call_id: Option<String>,
    /// In the first part: the function.
    pub name: Option<String>,
    /// The next part of the arguments' JSON text.
    pub arguments: Option<String>,
    /// In the last part: whether the call is whole. Run no other call.
    pub complete: Option<bool>,
}

/// How far a long operation has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Such as "resolve", "download", "read", "warm_up", "prefill" or "transcribe".
    pub stage: String,
    /// Amount done.
    pub current: u64,
    /// Whole amount, if it is known.
    pub total: Option<u64>,
    /// Such as "bytes", "tokens", "steps" or "seconds".
    pub unit: String,
}

/// The reason why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model ended its turn, or a stop string came.
    Stop,
    /// `max_tokens` was reached, or the context is full.
    Length,
    /// The answer ends with tool calls.
    ToolCalls,
    /// The request was cancelled. The text so far is valid.
    Cancelled,
    /// `timeout_ms` was reached. The text so far is valid.
    Timeout,
    /// Memory ran out. The text so far is valid.
    Capacity,
    /// A reason of a later version.
    #[serde(other)]
    Other,
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// The reason.
    pub finish_reason: FinishReason,
    /// The stop string that ended the answer.
    pub stop: Option<String>,
    /// The seed in use.
    pub seed: u64,
    /// Numbers of tokens.
    #[serde(deserialize_with = "object")]
    pub usage: Usage,
    /// Milliseconds and rates.
    #[serde(deserialize_with = "object")]
    pub timings: Timings,
    /// With `n` above 1: how each answer ended.
    pub choices: Option<Vec<Choice>>,
    /// With `cache_report`: where the prompt ceased to be known to the cache.
    pub cache_miss: Option<CacheMiss>,
}

/// Where a prompt ceased to be known to the cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CacheMiss {
    /// Tokens with which the prompt begins like a cached one.
    pub known_tokens: u64,
    /// Text of the next one. None: what is cached ends there.
    pub token: Option<String>,
}

/// The end of one of several answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The reason.
    pub finish_reason: FinishReason,
    /// Its tokens.
    pub completion_tokens: u64,
    /// The stop string that ended the answer.
    pub stop: Option<String>,
}

/// Numbers of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Prompt tokens that came from the cache.
    pub cached_tokens: u64,
    /// Of all choices, end-of-turn tokens included.
    pub completion_tokens: u64,
    /// Completion tokens of reasoning.
    #[serde(default, deserialize_with = "or_default")]
    pub reasoning_tokens: u64,
    /// Completion tokens that the draft model proposed.
    #[serde(default, deserialize_with = "or_default")]
    pub draft_accepted: u64,
}

/// Milliseconds since the worker read the request, and rates. A value is None if the request ended before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// Until the engine started the request.
    pub queued_ms: f64,
    /// From the engine's start to the first token.
    pub prefill_ms: Option<f64>,
    /// Until the first token.
    pub first_token_ms: Option<f64>,
    /// Until the end.
    pub total_ms: f64,
    /// Prompt tokens processed per second.
    pub prompt_tps: Option<f64>,
    /// Tokens generated per second after the first.
    pub decode_tps: Option<f64>,
}

/// A part of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Number of the segment.
    pub index: usize,
    /// Start, in seconds of the recording.
    pub start_s: f64,
    /// End, in seconds of the recording.
    pub end_s: f64,
    /// Its text.
    pub text: String,
    /// Its words, with `words` of [`Transcribe`](crate::Transcribe).
    pub words: Option<Vec<Word>>,
}

/// A word of a transcript, with the white space and punctuation that belong to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Word {
    /// Its text.
    pub text: String,
    /// Start, in seconds of the recording.
    pub start_s: f64,
    /// End, in seconds of the recording.
    pub end_s: f64,
}

/// A part of a speech.
#[derive(Debug, Clone, PartialEq)]
pub struct AudioChunk {
    /// Number of the part.
    pub index: usize,
    /// Samples per second, the same in all parts.
    pub sample_rate: u32,
    /// The samples, of one channel.
    pub samples: Vec<i16>,
}
