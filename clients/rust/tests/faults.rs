//! The client with workers that die, hang or break the protocol.

mod support;

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lmwire::{Chat, CircuitBreaker, Error, ErrorCode, FinishReason, LossReason, ShutdownTimeouts, Supervisor, Worker};
use serde_json::json;
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use support::{builder, faulty, gone, is_alive, lmwire, missing_file, mock, read, scenario_file, within};

const IMPATIENT: ShutdownTimeouts = ShutdownTimeouts {
    quit: Duration::from_millis(50),
    stdin: Duration::from_millis(50),
    term: Duration::from_millis(50),
};

fn whole() -> String {
    "a b".into()
}

#[tokio::test]
async fn a_request_of_a_killed_worker_is_lost_and_its_text_is_kept() {
    for fault in ["crash-mid-stream:after=2", "crash-mid-line:after=3", "crash-mid-stream:after=2,exit=0"] {
        let (text, error) = within(read(&faulty(fault).await, "a b c d")).await;
        assert!(matches!(error, Some(Error::WorkerLost(_))), "{fault}: {error:?}");
        assert_eq!(text, "a b ", "{fault}");
    }
}

#[tokio::test]
async fn the_error_of_a_lost_request_names_the_workers_end() {
    for (fault, end) in [("crash-mid-stream:signal=KILL", "signal: 9"), ("crash-mid-stream:exit=70", "status: 70")] {
        let (_, error) = within(read(&faulty(fault).await, "a b c d e")).await;
        let text = error.unwrap().to_string();
        assert!(text.contains(end), "{text}");
    }
}

#[tokio::test]
async fn an_answer_that_came_before_the_death_is_whole() {
    let (text, error) = within(read(&faulty("crash-after-terminal").await, "a b")).await;
    assert!(error.is_none());
    assert_eq!(text, whole());
}

#[tokio::test]
async fn a_worker_that_breaks_the_protocol_is_killed() {
    for fault in ["garbage-between-events", "garbage-half-line", "long-line"] {
        let worker = faulty(fault).await;
        let (_, error) = within(read(&worker, "a b c")).await;
        let Some(Error::WorkerLost(lost)) = error else { panic!("{fault}: {error:?}") };
        assert!(matches!(lost.reason, Some(LossReason::Protocol { .. })), "{fault}: {lost}");
        worker.close().await.unwrap();
        assert!(!is_alive(worker.pid()));
    }
}

#[tokio::test]
async fn unusual_lines_change_nothing() {
    let faults = ["duplicate-terminal", "event-after-terminal", "unknown-id", "unknown-event", "unknown-fields"];
    for fault in faults.iter().chain(&["garbage-before-hello:bytes=60000"]) {
        let (text, error) = within(read(&faulty(fault).await, "a b")).await;
        assert!(error.is_none(), "{fault}: {error:?}");
        assert_eq!(text, whole(), "{fault}");
    }
}

