//! From a worker's JSON to events.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::RequestError;
use crate::event::{AudioChunk, Finish, Progress, Segment, Token, ToolCallDelta, Usage, object, or_default};
use crate::results::{Hello, Model, PingReply, SpeechEnd, Stats, TranscriptEnd};

/// An event of any command.
#[derive(Debug)]
pub(crate) enum RawEvent {
    Token(Token),
    ToolCall(ToolCallDelta),
    Progress(Progress),
    Embedding(EmbeddingPart),
    Segment(Segment),
    Audio(AudioChunk),
    Unknown(Value),
    Done(Done),
}

/// The `done` of a command.
#[derive(Debug)]
pub(crate) enum Done {
    Hello(Hello),
    Model(Box<Model>),
    Freed(Freed),
    Answer(Finish),
    Count(Count),
    Embed(EmbedEnd),
    Transcript(TranscriptEnd),
    Speech(SpeechEnd),
    Ping(PingReply),
    Stats(Stats),
    Cancel,
    Quit,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Freed {
    pub freed_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Count {
    pub count: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Matched {
    pub matched: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EmbedEnd {
    pub count: usize,
    pub dimensions: usize,
    #[serde(deserialize_with = "object")]
    pub usage: Usage,
}

/// A part of a vector.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EmbeddingPart {
    pub index: usize,
    #[serde(default, deserialize_with = "or_default")]
    pub offset: usize,
    pub dims: usize,
    pub embedding: Numbers,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Numbers {
    Base64(String),
    List(Vec<f32>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AudioPart {
    pub index: usize,
    pub sample_rate: u32,
    pub audio: String,
}

/// A token event that has only the fields of every token event. Almost all lines are such events, and are read at once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlainToken<'a> {
    #[serde(rename = "event")]
    _event: &'a str,
    pub id: &'a str,
    pub token: String,
    pub token_ids: Vec<u64>,
}

pub(crate) const TOKEN_START: &[u8] = br#"{"event":"token","id":""#;

/// Return whether this version knows an event. `done` and `error` are not meant.
pub(crate) fn is_known(kind: &str) -> bool {
    matches!(kind, "token" | "tool_call" | "progress" | "embedding" | "segment" | "audio")
}

/// Return an event that is neither `done` nor `error`, or what is wrong with it.
pub(crate) fn event(kind: &str, object: Map<String, Value>) -> Result<RawEvent, String> {
    Ok(match kind {
        "token" => RawEvent::Token(bind(object)?),
        "tool_call" => RawEvent::ToolCall(bind(object)?),
        "progress" => RawEvent::Progress(bind(object)?),
        "embedding" => RawEvent::Embedding(embedding(bind(object)?)?),
        "segment" => RawEvent::Segment(bind(object)?),
        "audio" => RawEvent::Audio(audio(bind(object)?)?),
        _ => RawEvent::Unknown(Value::Object(object)),
    })
}

/// Return the `done` of a command, or what is wrong with it.
pub(crate) fn done(command: &str, object: Map<String, Value>) -> Result<Done, String> {
    Ok(match command {
        "hello" => Done::Hello(bind(object)?),
        "load" | "info" => Done::Model(bind(object)?),
        "unload" | "cache" => Done::Freed(bind(object)?),
        "generate" | "chat" => Done::Answer(bind(object)?),
        "tokenize" => Done::Count(bind(object)?),
        "embed" => Done::Embed(bind(object)?),
        "transcribe" => Done::Transcript(bind(object)?),
        "speak" => Done::Speech(bind(object)?),
        "ping" => Done::Ping(bind(object)?),
        "stats" => Done::Stats(bind(object)?),
        "cancel" => bind::<Matched>(object).map(|_| Done::Cancel)?,
        _ => Done::Quit,
    })
}

pub(crate) fn bind<T: DeserializeOwned>(object: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
}

/// Return the members of an error event, or what is wrong with it.
pub(crate) fn failure(object: Map<String, Value>) -> Result<RequestError, String> {
    bind(object)
}

/// Return the part with numbers in place of base64.
fn embedding(mut part: EmbeddingPart) -> Result<EmbeddingPart, String> {
    if let Numbers::Base64(text) = &part.embedding {
        let data = words(text).ok_or("`embedding` must be base64 of float32, or a list of numbers")?;
        part.embedding = Numbers::List(data.iter().map(|&word| f32::from_le_bytes(word)).collect());
    }
    Ok(part)
}

fn audio(part: AudioPart) -> Result<AudioChunk, String> {
    let data = words(&part.audio).ok_or("`audio` must be base64 of samples of 16 bits")?;
    let samples = data.iter().map(|&word| i16::from_le_bytes(word)).collect();
    Ok(AudioChunk { index: part.index, sample_rate: part.sample_rate, samples })
}

/// Return the bytes of base64 as groups of N, or None if the text is something else.
fn words<const N: usize>(text: &str) -> Option<Vec<[u8; N]>> {
    let data = BASE64_STANDARD.decode(text).ok()?;
    let (words, rest) = data.as_chunks::<N>();
    rest.is_empty().then(|| words.to_vec())
}
