//! The wire's side of a worker: requests in flight, and the lines that end them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::builder::OnError;
use crate::control::Cancel;
use crate::decode::{self, Done, PlainToken, RawEvent};
use crate::error::{Error, ErrorCode, LossReason, RequestError, Result};
use crate::event::Token;
use crate::{PROTOCOL_VERSION, VERSION};

/// A request's line, without its newline.
const LINE_IN_BYTES: usize = 32 << 20;
/// Lines before the reply to `hello` that are not objects, newlines included.
const BANNER_BYTES: usize = 64 << 10;
const QUOTED_BYTES: usize = 200;

/// What goes to the worker's stdin.
pub(crate) enum Input {
    Line(Vec<u8>),
    Close,
}

pub(crate) struct Session {
    state: Mutex<State>,
    input: UnboundedSender<Input>,
    queue_limit: usize,
    on_error: Option<OnError>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    pending: HashMap<String, Pending>,
    greeted: bool,
    banner: usize,
    /// Why this side ended the worker.
    reason: Option<LossReason>,
    /// Set once the worker takes no more requests.
    lost: Option<Error>,
}

/// A request without a terminal. Its id stays taken until then.
struct Pending {
    command: &'static str,
    /// None: nobody reads its events.
    queue: Option<QueueEnd>,
}

/// The events of one request that wait to be read. Adding does not wait: one slow reader must not stop the others, and a
/// full pipe would stop the worker.
pub(crate) struct Queue {
    pub events: UnboundedReceiver<(Result<RawEvent>, usize)>,
    waiting: Arc<AtomicUsize>,
}

#[derive(Clone)]
pub(crate) struct QueueEnd {
    events: UnboundedSender<(Result<RawEvent>, usize)>,
    waiting: Arc<AtomicUsize>,
}

pub(crate) fn queue() -> (QueueEnd, Queue) {
    let (sender, events) = unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    (QueueEnd { events: sender, waiting: waiting.clone() }, Queue { events, waiting })
}

impl Queue {
    /// Record that bytes were read.
    pub fn taken(&self, size: usize) {
        self.waiting.fetch_sub(size, Ordering::Relaxed);
    }
}

impl QueueEnd {
    /// Add an event, whether or not somebody still reads, and return the bytes that wait.
    pub fn add(&self, event: Result<RawEvent>, size: usize) -> usize {
        let waiting = self.waiting.fetch_add(size, Ordering::Relaxed) + size;
        let _ = self.events.send((event, size)); // fails if the reader is gone
        waiting
    }
}

impl Session {
    pub fn new(queue_limit: usize, on_error: Option<OnError>) -> (Self, UnboundedReceiver<Input>) {
        let (input, lines) = unbounded_channel();
        (Self { state: Mutex::default(), input, queue_limit, on_error }, lines)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the lock")
    }

    /// Write a command, and return its id. Without a queue its events are dropped.
    pub fn send(&self, command: &'static str, fields: &[u8], queue: Option<QueueEnd>) -> Result<String> {
        let mut state = self.state();
        if let Some(lost) = &state.lost {
            return Err(lost.clone());
        }
        state.last_id += 1;
        let id = state.last_id.to_string();
        let line = command_line(&id, command, fields);
        if line.len() > LINE_IN_BYTES + 1 {
            return Err(too_long(line.len() - 1));
        }
        state.pending.insert(id.clone(), Pending { command, queue });
        let _ = self.input.send(Input::Line(line)); // fails at the worker's end, which is reported
        Ok(id)
    }

    /// Enter the state after the reply to `hello`.
    #[cfg(test)]
    pub fn greeted(&self) {
        self.state().greeted = true;
    }

    /// Close the worker's stdin after all earlier lines.
    pub fn close_input(&self) {
        let _ = self.input.send(Input::Close); // fails if it is closed
    }

    /// Ask the worker to end a request.
    pub fn cancel(&self, id: &str) {
        if self.state().pending.contains_key(id) {
            let fields = to_json(&Cancel { target: Some(id.into()), all: None });
            let _ = self.send("cancel", &fields, None); // fails if the worker is gone, and so is the request
        }
    }

    /// Drop the further events of a request, and cancel it.
    pub fn abandon(&self, id: &str) {
        if let Some(request) = self.state().pending.get_mut(id) {
            request.queue = None;
        }
        self.cancel(id);
    }

    /// Return whether a request is in flight that the worker's engine serves.
    pub fn is_busy(&self) -> bool {
        let at_once = ["hello", "cancel", "ping", "stats", "quit"];
        self.state().pending.values().any(|request| !at_once.contains(&request.command))
    }

    /// Return why no more requests are taken.
    pub fn lost(&self) -> Option<Error> {
        self.state().lost.clone()
    }

    /// Record why this side ends the worker, unless a reason is known.
    pub fn set_reason(&self, reason: LossReason) {
        self.state().reason.get_or_insert(reason);
    }

    /// End all requests in flight, and those to come.
    pub fn fail(&self, lost: impl FnOnce(Option<LossReason>) -> Error) {
        let mut state = self.state();
        let reason = state.reason.clone();
        let error = state.lost.get_or_insert_with(|| lost(reason)).clone();
        for (_, request) in state.pending.drain() {
            if let Some(queue) = request.queue {
                queue.add(Err(error.clone()), 0);
            }
        }
    }

