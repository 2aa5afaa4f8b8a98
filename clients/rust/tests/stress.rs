//! Many requests at once. This program has one test, so that nothing else opens descriptors.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use lmwire::Event;
use support::{endless, idle, is_alive, mock, scenario, within};

/// A small generator of repeatable numbers: SplitMix64, https://prng.di.unimi.it/splitmix64.c
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_requests_with_random_drops_leave_nothing_behind() {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let descriptors = || std::fs::read_dir("/dev/fd").unwrap().count();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    within(mock(&[]).await.close()).await.unwrap(); // tokio opens descriptors for the first process
    let before = (tasks(), descriptors());
    let worker = scenario(endless()).await;
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..32 {
        let worker = worker.clone();
        clients.spawn(async move {
            let mut state = client;
            while NEXT.fetch_add(1, Ordering::SeqCst) < 1000 {
                if random(&mut state).is_multiple_of(2) {
                    let text = format!("request {} of all", random(&mut state) % 1000);
                    assert_eq!(worker.chat(text.as_str()).collect_answer().await.unwrap().text, text);
                    continue;
                }
                let mut stream = worker.chat("forever");
                for _ in 0..random(&mut state) % 5 {
                    assert!(!matches!(stream.next().await.unwrap().unwrap(), Event::Finish(_)));
                }
                drop(stream);
                DROPPED.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    while let Some(client) = within(clients.join_next()).await {
        client.unwrap();
    }
    assert!(DROPPED.load(Ordering::SeqCst) > 300);
    within(idle(&worker)).await;
    let stats = within(worker.stats()).await.unwrap().requests;
    assert_eq!((stats.accepted, stats.active + stats.queued), (1001, 0)); // with the load
    let pid = worker.pid();
    within(worker.close()).await.unwrap();
    drop(worker);
    assert!(!is_alive(pid));
    while tasks() > before.0 {
        tokio::task::yield_now().await;
    }
    assert!(descriptors() <= before.1);
}
