//! Answer each line of stdin with the built-in model. A test ships this program beside a bundle.
//!
//! It first prints the worker's process id and version.

use std::io::{Write, stdout};

use lmwire::{Chat, Result, Worker};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

#[tokio::main]
async fn main() -> Result<()> {
    let worker = Worker::builder().spawn().await?;
    worker.load("builtin:tiny").await?;
    println!("{} {}", worker.pid(), worker.hello().worker);
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await.expect("stdin is readable") {
        let mut answer = worker.chat(Chat::from(line.as_str()).max_tokens(20u64).temperature(0.0));
        while let Some(event) = answer.next().await {
            print!("{}", event?.text());
            stdout().flush().expect("stdout is writable");
        }
        println!();
    }
    worker.close().await
}