    /// Take a line. The error is the violation for which the worker must be ended.
    pub fn receive(&self, line: &[u8]) -> Result<(), LossReason> {
        self.receive_line(line).map_err(|problem| violation(problem, line))
    }

    fn receive_line(&self, line: &[u8]) -> Result<(), String> {
        if let Some(token) = plain_token(line) {
            let event = Token { text: token.token, token_ids: token.token_ids, ..Token::default() };
            self.deliver(token.id, RawEvent::Token(event), line.len());
            return Ok(());
        }
        if line.iter().all(|byte| b" \t\r".contains(byte)) {
            return Ok(());
        }
        match serde_json::from_slice(line) {
            Ok(Value::Object(object)) => self.receive_object(object, line.len()),
            Ok(_) => self.skip(line, "the line is not a JSON object".into()),
            Err(error) => self.skip(line, format!("the line is not JSON: {error}")),
        }
    }

    /// Skip a line of a login shell's banner. Later, such a line means that something has broken the stream.
    fn skip(&self, line: &[u8], problem: String) -> Result<(), String> {
        let mut state = self.state();
        state.banner += line.len() + 1;
        if state.greeted || state.banner > BANNER_BYTES { Err(problem) } else { Ok(()) }
    }

    fn receive_object(&self, object: Map<String, Value>, size: usize) -> Result<(), String> {
        let kind = object.get("event").and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = object.get("id").and_then(Value::as_str).map(str::to_owned);
        let id = || id.ok_or_else(|| "`id` must be a string".to_owned());
        match kind.as_str() {
            "error" => self.receive_error(object, id),
            "done" => self.receive_done(&id()?, object),
            "" => Ok(()),
            kind => match id().and_then(|id| Ok((id, decode::event(kind, object)?))) {
                Err(problem) if decode::is_known(kind) && kind != "progress" => Err(problem),
                event => {
                    if let Ok((id, event)) = event {
                        self.deliver(&id, event, size);
                    }
                    Ok(())
                }
            },
        }
    }

    fn receive_error(
        &self,
        object: Map<String, Value>,
        id: impl FnOnce() -> Result<String, String>,
    ) -> Result<(), String> {
        let has_id = object.get("id").is_some_and(|id| !id.is_null());
        let failure = decode::failure(object)?;
        if has_id {
            self.end(&id()?, Err(Error::Request(Box::new(failure))));
        } else if let Some(on_error) = &self.on_error {
            on_error(&failure);
        }
        Ok(())
    }

    fn receive_done(&self, id: &str, object: Map<String, Value>) -> Result<(), String> {
        let Some(command) = self.state().pending.get(id).map(|request| request.command) else {
            return Ok(());
        };
        let done = decode::done(command, object)?;
        if let Done::Hello(hello) = &done {
            if hello.protocol != PROTOCOL_VERSION {
                return Err(version_problem(&hello.worker, &[hello.protocol]));
            }
            self.state().greeted = true;
        }
        self.end(id, Ok(RawEvent::Done(done)));
        Ok(())
    }

    /// Add an event to its request's queue.
    fn deliver(&self, id: &str, event: RawEvent, size: usize) {
        let mut state = self.state();
        let Some(request) = state.pending.get_mut(id) else { return };
        let Some(queue) = &request.queue else { return };
        if queue.add(Ok(event), size) > self.queue_limit {
            queue.add(Err(Error::SlowConsumer), 0);
            drop(state);
            self.abandon(id);
        }
    }

    /// End a request with its terminal.
    fn end(&self, id: &str, terminal: Result<RawEvent>) {
        let request = self.state().pending.remove(id);
        if let Some(queue) = request.and_then(|request| request.queue) {
            queue.add(terminal, 0);
        }
    }
}

/// Return the JSON of a command of this crate's own.
pub(crate) fn to_json(fields: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(fields).expect("numbers and texts have a form in JSON")
}

pub(crate) fn version_problem(worker: &str, versions: &[u64]) -> String {
    format!(
        "{worker} speaks protocol {versions:?}, and this host protocol {PROTOCOL_VERSION}; install lmwire {VERSION}"
    )
}

pub(crate) fn violation(problem: String, line: &[u8]) -> LossReason {
    let line = String::from_utf8_lossy(&line[..line.len().min(QUOTED_BYTES)]).into_owned();
    LossReason::Protocol { problem, line }
}

fn plain_token(line: &[u8]) -> Option<PlainToken<'_>> {
    if line.starts_with(decode::TOKEN_START) { serde_json::from_slice(line).ok() } else { None }
}

/// Return the error of a request whose line is longer than a worker takes. The worker's answer would be the same.
fn too_long(size: usize) -> Error {
    let remedy = "name media by a path, or shorten the text";
    Error::Request(Box::new(RequestError {
        message: format!("the request's line has {size} bytes, more than {LINE_IN_BYTES}; {remedy}"),
        code: ErrorCode::LineTooLong,
        retryable: false,
        field: None,
        bad_id: None,
        protocols: None,
        loaded: None,
    }))
}

/// Return a line with the id first, so that a worker that cannot read the line still finds it.
fn command_line(id: &str, command: &str, fields: &[u8]) -> Vec<u8> {
    let mut line = format!(r#"{{"id":"{id}","cmd":"{command}""#).into_bytes();
    if fields.len() > "{}".len() {
        line.push(b',');
        line.extend_from_slice(&fields[1..]);
    } else {
        line.push(b'}');
    }
    line.push(b'\n');
    line
}
