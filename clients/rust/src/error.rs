use std::fmt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::VERSION;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a request, a start or a worker failed. It can be cloned, since one death fails many requests.
///
/// Its `Debug` is the same sentence as its `Display`: that is what a `main` that returns it prints, and `unwrap`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The worker refused a request, or failed on it. It still serves other requests.
    #[error(transparent)]
    Request(Box<RequestError>),
    /// The worker lacks features that a request needs. The request was not sent.
    #[error("the worker ({worker}) does not serve {}: leave that out, or install lmwire {VERSION}", features.join(", "))]
    Unsupported {
        /// Name and version of the worker.
        worker: String,
        /// The features that it does not list.
        features: Vec<String>,
    },
    /// The parameters have no form in JSON. The request was not sent.
    #[error("`{command}` cannot be sent: {problem}")]
    InvalidParams {
        /// The command.
        command: String,
        /// What is wrong, with the name of the field.
        problem: String,
    },
    /// The worker is gone, and the request gets no answer. Text that came before is valid.
    #[error(transparent)]
    WorkerLost(Arc<WorkerLost>),
    /// More of the request's events waited to be read than
    /// [`queue_limit`](crate::WorkerBuilder::queue_limit) allows. The request was cancelled.
    #[error("too many events of the request wait to be read; it was cancelled")]
    SlowConsumer,
    /// The events do not make a whole result, which no correct worker sends.
    #[error("the worker sent a malformed result: {0}")]
    MalformedResult(String),
    /// The system does not end the worker's process, although it was killed.
    #[error("the system does not end the worker's process {pid}")]
    StillRunning {
        /// The process id.
        pid: u32,
    },
    /// This machine has no worker.
    #[error(
        "no worker found: put lmwire on PATH, name a worker in $LMWIRE_WORKER, or {}",
        if *uvx { "install uv for the option uvx" } else { "allow a download with the option uvx" }
    )]
    WorkerNotFound {
        /// Whether [`WorkerBuilder::uvx`](crate::WorkerBuilder::uvx) allowed a download.
        uvx: bool,
    },
    /// A worker did not start, or does not fit.
    #[error("`{}` does not start as a worker: {reason}", command.join(" "))]
    Start {
        /// The command.
        command: Vec<String>,
        /// The reason, a sentence.
        reason: String,
    },
    /// Workers failed too often, and a [`Supervisor`](crate::Supervisor) starts none for a while.
    #[error("the worker failed {failures} times in short order; it can be tried again in {retry_after:.0?}: {last}")]
    Unavailable {
        /// Number of recent failures.
        failures: usize,
        /// Time until the next start is allowed.
        retry_after: Duration,
        /// The last failure.
        last: Box<Error>,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Error {
    /// Return the worker's code, if the error has one.
    pub fn code(&self) -> Option<&ErrorCode> {
        match self {
            Error::Request(error) => Some(&error.code),
            _ => None,
        }
    }

    /// Return whether the same request can succeed later, at the same worker.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Request(error) if error.retryable)
    }
}

/// The code of a [`RequestError`]. PROTOCOL.md lists their meanings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum ErrorCode {
    ParseError,
    LineTooLong,
    InvalidRequest,
    UnknownCommand,
    DuplicateId,
    UnsupportedProtocol,
    Busy,
    Draining,
    Cancelled,
    NotLoaded,
    ModelNotFound,
    BadModel,
    Unsupported,
    ContextOverflow,
    OutOfMemory,
    EngineError,
    Internal,
    /// A code of a later version. [`RequestError::retryable`] decides.
    #[serde(untagged)]
    Unknown(String),
}

/// The worker's answer to a request that it refused, or on which it failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{}: {message}", serde_json::json!(code).as_str().unwrap_or_default())]
pub struct RequestError {
    /// A sentence for people.
    #[serde(rename = "error")]
    pub message: String,
    /// The reason, for programs.
    pub code: ErrorCode,
    /// Whether the same request can succeed later.
    pub retryable: bool,
    /// The path of the field at fault.
    pub field: Option<String>,
    /// The id in flight that the line used.
    pub bad_id: Option<String>,
    /// With [`ErrorCode::UnsupportedProtocol`]: the versions that the worker speaks.
    pub protocols: Option<Vec<u64>>,
    /// After a failed load: whether a model is loaded now.
    pub loaded: Option<bool>,
}

/// The end of a worker.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the worker ended: {}", self.describe())]
#[non_exhaustive]
pub struct WorkerLost {
    /// Why this side ended the worker. None: the process ended by itself.
    pub reason: Option<LossReason>,
    /// How the process ended. None while a hung worker is being ended.
    pub status: Option<ExitStatus>,
    /// The last lines of stderr.
    pub stderr: Vec<String>,
}

/// The reason why this side ended a worker.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LossReason {
    /// The worker wrote a line that breaks the protocol, so its output cannot be trusted.
    #[error("it broke the protocol: {problem}: {line:?}")]
    Protocol {
        /// What is wrong with the line.
        problem: String,
        /// The beginning of the line.
        line: String,
    },
    /// The worker made no progress while requests waited for it.
    #[error("it made no progress while requests waited for it, and was ended")]
    Hung,
}

const QUOTED_STDERR_LINES: usize = 10;

impl WorkerLost {
    fn describe(&self) -> String {
        match (&self.reason, self.status) {
            (Some(reason), _) => reason.to_string(),
            (None, None) => "unknown".into(),
            (None, Some(status)) => self.with_stderr(status.to_string()),
        }
    }

    fn with_stderr(&self, text: String) -> String {
        let quoted = &self.stderr[self.stderr.len().saturating_sub(QUOTED_STDERR_LINES)..];
        if quoted.is_empty() {
            return text;
        }
        format!("{text}; the end of its stderr:\n    {}", quoted.join("\n    "))
    }
}
