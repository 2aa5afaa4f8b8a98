use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use crate::builder::WorkerBuilder;
use crate::connection::{Connection, OwnedConnection};
use crate::control::{Cache, Nothing};
use crate::decode::{EmbeddingPart, Numbers, RawEvent};
use crate::error::{Error, Result};
use crate::event::{AudioChunk, Event, LoadEvent, Segment};
use crate::features::FeatureSet;
use crate::params::{Chat, Embed, Generate, Load, Speak, Tokenize, Transcribe};
use crate::results::{Embeddings, Hello, Model, PingReply, Speech, Stats, Tokens, Transcript};
use crate::stream::{AnswerStream, Request, RequestStream};

/// Returns the members of a command's own `done`.
macro_rules! done {
    ($done:expr, $variant:ident) => {
        match $done {
            crate::decode::Done::$variant(members) => members,
            other => unreachable!("the session returns the `done` of the command, not {other:?}"),
        }
    };
}
pub(crate) use done;

/// A running worker process. Clones are handles of the same worker.
///
/// When the last handle and the last stream are dropped, the worker's process group is killed. [`Worker::close`] lets it exit
/// by itself.
#[derive(Clone)]
pub struct Worker {
    inner: Arc<Inner>,
}

struct Inner {
    connection: OwnedConnection,
    hello: Hello,
    features: FeatureSet,
    closing: OnceCell<()>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("worker", &self.hello().worker).field("pid", &self.pid()).finish()
    }
}

impl Worker {
    /// Return the options of a start.
    pub fn builder() -> WorkerBuilder {
        WorkerBuilder::default()
    }

    pub(crate) fn new(connection: OwnedConnection, hello: Hello, features: FeatureSet) -> Self {
        Self { inner: Arc::new(Inner { connection, hello, features, closing: OnceCell::new() }) }
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.inner.connection.0
    }

    /// Return the worker's reply to the host's greeting.
    pub fn hello(&self) -> &Hello {
        &self.inner.hello
    }

    /// Return the id of the process that was started: the worker, or a program that leads to it.
    pub fn pid(&self) -> u32 {
        self.connection().process.pid()
    }

    /// Return the last 64 lines of the worker's stderr.
    pub fn stderr(&self) -> Vec<String> {
        self.connection().process.stderr()
    }

    /// Return None while the worker takes requests, and then the error with which they fail.
    pub fn lost(&self) -> Option<Error> {
        self.connection().session.lost()
    }

    /// Wait until the worker's process has ended, and all its requests.
    pub async fn ended(&self) {
        self.connection().done().await;
    }

    /// End the worker, and return when its process is gone. That takes the
    /// [`ShutdownTimeouts`](crate::ShutdownTimeouts) at most, and 5 s more if the process must be killed. Requests in flight
    /// are cancelled, and end with what they have.
    ///
    /// # Errors
    ///
    /// [`Error::StillRunning`] if the system does not end the process.
    pub async fn close(&self) -> Result<()> {
        self.shut_down(false).await
    }

    /// End the worker after all requests in flight have ended by themselves. If the future is dropped before that,
    /// [`Worker::close`] can follow.
    ///
    /// # Errors
    ///
    /// Those of [`Worker::close`].
    pub async fn close_after_requests(&self) -> Result<()> {
        self.shut_down(true).await
    }

    async fn shut_down(&self, drain: bool) -> Result<()> {
        self.inner.closing.get_or_init(|| self.connection().close(drain)).await;
        if self.connection().is_done() {
            return Ok(());
        }
        Err(Error::StillRunning { pid: self.pid() })
    }

    /// Load a model in place of the present one. It can take minutes; [`Worker::load_stream`] reports how far it has come.
    pub async fn load(&self, params: impl Into<Load>) -> Result<Model> {
        Ok(*done!(self.request("load", &params.into()).done(|_| Ok(())).await?, Model))
    }

