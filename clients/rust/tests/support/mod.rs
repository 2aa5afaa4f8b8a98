//! Workers that tests start.
#![allow(dead_code)] // each test program uses a part

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lmwire::{Error, Worker, WorkerBuilder};

/// Longest time of a test. A test that passes waits for events, so it takes no longer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Return the program of this repository, or that of PATH.
pub fn lmwire() -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/lmwire");
    if program.exists() { program.to_string_lossy().into_owned() } else { "lmwire".into() }
}

/// Return the options of a worker of this repository.
pub fn builder(args: &[&str]) -> WorkerBuilder {
    let program = lmwire();
    Worker::builder().command([&[program.as_str()], args].concat())
}

/// Run a test within its time.
pub async fn within<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, test).await.expect("the events come")
}

/// Start a mock with a loaded model.
pub async fn mock(args: &[&str]) -> Worker {
    let args: Vec<_> = [&["mock"], args].concat();
    let worker = builder(&args).spawn().await.unwrap();
    worker.load("mock").await.unwrap();
    worker
}

/// Start a mock with a fault, and a loaded model.
pub async fn faulty(fault: &str) -> Worker {
    mock(&["--fault", fault]).await
}

/// Start a mock that follows a rule.
pub async fn scenario(rule: serde_json::Value) -> Worker {
    let file = scenario_file(rule);
    let worker = mock(&["--scenario", &file.to_string_lossy()]).await;
    std::fs::remove_file(file).unwrap();
    worker
}

/// Write a file with a rule, and return its path.
pub fn scenario_file(rule: serde_json::Value) -> PathBuf {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("lmwire-rust-{}-{number}.json", std::process::id()));
    std::fs::write(&file, serde_json::json!({ "rules": [rule] }).to_string()).unwrap();
    file
}

/// Return the rule of a chat that never ends by itself.
pub fn endless() -> serde_json::Value {
    serde_json::json!({ "match": { "last_message": "forever" }, "reply": { "text": "on ", "then": "repeat" } })
}

/// Start the real worker with the built-in model.
pub async fn tiny() -> Worker {
    let worker = builder(&["worker"]).spawn().await.unwrap();
    worker.load("builtin:tiny").await.unwrap();
    worker
}

/// Read an answer to its end, and return its text and the error that ended it.
pub async fn read(worker: &Worker, prompt: &str) -> (String, Option<Error>) {
    let (mut stream, mut text) = (worker.chat(prompt), String::new());
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => text.push_str(event.text()),
            Err(error) => return (text, Some(error)),
        }
    }
    (text, None)
}

/// Wait until the worker has ended all requests, those included that nobody reads.
pub async fn idle(worker: &Worker) {
    while within(worker.ping()).await.unwrap().state != "idle" {}
}

/// Return whether a process exists.
pub fn is_alive(pid: u32) -> bool {
    let pid = nix::unistd::Pid::from_raw(pid.try_into().unwrap());
    nix::sys::signal::kill(pid, None).is_ok()
}

/// Wait until the worker's process is gone.
pub async fn gone(pid: u32) {
    while is_alive(pid) {
        tokio::task::yield_now().await;
    }
}

/// Return a path that no file has.
pub fn missing_file() -> PathBuf {
    "/nonexistent/lmwire".into()
}
