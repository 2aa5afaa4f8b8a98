//! The driver of this crate for `lmwire conformance host`. HOSTS.md of the kit specifies it:
//!
//! ```sh
//! lmwire conformance host -- target/debug/examples/conformance_driver
//! ```
//!
//! It reads instructions from stdin and writes its observations to stdout, both as JSON Lines. With `--events` it also
//! prints each event as the crate's user gets it, for the test that compares the clients.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lmwire::{
    Answer, AnswerStream, Channel, Error, Event, LoadEvent, RequestStream, Result, ShutdownTimeouts, Speech,
    Supervisor, Token, Transcript, Worker, WorkerBuilder,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct Instruction {
    r#do: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    command: Map<String, Value>,
    timeout: Option<f64>,
    #[serde(default)]
    restart: bool,
    #[serde(default)]
    drain: bool,
}

impl Instruction {
    fn limit(&self) -> Option<Duration> {
        self.timeout.map(Duration::from_secs_f64)
    }
}

enum Host {
    One(Result<Worker>),
    Many(Box<Supervisor>),
}

impl Host {
    async fn worker(&self) -> Result<Worker> {
        match self {
            Host::One(worker) => worker.clone(),
            Host::Many(supervisor) => supervisor.worker().await,
        }
    }

    async fn close(self) -> Result<()> {
        match self {
            Host::One(Ok(worker)) => worker.close().await,
            Host::One(Err(_)) => Ok(()),
            Host::Many(supervisor) => supervisor.close().await,
        }
    }
}

#[derive(Default)]
struct Driver {
    command: Vec<String>,
    host: Option<Host>,
    stops: HashMap<String, Arc<Notify>>,
    running: JoinSet<()>,
}

#[tokio::main]
async fn main() {
    let command = std::env::var("LMWIRE_WORKER_COMMAND").expect("the kit sets $LMWIRE_WORKER_COMMAND");
    let mut driver = Driver { command: serde_json::from_str(&command).expect("a JSON list"), ..Driver::default() };
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await.expect("stdin can be read") {
        driver.run(serde_json::from_str(&line).expect("an instruction")).await;
    }
}

/// Print one observation.
fn report(saw: &str, members: Value) {
    let mut line = json!({ "saw": saw });
    let (Some(line_members), Value::Object(members)) = (line.as_object_mut(), members) else { unreachable!() };
    line_members.extend(members);
    println!("{line}");
}

/// Print an event as the crate's user gets it.
fn report_event(name: &str, kind: &str, event: impl Serialize) {
    if std::env::args().any(|argument| argument == "--events") {
        report("event", json!({ "name": name, "kind": kind, "event": event }));
    }
}

fn report_answer_event(name: &str, event: &Event) {
    match event {
        Event::Token(token) => report_event(name, "token", token),
        Event::ToolCall(delta) => report_event(name, "tool_call", delta),
        Event::Progress(progress) => report_event(name, "progress", progress),
        Event::Finish(finish) => report_event(name, "done", finish),
        Event::Unknown(event) => report_event(name, "unknown", event),
        other => panic!("a kind that this driver does not know: {other:?}"),
    }
}

impl Driver {
    async fn run(&mut self, next: Instruction) {
        match next.r#do.as_str() {
            "start" => self.start(next).await,
            "request" => self.request(next).await,
            "cancel" => self.stops[&next.name].notify_one(),
            "close" => {
                let host = self.host.take().expect("a start came before");
                if next.drain {
                    host.worker().await.expect("a worker").close_after_requests().await.expect("the process ends");
                }
                host.close().await.expect("the process ends");
                while self.running.join_next().await.is_some() {}
                report("closed", json!({}));
            }
            other => panic!("unknown instruction {other}"),
        }
    }

    async fn start(&mut self, next: Instruction) {
        let timeouts = ShutdownTimeouts { quit: SECOND, stdin: SECOND, term: SECOND };
        let mut builder: WorkerBuilder = Worker::builder().command(self.command.clone()).shutdown_timeouts(timeouts);
        if let Some(limit) = next.limit() {
            builder = builder.start_timeout(limit);
        }
        let host = if next.restart {
            Host::Many(Box::new(Supervisor::new(builder)))
        } else {
            Host::One(builder.spawn().await)
        };
        match host.worker().await {
            Ok(_) => report("started", json!({})),
            Err(error) => {
                eprintln!("{error}");
                report("start_failed", json!({}));
            }
        }
        self.host = Some(host);
    }

    /// Make a request in a task of its own.
    async fn request(&mut self, next: Instruction) {
        let stop = Arc::new(Notify::new());
        self.stops.insert(next.name.clone(), stop.clone());
        let worker = match self.host.as_ref().expect("a start came before").worker().await {
            Ok(worker) => worker,
            Err(error) => return failed(&next.name, &error),
        };
        let (limit, name) = (next.limit(), next.name);
        let made = make(worker, name.clone(), next.command, stop);
        self.running.spawn(async move {
            let ended = match limit {
                Some(limit) => timeout(limit, made).await,
                None => Ok(made.await),
            };
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => failed(&name, &error),
                Err(_) => report("failed", json!({ "name": name, "code": "timeout" })),
            }
        });
    }
}