    /// Load a model, and stream the progress. The request is sent at once.
    pub fn load_stream(&self, params: impl Into<Load>) -> RequestStream<LoadEvent> {
        RequestStream::new(self.request("load", &params.into()), |event| match event {
            RawEvent::Progress(progress) => Some(LoadEvent::Progress(progress)),
            RawEvent::Done(done) => Some(LoadEvent::Loaded(done!(done, Model))),
            _ => None,
        })
    }

    /// Drop the model, and return how many bytes that freed.
    pub async fn unload(&self) -> Result<u64> {
        Ok(done!(self.request("unload", &Nothing {}).done(|_| Ok(())).await?, Freed).freed_bytes)
    }

    /// Return the loaded model. Without one the error's code is [`NotLoaded`](crate::ErrorCode::NotLoaded).
    pub async fn info(&self) -> Result<Model> {
        Ok(*done!(self.request("info", &Nothing {}).done(|_| Ok(())).await?, Model))
    }

    /// Answer a conversation. The request is sent at once.
    pub fn chat(&self, params: impl Into<Chat>) -> AnswerStream {
        RequestStream::new(self.request("chat", &params.into()), answer_event)
    }

    /// Continue a prompt as it stands, without a chat template. The request is sent at once.
    pub fn generate(&self, params: impl Into<Generate>) -> AnswerStream {
        RequestStream::new(self.request("generate", &params.into()), answer_event)
    }

    /// Return the tokens of a prompt or of a conversation.
    pub async fn tokenize(&self, params: impl Into<Tokenize>) -> Result<Tokens> {
        let mut tokens = Tokens::default();
        let done = self.request("tokenize", &params.into()).done(|event| {
            if let RawEvent::Token(token) = event {
                tokens.ids.extend(token.token_ids);
                tokens.text.push_str(&token.text);
            }
            Ok(())
        });
        tokens.count = done!(done.await?, Count).count;
        Ok(tokens)
    }

    /// Turn each input into a vector whose direction represents its meaning.
    pub async fn embed(&self, params: Embed) -> Result<Embeddings> {
        let mut vectors = vec![(0, Vec::new()); params.input.len()];
        let request = self.request("embed", &params);
        let done = request.done(|event| match event {
            RawEvent::Embedding(part) => add_part(&mut vectors, part),
            _ => Ok(()),
        });
        let usage = done!(done.await?, Embed).usage;
        if let Some(number) = vectors.iter().position(|(dims, vector)| vector.is_empty() || vector.len() != *dims) {
            return Err(Error::MalformedResult(format!("vector {number} is not whole")));
        }
        Ok(Embeddings { vectors: vectors.into_iter().map(|(_, vector)| vector).collect(), usage })
    }

    /// Turn a recording into text.
    pub async fn transcribe(&self, params: Transcribe) -> Result<Transcript> {
        let (mut text, mut segments) = (String::new(), Vec::new());
        let done = self.request("transcribe", &params).done(|event| {
            if let RawEvent::Segment(segment) = event {
                text.push_str(&segment.text);
                segments.push(segment);
            }
            Ok(())
        });
        let end = done!(done.await?, Transcript);
        Ok(Transcript { text, segments, end })
    }

    /// Turn a recording into text, and stream each part of it as it is written. The request is sent at once.
    pub fn segments(&self, params: Transcribe) -> RequestStream<Segment> {
        RequestStream::new(self.request("transcribe", &params), |event| match event {
            RawEvent::Segment(segment) => Some(segment),
            _ => None,
        })
    }

    /// Speak a text.
    pub async fn speak(&self, params: impl Into<Speak>) -> Result<Speech> {
        let (mut samples, mut sample_rate) = (Vec::new(), 0);
        let done = self.request("speak", &params.into()).done(|event| {
            if let RawEvent::Audio(chunk) = event {
                sample_rate = chunk.sample_rate;
                samples.extend(chunk.samples);
            }
            Ok(())
        });
        let end = done!(done.await?, Speech);
        Ok(Speech { samples, sample_rate, end })
    }

