//! A worker's process and its session, from the start to the end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::ChildStdout;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::builder::{OnError, OnStderr, ShutdownTimeouts};
use crate::control::Quit;
use crate::error::{Error, LossReason, WorkerLost};
use crate::lines::Lines;
use crate::process::{Output, Process};
use crate::session::{Session, to_json, violation};

/// Longest wait for the process after the end of its output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct Connection {
    pub session: Session,
    pub process: Arc<Process>,
    timeouts: ShutdownTimeouts,
    /// True when the process has ended and all requests have failed.
    done: watch::Receiver<bool>,
}

impl Connection {
    pub fn open(
        command: &[String],
        timeouts: ShutdownTimeouts,
        queue_limit: usize,
        on_stderr: Option<OnStderr>,
        on_error: Option<OnError>,
    ) -> io::Result<Arc<Self>> {
        let (session, input) = Session::new(queue_limit, on_error);
        let (process, stdout) = Process::start(command, input, on_stderr)?;
        let (end, done) = watch::channel(false);
        let connection = Arc::new(Self { session, process, timeouts, done });
        tokio::spawn(run(connection.clone(), stdout, end));
        Ok(connection)
    }

    /// Wait until the process has ended and all requests have failed.
    pub async fn done(&self) {
        let _ = self.done.clone().wait_for(|done| *done).await; // fails if the runtime ends, and the process with it
    }

    pub fn is_done(&self) -> bool {
        *self.done.borrow()
    }

    async fn is_done_within(&self, limit: Duration) -> bool {
        timeout(limit, self.done()).await.is_ok()
    }

    /// End the worker by the steps of [H-7], and return when it is gone.
    pub async fn close(&self, drain: bool) {
        // `quit`: all requests end with their terminals, and the worker exits with 0.
        let fields = to_json(&Quit { drain: drain.then_some(true) });
        let _ = self.session.send("quit", &fields, None); // fails if the worker is gone
        if drain {
            return self.done().await;
        }
        if self.is_done_within(self.timeouts.quit).await {
            return;
        }
        // The end of stdin ends a worker that could not read the line, and a program in between, such as ssh.
        self.session.close_input();
        if self.is_done_within(self.timeouts.stdin).await {
            return;
        }
        // SIGTERM: the worker cancels, writes the terminals and exits within 2 s, even while its engine hangs.
        self.terminate().await;
    }

    /// Fail all requests at once, then end a worker that hangs. `quit` and the end of stdin would not help: both let the
    /// engine finish its step first.
    pub async fn abort(&self, reason: LossReason) {
        self.session.set_reason(reason);
        self.fail();
        self.terminate().await;
    }

    async fn terminate(&self) {
        self.process.terminate();
        if !self.is_done_within(self.timeouts.term).await {
            self.kill().await;
        }
    }

    pub async fn kill(&self) {
        self.process.kill();
        self.is_done_within(KILL_TIMEOUT).await;
    }

    /// End all requests in flight, and those to come.
    fn fail(&self) {
        self.session.fail(|reason| {
            let (status, stderr) = (self.process.status(), self.process.stderr());
            Error::WorkerLost(Arc::new(WorkerLost { reason, status, stderr }))
        });
    }
}

/// The connection of whoever uses a worker. Its drop kills the worker.
pub(crate) struct OwnedConnection(pub Arc<Connection>);

impl Drop for OwnedConnection {
    fn drop(&mut self) {
        self.0.process.kill();
    }
}

/// Fails the requests, also if the runtime drops its tasks.
struct FailOnDrop(Arc<Connection>);

impl Drop for FailOnDrop {
    fn drop(&mut self) {
        self.0.fail();
    }
}

/// Read events until the worker has ended, and then fail the requests that are left.
async fn run(connection: Arc<Connection>, stdout: Output<ChildStdout>, end: watch::Sender<bool>) {
    let guard = FailOnDrop(connection.clone());
    let process = &connection.process;
    if let Err(reason) = read(&connection.session, stdout).await {
        connection.session.set_reason(reason);
        process.kill();
    }
    if timeout(EXIT_TIMEOUT, process.exited()).await.is_err() {
        process.kill();
        process.exited().await;
    }
    process.stderr_read().await;
    drop(guard);
    let _ = end.send(true); // fails if nobody waits
}

/// Take lines to the end of the output, or to a line that breaks the protocol.
async fn read(session: &Session, mut stdout: Output<ChildStdout>) -> Result<(), LossReason> {
    let mut lines = Lines::default();
    loop {
        let data = stdout.read().await;
        if data.is_empty() {
            return Ok(());
        }
        lines.push(data);
        while let Some(line) = lines.next() {
            match line {
                Ok(line) => session.receive(line)?,
                Err(start) => return Err(violation("a line longer than 1 MiB".into(), start)),
            }
        }
    }
}
