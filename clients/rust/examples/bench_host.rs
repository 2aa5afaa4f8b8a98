//! Measures this crate for `lmwire bench hosts`, which builds and starts it: `bench_host STREAMS COMMAND...`.
//!
//! It starts the command as a worker. It prints the time to the first token, and then how many events come in how long.

use std::time::Instant;

use lmwire::{Event, Generate, Load, Result, Worker};
use serde_json::json;

#[tokio::main(flavor = "current_thread")] // several threads would wake each other for each event
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let streams: usize = arguments.next().and_then(|text| text.parse().ok()).expect("a number of streams");
    let started = Instant::now();
    let worker = Worker::builder().command(arguments).spawn().await?;
    worker.load(Load::new("mock")).await?;
    let mut first_token_ms = None;
    let mut stream = worker.generate(Generate::new("first"));
    while let Some(event) = stream.next().await {
        if let Event::Token(_) = event? {
            first_token_ms.get_or_insert_with(|| started.elapsed().as_secs_f64() * 1e3);
        }
    }
    let began = Instant::now();
    let tasks: Vec<_> = (0..streams).map(|_| tokio::spawn(count(worker.clone()))).collect();
    let mut events = 0;
    for task in tasks {
        events += task.await.expect("no panic")?;
    }
    let seconds = began.elapsed().as_secs_f64();
    worker.close().await?;
    println!("{}", json!({ "first_token_ms": first_token_ms, "events": events, "seconds": seconds }));
    Ok(())
}

/// Read a stream, and return the number of its tokens.
async fn count(worker: Worker) -> Result<usize> {
    let mut tokens = 0;
    let mut stream = worker.generate(Generate::new("burst"));
    while let Some(event) = stream.next().await {
        if let Event::Token(token) = event? {
            tokens += token.token_ids.len();
        }
    }
    Ok(tokens)
}
