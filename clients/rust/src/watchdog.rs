use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::connection::Connection;
use crate::error::LossReason;
use crate::stream::Request;
use crate::worker::done;

/// Checks without progress that mean a hang, so the limit is accurate to one eighth.
const CHECKS: u32 = 8;

/// End a worker that makes no progress while requests wait for it. It counts checks and does not subtract times: after a
/// machine slept for an hour, or the host was stopped, only one check was missed.
pub(crate) async fn watch(connection: Arc<Connection>, limit: Duration) {
    let every = (limit / CHECKS).max(Duration::from_millis(1));
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let (mut idle, mut last) = (0, Instant::now());
    loop {
        tokio::select! {
            () = connection.done() => return,
            _ = ticks.tick() => {}
        }
        let started = Instant::now();
        if !connection.session.is_busy() || progresses(&connection, every, last.elapsed()).await {
            idle = 0;
        } else {
            idle += 1;
        }
        if idle == CHECKS {
            return connection.abort(LossReason::Hung).await;
        }
        last = started;
    }
}

/// Return whether the worker answers, and has made a step since the check before, or need not make one.
async fn progresses(connection: &Arc<Connection>, limit: Duration, since: Duration) -> bool {
    let ping = Request::send(connection.clone(), None, "ping", Ok(b"{}".to_vec())).done(|_| Ok(()));
    let Ok(Ok(done)) = timeout(limit, ping).await else { return false };
    let reply = done!(done, Ping);
    let waits = ["idle", "paused", "draining"].contains(&reply.state.as_str());
    waits || reply.step_age_ms.is_none_or(|age| age < since.as_secs_f64() * 1000.0)
}