    /// Speak a text, and stream each part of the speech as it is made. The request is sent at once.
    pub fn audio_chunks(&self, params: impl Into<Speak>) -> RequestStream<AudioChunk> {
        RequestStream::new(self.request("speak", &params.into()), |event| match event {
            RawEvent::Audio(chunk) => Some(chunk),
            _ => None,
        })
    }

    /// Drop all cached prompts, and return how many bytes that freed.
    pub async fn clear_cache(&self) -> Result<u64> {
        let params = Cache { action: "clear".into() };
        Ok(done!(self.request("cache", &params).done(|_| Ok(())).await?, Freed).freed_bytes)
    }

    /// Return what the worker does. The reply comes at once, even during a long computation.
    pub async fn ping(&self) -> Result<PingReply> {
        Ok(done!(self.request("ping", &Nothing {}).done(|_| Ok(())).await?, Ping))
    }

    /// Return the worker's counters.
    pub async fn stats(&self) -> Result<Stats> {
        Ok(done!(self.request("stats", &Nothing {}).done(|_| Ok(())).await?, Stats))
    }

    fn request(&self, command: &'static str, params: &impl Serialize) -> Request {
        Request::send(self.connection().clone(), Some(self.clone()), command, self.encode(command, params))
    }

    /// Return the JSON of a command's fields, if the worker serves all of them.
    fn encode(&self, command: &'static str, params: &impl Serialize) -> Result<Vec<u8>> {
        let invalid = |problem: String| Error::InvalidParams { command: command.into(), problem };
        let fields = serde_json::to_vec(params).map_err(|error| invalid(error.to_string()))?;
        if let Some(field) = non_finite(&fields) {
            return Err(invalid(format!("`{field}` is not a finite number")));
        }
        let features = self.inner.features.missing(command, &fields);
        if features.is_empty() {
            return Ok(fields);
        }
        Err(Error::Unsupported { worker: self.hello().worker.clone(), features })
    }
}

fn answer_event(event: RawEvent) -> Option<Event> {
    Some(match event {
        RawEvent::Token(token) => Event::Token(token),
        RawEvent::ToolCall(delta) => Event::ToolCall(delta),
        RawEvent::Progress(progress) => Event::Progress(progress),
        RawEvent::Unknown(event) => Event::Unknown(event),
        RawEvent::Done(done) => Event::Finish(done!(done, Answer)),
        RawEvent::Embedding(_) | RawEvent::Segment(_) | RawEvent::Audio(_) => return None,
    })
}

/// Add a part to its vector; each has its number of dimensions with it.
fn add_part(vectors: &mut [(usize, Vec<f32>)], part: EmbeddingPart) -> Result<()> {
    let wrong = || Error::MalformedResult(format!("a part of vector {} does not fit", part.index));
    let (dims, vector) = vectors.get_mut(part.index).ok_or_else(wrong)?;
    let Numbers::List(numbers) = &part.embedding else { return Err(wrong()) };
    if part.offset != vector.len() || part.offset + numbers.len() > part.dims {
        return Err(wrong());
    }
    *dims = part.dims;
    vector.extend(numbers);
    Ok(())
}

/// Return the field whose number JSON does not have. serde_json writes such a number as null, and None not at all.
fn non_finite(fields: &[u8]) -> Option<String> {
    type Members = BTreeMap<String, Option<IgnoredAny>>;
    #[derive(Deserialize)]
    struct Nested {
        logit_bias: Option<Members>,
    }
    let null = |members: Members| members.into_iter().find(|(_, value)| value.is_none()).map(|(name, _)| name);
    if let Some(name) = serde_json::from_slice(fields).ok().and_then(null) {
        return Some(name);
    }
    let token = serde_json::from_slice::<Nested>(fields).ok()?.logit_bias.and_then(null)?;
    Some(format!("logit_bias.{token}"))
}