#[tokio::test]
async fn a_flood_on_stderr_stops_nothing_and_its_end_is_kept() {
    let lines = Arc::new(AtomicUsize::new(0));
    let count = lines.clone();
    let start = builder(&["mock", "--fault", "stderr-flood"]).on_stderr(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let worker = within(start.spawn()).await.unwrap();
    worker.load("mock").await.unwrap();
    assert_eq!(within(read(&worker, "a b")).await.0, whole());
    within(worker.close()).await.unwrap();
    assert_eq!(worker.stderr().len(), 64);
    assert!(lines.load(Ordering::SeqCst) > 64);
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipes_delays_nothing() {
    let worker = faulty("grandchild").await; // it would live for 60 s
    assert_eq!(within(read(&worker, "a b")).await.0, whole());
    within(worker.close()).await.unwrap();
    assert!(!is_alive(worker.pid()));
}

#[tokio::test]
async fn a_worker_that_never_answers_hello_is_a_failed_start() {
    let start = builder(&["mock", "--fault", "no-hello"]).start_timeout(Duration::from_secs(1));
    let error = within(start.spawn()).await.unwrap_err();
    assert!(error.to_string().contains("did not answer `hello` in 1s"), "{error}");
}

#[tokio::test]
async fn a_worker_that_cannot_be_used_is_a_failed_start() {
    for fault in ["newer-version", "wrong-version", "crash-start"] {
        let error = within(builder(&["mock", "--fault", fault]).spawn()).await.unwrap_err();
        assert!(matches!(error, Error::Start { .. }), "{fault}: {error}");
    }
    let missing = missing_file().to_string_lossy().into_owned();
    let error = within(Worker::builder().command([missing.clone()]).spawn()).await.unwrap_err();
    assert!(error.to_string().contains(&missing), "{error}");
}

#[tokio::test]
async fn a_burst_is_read_whole() {
    let worker = faulty("burst:tokens=50000").await;
    let answer = within(worker.chat("a b").collect_answer()).await.unwrap();
    assert_eq!(answer.token_ids.len(), 50_000);
}

#[tokio::test]
async fn a_slow_consumer_loses_nothing_and_delays_nobody() {
    let worker = faulty("burst:tokens=20000").await;
    let mut slow = worker.chat("slow");
    let mut tokens = 0;
    for number in 0.. {
        let Some(event) = within(slow.next()).await else { break };
        if number < 3 {
            within(worker.ping()).await.unwrap();
            within(worker.chat("quick").collect_answer()).await.unwrap();
        }
        if let lmwire::Event::Token(token) = event.unwrap() {
            tokens += token.token_ids.len();
        }
    }
    assert_eq!(tokens, 20_000);
}

#[tokio::test]
async fn a_consumer_that_is_too_slow_fails_alone() {
    let start = builder(&["mock", "--fault", "burst:tokens=20000"]).queue_limit(1000);
    let worker = within(start.spawn()).await.unwrap();
    worker.load("mock").await.unwrap();
    let stream = worker.chat("slow");
    within(worker.clear_cache()).await.unwrap(); // the burst came before this reply
    assert!(matches!(within(stream.collect_answer()).await, Err(Error::SlowConsumer)));
    within(worker.ping()).await.unwrap();
}

#[tokio::test]
async fn every_step_of_the_shutdown_ends_the_worker_that_needs_it() {
    for fault in ["ignore-quit", "ignore-eof", "ignore-sigterm"] {
        let worker = within(builder(&["mock", "--fault", fault]).shutdown_timeouts(IMPATIENT).spawn()).await.unwrap();
        within(worker.close()).await.unwrap();
        assert!(!is_alive(worker.pid()), "{fault}");
    }
}

#[tokio::test]
async fn a_close_ends_a_worker_whose_engine_hangs_and_its_requests_are_lost() {
    // With SIGTERM alone the worker would write its terminals, if it had the time.
    let faults = ["mock", "--fault", "stall:after=1", "--fault", "ignore-sigterm"];
    let start = builder(&faults).shutdown_timeouts(IMPATIENT);
    let worker = within(start.spawn()).await.unwrap();
    worker.load("mock").await.unwrap();
    let mut stream = worker.chat("a b c");
    within(stream.next()).await.unwrap().unwrap();
    within(worker.close()).await.unwrap();
    assert!(matches!(within(stream.collect_answer()).await, Err(Error::WorkerLost(_))));
}

#[tokio::test]
async fn an_unknown_finish_reason_reads_as_other() {
    let answer = within(faulty("unknown-values").await.chat("a b").collect_answer()).await.unwrap();
    assert_eq!(answer.finish_reason, Some(FinishReason::Other));
}

#[tokio::test]
async fn a_failed_load_says_whether_a_model_is_loaded() {
    let worker = within(builder(&["mock", "--fault", "failed-load"]).spawn()).await.unwrap();
    let Err(Error::Request(error)) = within(worker.load("mock")).await else { panic!("the load did not fail") };
    assert_eq!((&error.code, error.loaded), (&ErrorCode::BadModel, Some(false)));
}

#[tokio::test]
async fn the_drop_of_the_last_handle_ends_the_process() {
    let worker = mock(&[]).await;
    let (pid, clone) = (worker.pid(), worker.clone());
    drop(worker);
    within(clone.ping()).await.unwrap();
    let stream = clone.chat("a b");
    drop(clone);
    assert_eq!(within(stream.collect_answer()).await.unwrap().text, whole()); // the stream holds the worker
    within(gone(pid)).await;
}

#[test]
fn the_end_of_the_runtime_ends_the_process() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let worker = runtime.block_on(mock(&[]));
    drop(runtime);
    assert!(matches!(worker.lost(), Some(Error::WorkerLost(_))));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        assert!(matches!(worker.chat("a").collect_answer().await, Err(Error::WorkerLost(_))));
        let other = mock(&[]).await; // tokio reaps the first process when it starts or reaps another
        within(other.close()).await.unwrap();
    });
}

