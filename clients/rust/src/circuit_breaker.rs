use std::time::{Duration, Instant};

use crate::error::Error;

/// A limit to starts: it forbids them for a while after several failures. Each further failure within the window doubles
/// that time.
#[derive(Debug, Clone)]
pub struct CircuitBreaker {
    /// Failures that open the breaker.
    pub limit: usize,
    /// Time within which they happen.
    pub window: Duration,
    /// How long starts are forbidden at first.
    pub backoff: Duration,
    /// How long starts are forbidden at most.
    pub max_backoff: Duration,
}

impl Default for CircuitBreaker {
    /// Return a breaker that opens after 3 failures within a minute, for 5 s to 5 minutes.
    fn default() -> Self {
        Self {
            limit: 3,
            window: Duration::from_secs(60),
            backoff: Duration::from_secs(5),
            max_backoff: Duration::from_secs(300),
        }
    }
}

/// The recent failures that a breaker counts.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    times: Vec<Instant>,
    backoff: Duration,
    last: Option<Error>,
}

impl Failures {
    /// Record that a worker has died, or failed to start.
    pub fn add(&mut self, error: Error, breaker: &CircuitBreaker, now: Instant) {
        self.last = Some(error);
        self.times.push(now);
        self.times.drain(..self.times.len().saturating_sub(breaker.limit));
        let is_recent = now.duration_since(self.times[0]) <= breaker.window;
        self.backoff = if self.times.len() == breaker.limit && is_recent {
            breaker.max_backoff.min(breaker.backoff.max(2 * self.backoff))
        } else {
            Duration::ZERO
        };
    }

    /// Return an error if a start is forbidden.
    pub fn check(&self, now: Instant) -> Result<(), Error> {
        let (Some(latest), Some(last)) = (self.times.last(), &self.last) else { return Ok(()) };
        let retry_after = (*latest + self.backoff).saturating_duration_since(now);
        if retry_after.is_zero() {
            return Ok(());
        }
        Err(Error::Unavailable { failures: self.times.len(), retry_after, last: Box::new(last.clone()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_short_order_forbid_starts_for_longer_each_time() {
        let (breaker, mut failures, start) = (CircuitBreaker::default(), Failures::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for second in 0..3 {
            assert!(failures.check(at(second)).is_ok());
            failures.add(Error::SlowConsumer, &breaker, at(second));
        }
        assert!(failures.check(at(6)).is_err());
        assert!(failures.check(at(7)).is_ok());
        failures.add(Error::SlowConsumer, &breaker, at(7));
        assert!(failures.check(at(16)).is_err());
        assert!(failures.check(at(17)).is_ok());
    }

    #[test]
    fn rare_failures_forbid_nothing() {
        let (breaker, mut failures, start) = (CircuitBreaker::default(), Failures::default(), Instant::now());
        for minute in 0..9 {
            let now = start + Duration::from_secs(60 * minute);
            failures.add(Error::SlowConsumer, &breaker, now);
            assert!(failures.check(now).is_ok());
        }
    }
}
