//! A conversation with a model in a worker process. It knows nothing of Tauri.

use std::path::Path;

use lmwire::{Chat, Error, ErrorCode, FinishReason, LoadEvent, Message, Result, Supervisor, Worker, WorkerBuilder};
use serde::Serialize;
use tokio::sync::{Mutex, Notify};

/// An event of a load or an answer. A load ends with `Loaded`, an answer with `Ended`; either can end with `Failed` or
/// `Stopped`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChatEvent {
    Progress { stage: String, current: u64, total: Option<u64>, unit: String },
    Loaded { model: String },
    Text { text: String },
    Ended,
    Stopped,
    Failed { message: String },
}

/// Loads and answers run one at a time, in order. After the worker has died, the next message starts a new one and loads the
/// model again.
pub struct ChatService {
    supervisor: Supervisor,
    conversation: Mutex<Conversation>,
    stop: Notify,
}

#[derive(Default)]
struct Conversation {
    model: String,
    messages: Vec<Message>,
}

/// Return how to start the worker in the app's resources, or the one that is found if they have none.
pub fn bundled_worker(resources: &Path) -> WorkerBuilder {
    let program = resources.join("lmwire/lmwire");
    if !program.is_file() {
        return Worker::builder();
    }
    // The worker is a child of this process, so it can watch it.
    Worker::builder().command([program.to_string_lossy().as_ref(), "worker"]).host_watch(true)
}

impl ChatService {
    /// Return a service without a model. The first load starts a worker.
    pub fn new(worker: WorkerBuilder) -> Self {
        Self { supervisor: Supervisor::new(worker), conversation: Mutex::default(), stop: Notify::new() }
    }

    /// Load a model, and start a new conversation.
    pub async fn load(&self, model: &str, emit: impl Fn(ChatEvent)) {
        let mut conversation = self.conversation.lock().await;
        let stopped = self.stop.notified();
        *conversation = Conversation { model: model.into(), messages: Vec::new() };
        let loaded = async { load(&self.supervisor.worker().await?, model, &emit).await };
        let end = tokio::select! {
            loaded = loaded => loaded.map(|()| ChatEvent::Loaded { model: model.into() }),
            () = stopped => Ok(ChatEvent::Stopped),
        };
        emit(end.unwrap_or_else(failed));
    }

    /// Answer the user's next message. A message without an answer is not part of the conversation.
    pub async fn chat(&self, text: &str, emit: impl Fn(ChatEvent)) {
        let mut conversation = self.conversation.lock().await;
        let stopped = self.stop.notified();
        let mut messages = conversation.messages.clone();
        messages.push(Message::user(text));
        match self.answer(&conversation.model, &messages, stopped, &emit).await {
            Ok((answer, end)) => {
                if !answer.is_empty() {
                    messages.push(Message::assistant(answer));
                    conversation.messages = messages;
                }
                emit(end);
            }
            Err(error) => emit(failed(error)),
        }
    }

    /// End the load that runs, or the answer with its text so far.
    pub fn stop(&self) {
        self.stop.notify_waiters();
    }

    /// End the worker, and return when its process is gone.
    ///
    /// # Errors
    ///
    /// Those of [`Worker::close`].
    pub async fn close(&self) -> Result<()> {
        self.stop();
        let _conversation = self.conversation.lock().await;
        self.supervisor.close().await
    }

    /// Stream an answer, and return its text and its end.
    async fn answer(
        &self,
        model: &str,
        messages: &[Message],
        stopped: impl Future<Output = ()>,
        emit: &impl Fn(ChatEvent),
    ) -> Result<(String, ChatEvent)> {
        tokio::pin!(stopped);
        let worker = tokio::select! {
            worker = self.worker_with(model, emit) => worker?,
            () = &mut stopped => return Ok((String::new(), ChatEvent::Stopped)),
        };
        let mut stream = worker.chat(Chat::new(messages.to_vec()).reasoning("off").truncate("left"));
        let (mut answer, mut is_stopped) = (String::new(), false);
        loop {
            let event = tokio::select! {
                event = stream.next() => event.transpose()?,
                () = &mut stopped, if !is_stopped => {
                    stream.cancel();
                    is_stopped = true;
                    continue;
                }
            };
            match event {
                None => return Ok((answer, ChatEvent::Ended)),
                Some(lmwire::Event::Finish(end)) if end.finish_reason == FinishReason::Cancelled => {
                    return Ok((answer, ChatEvent::Stopped));
                }
                Some(event) if event.text().is_empty() => {}
                Some(event) => {
                    answer.push_str(event.text());
                    emit(ChatEvent::Text { text: event.text().into() });
                }
            }
        }
    }

    /// Return the worker. A new one, which has no model, loads it first.
    async fn worker_with(&self, model: &str, emit: &impl Fn(ChatEvent)) -> Result<Worker> {
        let worker = self.supervisor.worker().await?;
        match worker.info().await {
            Err(error) if error.code() == Some(&ErrorCode::NotLoaded) && !model.is_empty() => {
                load(&worker, model, emit).await?;
            }
            other => drop(other?),
        }
        Ok(worker)
    }
}

async fn load(worker: &Worker, model: &str, emit: &impl Fn(ChatEvent)) -> Result<()> {
    let mut events = worker.load_stream(model);
    while let Some(event) = events.next().await {
        if let LoadEvent::Progress(lmwire::Progress { stage, current, total, unit }) = event? {
            emit(ChatEvent::Progress { stage, current, total, unit });
        }
    }
    Ok(())
}

fn failed(error: Error) -> ChatEvent {
    let advice = if matches!(error, Error::WorkerLost(_)) { "\nThe next message starts a new worker." } else { "" };
    ChatEvent::Failed { message: format!("{error}{advice}") }
}