/// A program that starts a worker, prints a line when an endless chat streams, and reads on.
async fn run_host(pipe: &str) {
    let command = format!("exec 9>'{pipe}'; exec '{}' mock --model mock --token-ms 20", lmwire());
    let worker = Worker::builder().command(["sh", "-c", &command]).host_watch(true).spawn().await.unwrap();
    worker.load("mock").await.unwrap();
    let mut stream = worker.chat(Chat::from("on and on").ignore_eos(true));
    while let Some(event) = stream.next().await {
        if !event.unwrap().text().is_empty() {
            println!("\nstreams");
        }
    }
}

#[tokio::test]
async fn a_host_that_is_killed_leaves_no_worker() {
    if let Ok(pipe) = std::env::var("LMWIRE_TEST_HOST") {
        return run_host(&pipe).await;
    }
    // The worker holds the pipe open as long as it lives.
    let pipe = std::env::temp_dir().join(format!("lmwire-rust-{}.pipe", std::process::id()));
    assert!(Command::new("mkfifo").arg(&pipe).status().await.unwrap().success());
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_host_that_is_killed_leaves_no_worker", "--nocapture"])
        .env("LMWIRE_TEST_HOST", &pipe)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut worker = within(File::open(&pipe)).await.unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    while within(lines.next_line()).await.unwrap().expect("the host streams") != "streams" {}
    host.kill().await.unwrap();
    within(worker.read_to_end(&mut Vec::new())).await.unwrap();
    tokio::fs::remove_file(pipe).await.unwrap();
}

fn supervise(fault: &str) -> Supervisor {
    let start = builder(&["mock", "--fault", fault]).shutdown_timeouts(IMPATIENT);
    Supervisor::new(start).set_up(|worker| async move { worker.load("mock").await.map(drop) })
}

#[tokio::test]
async fn a_supervisor_starts_a_new_worker_when_one_is_asked_for_after_a_death() {
    let supervisor = supervise("crash-mid-stream:after=1");
    let first = within(supervisor.worker()).await.unwrap();
    assert!(matches!(within(read(&first, "a b c")).await.1, Some(Error::WorkerLost(_))));
    let second = within(supervisor.worker()).await.unwrap();
    assert_ne!(first.pid(), second.pid());
    assert_eq!(within(supervisor.worker()).await.unwrap().pid(), second.pid());
    within(second.info()).await.unwrap(); // the set-up ran
    within(supervisor.close()).await.unwrap();
    assert!(!is_alive(second.pid()));
}

#[tokio::test]
async fn a_supervisor_stops_starting_workers_that_fail() {
    let breaker =
        CircuitBreaker { window: Duration::from_secs(3600), backoff: Duration::from_secs(3600), ..Default::default() };
    let supervisor = supervise("crash-start").circuit_breaker(breaker);
    for _ in 0..3 {
        assert!(matches!(within(supervisor.worker()).await, Err(Error::Start { .. })));
    }
    assert!(matches!(within(supervisor.worker()).await, Err(Error::Unavailable { .. })));
}

#[tokio::test]
async fn a_supervisor_ends_a_worker_that_hangs() {
    let file = scenario_file(json!({ "match": { "cmd": "load" }, "reply": { "then": "hang" } }));
    let start = builder(&["mock", "--scenario", &file.to_string_lossy()]).shutdown_timeouts(IMPATIENT);
    // The only request is the one that hangs, since a slow one would look like it.
    let supervisor = Supervisor::new(start).step_limit(Some(Duration::from_millis(400)));
    let worker = within(supervisor.worker()).await.unwrap();
    let loaded = within(worker.load("mock")).await;
    let Err(Error::WorkerLost(lost)) = loaded else { panic!("{loaded:?}") };
    assert_eq!(lost.reason, Some(LossReason::Hung));
    within(worker.ended()).await;
    assert!(!is_alive(worker.pid()));
    std::fs::remove_file(file).unwrap();
}
