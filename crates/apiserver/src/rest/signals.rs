//! What a watch waits for besides events.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use futures::StreamExt;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::Api;

/// Why a watch goes on that has no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// The time that was set has come.
    Alarm,
    /// The kinds that are served changed.
    Kinds,
    /// The server ends.
    Shutdown,
}

/// All that a watch waits for, kept from event to event: to begin to wait anew for each would cost more than the event.
pub(super) struct Signals {
    alarm: Pin<Box<Sleep>>,
    kinds: WatchStream<u64>,
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Signals {
    pub(super) fn new(api: &Api, alarm: Instant) -> Self {
        Self {
            alarm: Box::pin(sleep_until(alarm)),
            kinds: WatchStream::from_changes(api.registry().changes()),
            shutdown: Box::pin(api.shutdown().clone().cancelled_owned()),
        }
    }

    /// The alarm rings at this time and not before.
    pub(super) fn set_alarm(&mut self, at: Instant) {
        self.alarm.as_mut().reset(at);
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Signal> {
        if self.shutdown.as_mut().poll(context).is_ready() {
            return Poll::Ready(Signal::Shutdown);
        }
        if self.alarm.as_mut().poll(context).is_ready() {
            return Poll::Ready(Signal::Alarm);
        }
        match self.kinds.poll_next_unpin(context) {
            Poll::Ready(Some(_)) => Poll::Ready(Signal::Kinds),
            _ => Poll::Pending,
        }
    }
}
