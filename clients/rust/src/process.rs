//! The worker's process: it has a group of its own, and its pipes are read until it is gone.

use std::collections::VecDeque;
use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use crate::builder::OnStderr;
use crate::session::Input;

const TAIL_LINES: usize = 64;
const TAIL_LINE_BYTES: usize = 1024;
/// The largest capacity of a pipe.
const MAX_DRAINED: usize = 1 << 20;
const READ_BYTES: usize = 64 << 10;
/// Variables in which Python looks for modules and for their compiled form.
const PATH_VARIABLES: [&str; 4] = ["PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX"];

pub(crate) struct Process {
    pid: u32,
    /// The end of the process; None until it is reaped. Then its group may belong to others.
    status: Mutex<Option<io::Result<ExitStatus>>>,
    exited: watch::Receiver<bool>,
    stderr: Mutex<VecDeque<String>>,
    stderr_ended: watch::Receiver<bool>,
}

impl Process {
    /// Start a command, and return its process and its output. Lines that come from `input` go to its stdin.
    pub fn start(
        command: &[String],
        input: UnboundedReceiver<Input>,
        on_stderr: Option<OnStderr>,
    ) -> io::Result<(Arc<Self>, Output<ChildStdout>)> {
        let mut child = child_command(command).spawn()?;
        let (exit, exited) = watch::channel(false);
        let (stderr_end, stderr_ended) = watch::channel(false);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr), Some(pid)) = (stdin, stdout, stderr, child.id()) else {
            return Err(io::Error::other("a new process has three pipes"));
        };
        let process = Arc::new(Self {
            pid,
            status: Mutex::default(),
            exited: exited.clone(),
            stderr: Mutex::default(),
            stderr_ended,
        });
        tokio::spawn(write_lines(stdin, input, exited.clone()));
        tokio::spawn(read_stderr(process.clone(), Output::new(stderr, exited.clone()), on_stderr, stderr_end));
        tokio::spawn(reap(process.clone(), child, exit));
        Ok((process, Output::new(stdout, exited)))
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Send SIGTERM to the process group.
    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Send SIGKILL to the process group.
    pub fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    fn signal(&self, signal: Signal) {
        let status = self.status.lock().expect("no code panics while it holds the lock");
        if status.is_none() {
            signal_group(self.pid, signal);
        }
    }

    /// Wait until the process has ended.
    pub async fn exited(&self) {
        let _ = self.exited.clone().wait_for(|exited| *exited).await; // fails if the runtime ends, and the process with it
    }

    /// Wait until all that the process wrote to stderr was read.
    pub async fn stderr_read(&self) {
        let _ = self.stderr_ended.clone().wait_for(|ended| *ended).await; // fails as above
    }

    /// Return how the process ended, or None if it has not.
    pub fn status(&self) -> Option<ExitStatus> {
        let status = self.status.lock().expect("no code panics while it holds the lock");
        status.as_ref()?.as_ref().ok().copied()
    }

    /// Return the last 64 lines of stderr, each cut to 1,024 bytes.
    pub fn stderr(&self) -> Vec<String> {
        self.stderr.lock().expect("no code panics while it holds the lock").iter().cloned().collect()
    }

    fn add_stderr(&self, line: &str) {
        let mut tail = self.stderr.lock().expect("no code panics while it holds the lock");
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(line.to_owned());
    }
}

fn signal_group(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        let _ = killpg(Pid::from_raw(pid), signal); // fails if the group is gone
    }
}

/// Return the command. In its environment, no code of the working directory runs, which may be an untrusted repository:
/// Python's paths are absolute. With PYTHONINSPECT a worker would wait at Python's prompt instead of ending.
fn child_command(command: &[String]) -> Command {
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]).process_group(0);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    child.env_remove("PYTHONINSPECT");
    for name in PATH_VARIABLES {
        match env::var_os(name).and_then(absolute_paths) {
            Some(paths) => child.env(name, paths),
            None => child.env_remove(name),
        };
    }
    child
}

fn absolute_paths(paths: OsString) -> Option<OsString> {
    let absolute: Vec<_> = env::split_paths(&paths).filter(|path| path.is_absolute()).collect();
    env::join_paths(&absolute).ok().filter(|_| !absolute.is_empty())
}

/// Ends the group if the runtime drops its tasks.
struct KillOnDrop(Arc<Process>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

async fn reap(process: Arc<Process>, mut child: Child, exit: watch::Sender<bool>) {
    let guard = KillOnDrop(process.clone());
    let status = child.wait().await;
    // The process's children must not outlive it. The group's id still belongs to them: the system assigns ids in turn,
    // and this one was free for only microseconds.
    guard.0.kill();
    *process.status.lock().expect("no code panics while it holds the lock") = Some(status);
    let _ = exit.send(true); // fails if nobody waits
}

/// Writes lines in a task of its own, so that a full pipe delays no caller: the worker may wait for its output to be read
/// before it reads more.
async fn write_lines(mut stdin: ChildStdin, mut input: UnboundedReceiver<Input>, mut exited: watch::Receiver<bool>) {
    let write = async {
        while let Some(Input::Line(line)) = input.recv().await {
            if stdin.write_all(&line).await.is_err() {
                return; // the process no longer reads; its exit explains why
            }
        }
    };
    tokio::select! {
        () = write => {}
        _ = exited.wait_for(|exited| *exited) => {}
    }
}

/// A pipe of the process. After the process's end it returns what the pipe holds and waits for no more, even if a
/// grandchild holds it open.
pub(crate) struct Output<R> {
    pipe: R,
    exited: watch::Receiver<bool>,
    drained: Option<usize>,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + AsFd + Unpin> Output<R> {
    fn new(pipe: R, exited: watch::Receiver<bool>) -> Self {
        Self { pipe, exited, drained: None, buffer: vec![0; READ_BYTES] }
    }

    /// Return the next bytes, or none at the end.
    pub async fn read(&mut self) -> &[u8] {
        let length = self.fill().await;
        &self.buffer[..length]
    }

    async fn fill(&mut self) -> usize {
        if self.drained.is_none() {
            tokio::select! {
                biased;
                length = self.pipe.read(&mut self.buffer) => return length.unwrap_or(0),
                _ = self.exited.wait_for(|exited| *exited) => self.drained = Some(0),
            }
        }
        let drained = self.drained.get_or_insert(0);
        if *drained >= MAX_DRAINED {
            return 0; // a grandchild writes without end
        }
        loop {
            match nix::unistd::read(self.pipe.as_fd(), &mut self.buffer) {
                Err(Errno::EINTR) => {}
                Err(_) => return 0, // the pipe holds nothing
                Ok(length) => {
                    *drained += length;
                    return length;
                }
            }
        }
    }
}

async fn read_stderr<R: AsyncRead + AsFd + Unpin>(
    process: Arc<Process>,
    mut output: Output<R>,
    on_stderr: Option<OnStderr>,
    ended: watch::Sender<bool>,
) {
    let mut half = Vec::new();
    let add = |line: &mut Vec<u8>| {
        let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
        line.clear();
        process.add_stderr(&text);
        if let Some(on_stderr) = &on_stderr {
            on_stderr(&text);
        }
    };
    loop {
        let data = output.read().await;
        if data.is_empty() {
            break;
        }
        for part in data.split_inclusive(|&byte| byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            half.extend_from_slice(&text[..text.len().min(TAIL_LINE_BYTES - half.len())]);
            if text.len() < part.len() {
                add(&mut half);
            }
        }
    }
    if !half.is_empty() {
        add(&mut half);
    }
    let _ = ended.send(true); // fails if nobody waits
}