/// Send a request, and return what reads it to its end.
fn make(
    worker: Worker,
    name: String,
    mut fields: Map<String, Value>,
    stop: Arc<Notify>,
) -> std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send>> {
    let command = fields.remove("cmd").expect("a command");
    match command.as_str().expect("a text") {
        "chat" => Box::pin(answer(name, worker.chat(params::<lmwire::Chat>(fields)), stop)),
        "generate" => Box::pin(answer(name, worker.generate(params::<lmwire::Generate>(fields)), stop)),
        "load" => Box::pin(load(name, worker.load_stream(params::<lmwire::Load>(fields)), stop)),
        command => {
            let command = command.to_owned();
            Box::pin(async move {
                tokio::select! {
                    called = call(&worker, &name, &command, fields) => {
                        called?;
                        report("done", json!({ "name": name }));
                    }
                    // A call that is dropped is cancelled, and has no result.
                    () = stop.notified() => report("failed", json!({ "name": name, "code": "cancelled" })),
                }
                Ok(())
            })
        }
    }
}

/// Make a request that has no answer.
async fn call(worker: &Worker, name: &str, command: &str, fields: Map<String, Value>) -> Result<()> {
    match command {
        "unload" => _ = worker.unload().await?,
        "tokenize" => {
            let tokens = worker.tokenize(params::<lmwire::Tokenize>(fields)).await?;
            report("text", json!({ "name": name, "text": tokens.text }));
            let result = json!({ "token_ids": tokens.ids, "text": tokens.text, "count": tokens.count });
            report_event(name, "done", result);
        }
        "embed" => {
            let embeddings = worker.embed(params::<lmwire::Embed>(fields)).await?;
            for (index, values) in embeddings.vectors.iter().enumerate() {
                report("vector", json!({ "name": name, "index": index, "values": values }));
            }
            report_event(name, "done", json!({ "vectors": embeddings.vectors, "usage": embeddings.usage }));
        }
        "transcribe" => {
            let Transcript { text, segments, end } = worker.transcribe(params::<lmwire::Transcribe>(fields)).await?;
            report("text", json!({ "name": name, "text": text }));
            let result = json!({
                "text": text, "segments": segments, "language": end.language, "duration_s": end.duration_s,
                "finish_reason": end.finish_reason,
            });
            report_event(name, "done", result);
        }
        "speak" => {
            let Speech { samples, sample_rate, end } = worker.speak(params::<lmwire::Speak>(fields)).await?;
            report("samples", json!({ "name": name, "values": samples }));
            let result = json!({
                "samples": samples, "sample_rate": sample_rate, "seed": end.seed, "duration_s": end.duration_s,
                "finish_reason": end.finish_reason,
            });
            report_event(name, "done", result);
        }
        "cache" => _ = worker.clear_cache().await?,
        "info" => report_event(name, "done", worker.info().await?),
        "ping" => report_event(name, "done", worker.ping().await?),
        "stats" => report_event(name, "done", worker.stats().await?),
        other => panic!("unknown command {other}"),
    }
    Ok(())
}

/// Return fields as the library's type. A field that the library lacks ends the driver.
fn params<T: DeserializeOwned>(fields: Map<String, Value>) -> T {
    serde_json::from_value(Value::Object(fields)).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(1)
    })
}

/// Return the next event. A stop asks the worker to end the request.
async fn next<T>(stream: &mut RequestStream<T>, stop: &Notify) -> Option<Result<T>> {
    loop {
        tokio::select! {
            event = stream.next() => return event,
            () = stop.notified() => stream.cancel(),
        }
    }
}

async fn load(name: String, mut stream: RequestStream<LoadEvent>, stop: Arc<Notify>) -> Result<()> {
    while let Some(event) = next(&mut stream, &stop).await {
        match event? {
            LoadEvent::Progress(progress) => report_event(&name, "progress", progress),
            LoadEvent::Loaded(model) => report_event(&name, "done", model),
            other => panic!("a kind that this driver does not know: {other:?}"),
        }
    }
    report("done", json!({ "name": name }));
    Ok(())
}

/// Report the events of a chat or a generate.
async fn answer(name: String, mut stream: AnswerStream, stop: Arc<Notify>) -> Result<()> {
    let mut accumulator = lmwire::Accumulator::new();
    while let Some(event) = next(&mut stream, &stop).await {
        let event = event?;
        report_answer_event(&name, &event);
        if let Event::Token(token) = &event {
            report_token(&name, token);
        }
        accumulator.add(event);
    }
    report_end(&name, &accumulator.answer()?);
    Ok(())
}

fn report_token(name: &str, token: &Token) {
    let mut members = json!({ "name": name, "choice": token.choice, "text": token.text, "channel": token.channel });
    if let Some(logprobs) = &token.logprobs {
        members["logprobs"] = json!(logprobs);
    }
    if !matches!(token.channel, Channel::Unknown(_)) {
        report("text", members);
    }
}

fn report_end(name: &str, answer: &Answer) {
    for (choice, answer) in answer.choices.iter().enumerate() {
        for call in &answer.tool_calls {
            report("tool_call", json!({ "name": name, "choice": choice, "call": call }));
        }
    }
    let finish = answer.finish.as_ref().expect("the stream ended without an error");
    let mut done = json!({ "name": name, "finish_reason": finish.finish_reason });
    if answer.choices.len() > 1 {
        done["choices"] = answer.choices.iter().map(|answer| json!(answer.finish_reason)).collect();
    }
    report("done", done);
}

fn failed(name: &str, error: &Error) {
    if let Error::Request(refused) = error {
        report_event(name, "error", refused);
    }
    let members = match error {
        Error::Request(refused) => json!({ "name": name, "code": refused.code, "retryable": refused.retryable }),
        Error::Unsupported { .. } => json!({ "name": name, "code": "unsupported" }),
        _ => json!({ "name": name, "code": "worker_lost" }), // also of a supervisor that starts no worker
    };
    report("failed", members);
}
