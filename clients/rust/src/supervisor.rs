use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::builder::WorkerBuilder;
use crate::circuit_breaker::{CircuitBreaker, Failures};
use crate::error::{Error, Result};
use crate::watchdog::watch;
use crate::worker::Worker;

type SetUp = Box<dyn Fn(Worker) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync>;

/// A step takes less than a second, or a few on a slow machine.
const STEP_LIMIT: Duration = Duration::from_secs(300);

/// Starts a new worker after one has died or hung, within limits.
///
/// The new worker starts when one is asked for, not when the old one dies. So a model that kills its worker is not loaded again
/// and again while nobody waits. Requests of a dead worker fail with [`Error::WorkerLost`] and are not repeated: only the
/// caller knows whether it has used half an answer.
pub struct Supervisor {
    builder: WorkerBuilder,
    set_up: Option<SetUp>,
    step_limit: Option<Duration>,
    breaker: CircuitBreaker,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Current>,
    failures: Failures,
}

struct Current {
    worker: Worker,
    watchdog: Option<JoinHandle<()>>,
}

impl Drop for Current {
    fn drop(&mut self) {
        if let Some(watchdog) = &self.watchdog {
            watchdog.abort();
        }
    }
}

impl Supervisor {
    /// Return a supervisor whose workers start with these options.
    pub fn new(builder: WorkerBuilder) -> Self {
        Self {
            builder,
            set_up: None,
            step_limit: Some(STEP_LIMIT),
            breaker: CircuitBreaker::default(),
            state: Mutex::default(),
        }
    }

    /// Set what prepares a started worker for requests: it loads the model.
    pub fn set_up<F, R>(mut self, set_up: F) -> Self
    where
        F: Fn(Worker) -> R + Send + Sync + 'static,
        R: Future<Output = Result<()>> + Send + 'static,
    {
        self.set_up = Some(Box::new(move |worker| Box::pin(set_up(worker))));
        self
    }

    /// Set the time without progress after which a worker counts as hung, while a request waits. A load that reports progress
    /// makes progress. The default is 5 minutes; None turns it off.
    pub fn step_limit(mut self, limit: Option<Duration>) -> Self {
        self.step_limit = limit;
        self
    }

    /// Set the limit to starts after failures.
    pub fn circuit_breaker(mut self, breaker: CircuitBreaker) -> Self {
        self.breaker = breaker;
        self
    }

    /// Return the worker. If none is alive, start and set up a new one first.
    ///
    /// # Errors
    ///
    /// Those of [`WorkerBuilder::spawn`] and of the set-up. [`Error::Unavailable`] if too many workers have failed, and no
    /// start was tried.
    pub async fn worker(&self) -> Result<Worker> {
        let mut state = self.state.lock().await;
        if let Some(lost) = state.current.as_ref().and_then(|current| current.worker.lost()) {
            state.failures.add(lost, &self.breaker, Instant::now());
            state.current = None; // its process is gone, or its drop kills it
        }
        if let Some(current) = &state.current {
            return Ok(current.worker.clone());
        }
        state.failures.check(Instant::now())?;
        match self.start().await {
            Ok(current) => Ok(state.current.insert(current).worker.clone()),
            Err(error) => {
                if matches!(error, Error::Start { .. } | Error::WorkerNotFound { .. } | Error::WorkerLost(_)) {
                    state.failures.add(error.clone(), &self.breaker, Instant::now());
                }
                Err(error)
            }
        }
    }

    async fn start(&self) -> Result<Current> {
        let worker = self.builder.clone().spawn().await?;
        let watchdog = self.step_limit.map(|limit| tokio::spawn(watch(worker.connection().clone(), limit)));
        let current = Current { worker, watchdog };
        if let Some(set_up) = &self.set_up {
            set_up(current.worker.clone()).await?;
        }
        Ok(current)
    }

    /// End the worker, as [`Worker::close`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Worker::close`].
    pub async fn close(&self) -> Result<()> {
        match self.state.lock().await.current.take() {
            Some(current) => current.worker.close().await,
            None => Ok(()),
        }
    }
}
