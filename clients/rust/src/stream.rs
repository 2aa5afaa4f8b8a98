use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::answer::{Accumulator, Answer};
use crate::connection::Connection;
use crate::decode::{Done, RawEvent};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::session::{Queue, queue};
use crate::worker::Worker;

/// A request in flight. Its drop cancels it.
pub(crate) struct Request {
    connection: Arc<Connection>,
    /// The worker lives at least as long as its requests.
    _worker: Option<Worker>,
    id: Option<String>,
    queue: Queue,
    ended: bool,
}

impl Request {
    /// Send a command. If it cannot be sent, the request's only event is the error.
    pub fn send(
        connection: Arc<Connection>,
        worker: Option<Worker>,
        command: &'static str,
        fields: Result<Vec<u8>>,
    ) -> Self {
        let (end, queue) = queue();
        let failed = end.clone();
        let sent = fields.and_then(|fields| connection.session.send(command, &fields, Some(end)));
        let id = sent.map_err(|error| failed.add(Err(error), 0)).ok();
        Self { connection, _worker: worker, id, queue, ended: false }
    }

    pub fn cancel(&self) {
        if let Some(id) = &self.id {
            self.connection.session.cancel(id);
        }
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RawEvent>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let Some((event, size)) = ready!(self.queue.events.poll_recv(context)) else {
            self.ended = true;
            return Poll::Ready(None);
        };
        self.queue.taken(size);
        self.ended = matches!(event, Err(_) | Ok(RawEvent::Done(_)));
        Poll::Ready(Some(event))
    }

    /// Read the events to the end, and return the last one.
    pub async fn done(mut self, mut on_event: impl FnMut(RawEvent) -> Result<()>) -> Result<Done> {
        while let Some(event) = poll_fn(|context| self.poll_event(context)).await {
            match event? {
                RawEvent::Done(done) => return Ok(done),
                event => on_event(event)?,
            }
        }
        Err(Error::MalformedResult("the request ended without a result".into())) // its queue always ends with one
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let (false, Some(id)) = (self.ended, &self.id) {
            self.connection.session.abandon(id);
        }
    }
}

/// The events of a request that is in flight. Its last item is the end of the answer, or an error.
///
/// To drop it cancels the request. The worker and its other requests go on.
#[must_use = "the request is cancelled when its stream is dropped"]
pub struct RequestStream<T> {
    request: Request,
    select: fn(RawEvent) -> Option<T>,
}

/// The events of an answer.
pub type AnswerStream = RequestStream<Event>;

impl<T> RequestStream<T> {
    pub(crate) fn new(request: Request, select: fn(RawEvent) -> Option<T>) -> Self {
        Self { request, select }
    }

    /// Return the next event, or None after the end.
    pub async fn next(&mut self) -> Option<Result<T>> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Ask the worker to end the request. The events so far follow, and an end with
    /// [`FinishReason::Cancelled`](crate::FinishReason::Cancelled).
    pub fn cancel(&self) {
        self.request.cancel();
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            match ready!(self.request.poll_event(context)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(event)) => {
                    if let Some(item) = (self.select)(event) {
                        return Poll::Ready(Some(Ok(item)));
                    }
                }
            }
        }
    }
}

impl AnswerStream {
    /// Read the events to the end, and return the whole answer.
    ///
    /// # Errors
    ///
    /// Those of the stream, and [`Error::MalformedResult`].
    pub async fn collect_answer(mut self) -> Result<Answer> {
        let mut accumulator = Accumulator::new();
        while let Some(event) = self.next().await {
            accumulator.add(event?);
        }
        accumulator.answer()
    }
}

impl<T> Stream for RequestStream<T> {
    type Item = Result<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}
