//! Write a commit message for the staged changes, with a model that runs in a child process.
//!
//! Ctrl-C ends the answer and keeps its text so far.

use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::process::{Command, ExitCode, Stdio};

use lexopt::prelude::*;
use lmwire::{Chat, LoadEvent, Message, Progress, Worker};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

const INSTRUCTIONS: &str =
    "Write a commit message for the diff. The first line is an imperative sentence of at most 72 characters.
A blank line and one or two sentences about the reason may follow. Write nothing else.";

const USAGE: &str = "usage: rust-commit [--model MODEL] [--commit]

  --model MODEL   a folder, a hub id or an alias
  --commit        commit with the message";

struct Options {
    model: String,
    commit: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rust-commit: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let Some(options) = options()? else {
        println!("{USAGE}");
        return Ok(());
    };
    let diff = staged_diff()?;
    let worker = Worker::builder().spawn().await?;
    load(&worker, &options.model).await?;
    let message = write_message(&worker, diff).await?;
    worker.close().await?;
    if options.commit { commit(&message) } else { Ok(()) }
}

/// Return the command line's options, or None for help.
fn options() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options { model: "mlx-community/Qwen3-0.6B-4bit".into(), commit: false };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("model") => options.model = arguments.value()?.string()?,
            Long("commit") => options.commit = true,
            Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(options))
}

/// Return the staged changes. Bytes that are not UTF-8 are replaced.
fn staged_diff() -> Result<String> {
    let git = Command::new("git").args(["diff", "--staged"]).stderr(Stdio::inherit()).output()?;
    if !git.status.success() {
        return Err(format!("git diff: {}", git.status).into());
    }
    if git.stdout.is_empty() {
        return Err("no changes are staged: run `git add` first".into());
    }
    Ok(String::from_utf8_lossy(&git.stdout).into_owned())
}

async fn load(worker: &Worker, model: &str) -> Result<()> {
    let mut load = worker.load_stream(model);
    while let Some(event) = load.next().await {
        if let LoadEvent::Progress(Progress { stage, current, total: Some(total), unit }) = event? {
            let end = if current == total { "\n" } else { "" };
            write!(stderr(), "\r{stage} {current} of {total} {unit}{end}")?;
        }
    }
    Ok(())
}

/// Stream the message to stdout, and return it.
async fn write_message(worker: &Worker, diff: String) -> Result<String> {
    let chat = Chat::new([Message::system(INSTRUCTIONS), Message::user(diff)])
        .reasoning("off")
        .max_tokens(200u64)
        .truncate("middle"); // of a diff that is longer than the context
    let (mut answer, mut message) = (worker.chat(chat), String::new());
    loop {
        let event = tokio::select! {
            event = answer.next() => event.transpose()?,
            _ = tokio::signal::ctrl_c() => {
                answer.cancel();
                continue;
            }
        };
        let Some(event) = event else { break };
        print!("{}", event.text());
        stdout().flush()?;
        message.push_str(event.text());
    }
    println!();
    Ok(message.trim().to_owned())
}

fn commit(message: &str) -> Result<()> {
    let mut git = Command::new("git").args(["commit", "--file=-"]).stdin(Stdio::piped()).spawn()?;
    git.stdin.take().expect("stdin is a pipe").write_all(message.as_bytes())?;
    let status = git.wait()?;
    if status.success() { Ok(()) } else { Err(format!("git commit: {status}").into()) }
}
