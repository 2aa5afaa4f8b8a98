use std::sync::Arc;
use std::time::Duration;

use crate::connection::{Connection, OwnedConnection};
use crate::control::Greeting;
use crate::error::{Error, LossReason, RequestError, Result};
use crate::features::FeatureSet;
use crate::find::{Place, first_worker};
use crate::results::Hello;
use crate::session::{to_json, version_problem};
use crate::stream::Request;
use crate::worker::Worker;
use crate::{ErrorCode, PROTOCOL_VERSION, VERSION};

pub(crate) type OnStderr = Arc<dyn Fn(&str) + Send + Sync>;
pub(crate) type OnError = Arc<dyn Fn(&RequestError) + Send + Sync>;

const START_TIMEOUT: Duration = Duration::from_secs(30);
const QUEUE_LIMIT: usize = 64 << 20;

/// Longest waits of the steps of [`Worker::close`]. The next step is more forceful.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownTimeouts {
    /// After the command `quit`.
    pub quit: Duration,
    /// After the close of stdin.
    pub stdin: Duration,
    /// After SIGTERM. SIGKILL follows.
    pub term: Duration,
}

impl Default for ShutdownTimeouts {
    /// Return the times of PROTOCOL.md.
    fn default() -> Self {
        Self { quit: Duration::from_secs(5), stdin: Duration::from_secs(2), term: Duration::from_secs(3) }
    }
}

/// Options of a worker's start. [`Worker::builder`] returns one.
#[derive(Clone, Default)]
pub struct WorkerBuilder {
    pub(crate) command: Vec<String>,
    args: Vec<String>,
    pub(crate) uvx: bool,
    host_watch: Option<bool>,
    start_timeout: Option<Duration>,
    shutdown_timeouts: ShutdownTimeouts,
    queue_limit: Option<usize>,
    features: Vec<String>,
    on_stderr: Option<OnStderr>,
    on_error: Option<OnError>,
}

impl WorkerBuilder {
    /// Start this command, such as `["ssh", "-T", "host", "lmwire", "worker"]`. Without it, `spawn` looks for a worker in
    /// the order of docs/hosts.md.
    pub fn command<S: Into<String>>(mut self, command: impl IntoIterator<Item = S>) -> Self {
        self.command = command.into_iter().map(Into::into).collect();
        self
    }

    /// Add options of `lmwire worker`, such as `["--memory-limit", "8000000000"]`.
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Set whether `spawn` runs the package lmwire of the package index with uvx, if it finds no other worker. Whoever owns
    /// that name there runs code with your rights. lmwire is not published yet, so nobody of this project owns it.
    pub fn uvx(mut self, allow: bool) -> Self {
        self.uvx = allow;
        self
    }

    /// Set whether the worker ends when this process ends, even while another process holds its pipes open. The worker must
    /// then be a descendant of this process, so the default is false for a whole command.
    pub fn host_watch(mut self, watch: bool) -> Self {
        self.host_watch = Some(watch);
        self
    }

    /// Set the longest wait for the reply to `hello`. The default is 30 s, or 10 minutes with [`uvx`](Self::uvx).
    pub fn start_timeout(mut self, limit: Duration) -> Self {
        self.start_timeout = Some(limit);
        self
    }

    /// Set the longest waits of the steps of [`Worker::close`].
    pub fn shutdown_timeouts(mut self, timeouts: ShutdownTimeouts) -> Self {
        self.shutdown_timeouts = timeouts;
        self
    }

    /// Set how many bytes of a request's events may wait to be read. A request above it is cancelled, and fails with
    /// [`Error::SlowConsumer`]. The default is 64 MiB, a thousand times a long answer.
    pub fn queue_limit(mut self, bytes: usize) -> Self {
        self.queue_limit = Some(bytes);
        self
    }

    /// Make `spawn` fail if the worker does not list these features, such as "chat.tools".
    pub fn features<S: Into<String>>(mut self, features: impl IntoIterator<Item = S>) -> Self {
        self.features.extend(features.into_iter().map(Into::into));
        self
    }

    /// Call a function with each line of the worker's stderr. It must not block.
    pub fn on_stderr(mut self, on_line: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Some(Arc::new(on_line));
        self
    }

    /// Call a function with each error of the worker that belongs to no request. It must not block.
    pub fn on_error(mut self, on_error: impl Fn(&RequestError) + Send + Sync + 'static) -> Self {
        self.on_error = Some(Arc::new(on_error));
        self
    }

    /// Start a worker, and wait until it has answered. It needs a tokio runtime with I/O and time enabled.
    ///
    /// # Errors
    ///
    /// [`Error::WorkerNotFound`], or [`Error::Start`] with the command and the reason. Its process is gone then.
    pub async fn spawn(self) -> Result<Worker> {
        let place = first_worker(&self)?;
        let command: Vec<_> = place.command.iter().chain(&self.args).cloned().collect();
        let failed = |reason: String| Error::Start { command: command.clone(), reason };
        let opened = Connection::open(
            &command,
            self.shutdown_timeouts,
            self.queue_limit.unwrap_or(QUEUE_LIMIT),
            self.on_stderr.clone(),
            self.on_error.clone(),
        );
        let connection = OwnedConnection(opened.map_err(|error| failed(error.to_string()))?);
        match self.greet(&connection.0, &place).await {
            Ok((hello, features)) => Ok(Worker::new(connection, hello, features)),
            Err(reason) => {
                connection.0.kill().await;
                Err(failed(reason))
            }
        }
    }

    /// Send `hello`, and check that the worker fits. The error is the reason why it does not.
    async fn greet(&self, connection: &Arc<Connection>, place: &Place) -> Result<(Hello, FeatureSet), String> {
        let host_pid = self.host_watch.unwrap_or(place.host_watch).then(std::process::id);
        let client = Some(format!("lmwire-rust/{VERSION}"));
        let greeting = Greeting { protocol: (PROTOCOL_VERSION, PROTOCOL_VERSION), client, host_pid };
        let limit = self.start_timeout.or(place.start_timeout).unwrap_or(START_TIMEOUT);
        let reply = Request::send(connection.clone(), None, "hello", Ok(to_json(&greeting))).done(|_| Ok(()));
        let reply = tokio::time::timeout(limit, reply).await;
        let reply = reply.map_err(|_| format!("it did not answer `hello` in {limit:?}"))?;
        let hello = crate::worker::done!(reply.map_err(describe)?, Hello);
        let features = FeatureSet::new(&hello.features);
        let missing: Vec<_> = self.features.iter().filter(|feature| !features.lists(feature)).cloned().collect();
        if missing.is_empty() {
            return Ok((hello, features));
        }
        Err(format!("it is {} and does not serve {}; install lmwire {VERSION}", hello.worker, missing.join(", ")))
    }
}

/// Return the reason of a failed start.
fn describe(error: Error) -> String {
    match error {
        Error::Request(refused) if refused.code == ErrorCode::UnsupportedProtocol => {
            version_problem("the worker", &refused.protocols.unwrap_or_default())
        }
        Error::WorkerLost(lost) => lost.reason.as_ref().map_or_else(|| lost.to_string(), LossReason::to_string),
        other => other.to_string(),
    }
}
