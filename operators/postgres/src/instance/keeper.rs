//! Keeps the lease of the primary while this member leads, and tells who does.

use std::time::Duration;

use futures::StreamExt;
use tokio::sync::{mpsc, oneshot, watch};
use windlass::runtime::Clock;
use windlass::runtime::tenure::{Holder, Tenure, TenureError};

use super::fence::Guard;
use crate::wire::Memory;

/// How often the time is looked at: a lease runs out without a sign.
const LOOK: Duration = Duration::from_millis(200);
/// Requests that wait.
const REQUESTS_MAX: usize = 8;

/// What is known of the leadership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) holder: Holder,
    pub(crate) memory: Memory,
    /// Since when nobody leads, by the clock.
    pub(crate) vacant_since: Option<Duration>,
    /// When this member must have stopped to lead, by the clock.
    pub(crate) held_until: Option<Duration>,
}

enum Request {
    Hold(Memory, oneshot::Sender<Result<(), TenureError>>),
    Release(Memory, oneshot::Sender<Result<(), TenureError>>),
}

/// The way to the task that keeps the lease.
#[derive(Clone)]
pub(crate) struct Keeper {
    requests: mpsc::Sender<Request>,
    view: watch::Receiver<View>,
}

impl Keeper {
    /// Begins to watch the lease, which is renewed every `interval` while it is held.
    pub(crate) fn start(tenure: Tenure, clock: Clock, guard: Guard, interval: Duration) -> Self {
        let (requests, incoming) = mpsc::channel(REQUESTS_MAX);
        let view = View { holder: Holder::Unknown, memory: Memory::default(), vacant_since: None, held_until: None };
        let (sender, view) = watch::channel(view);
        let task = Task { tenure, clock, guard, interval, sender, kept: None, next: Duration::ZERO };
        tokio::spawn(task.run(incoming));
        Self { requests, view }
    }

    /// What is known now.
    pub(crate) fn view(&self) -> View {
        self.view.borrow().clone()
    }

    /// Waits until something else is known.
    pub(crate) async fn changed(&mut self) {
        if self.view.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Takes the lease, or remembers something else while it is held; it is renewed from then on.
    pub(crate) async fn hold(&self, memory: Memory) -> Result<(), TenureError> {
        self.ask(|reply| Request::Hold(memory, reply)).await
    }

    /// Lets somebody else lead. The server must have ended before.
    pub(crate) async fn release(&self, memory: Memory) -> Result<(), TenureError> {
        self.ask(|reply| Request::Release(memory, reply)).await
    }

    async fn ask(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<(), TenureError>>) -> Request,
    ) -> Result<(), TenureError> {
        let (reply, answer) = oneshot::channel();
        let gone = || TenureError::Silent("of the primary".into());
        self.requests.send(request(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

struct Task {
    tenure: Tenure,
    clock: Clock,
    guard: Guard,
    interval: Duration,
    sender: watch::Sender<View>,
    /// What is written with each renewal, while the lease is held.
    kept: Option<Memory>,
    /// When to renew next.
    next: Duration,
}

impl Task {
    async fn run(mut self, mut incoming: mpsc::Receiver<Request>) {
        let mut states = Box::pin(self.tenure.watch());
        loop {
            tokio::select! {
                state = states.next() => match state {
                    Some(lease) => self.tenure.see(lease),
                    None => return,
                },
                request = incoming.recv() => match request {
                    Some(request) => self.serve(request).await,
                    None => return,
                },
                () = self.clock.sleep(LOOK) => {}
            }
            self.renew_if_due().await;
            self.tell();
        }
    }

    async fn serve(&mut self, request: Request) {
        match request {
            Request::Hold(memory, reply) => {
                let held = self.hold(memory).await;
                self.tell();
                let _ = reply.send(held);
            }
            Request::Release(memory, reply) => {
                self.kept = None;
                self.guard.rest();
                let released = self.tenure.release(&memory.marks()).await;
                self.tell();
                let _ = reply.send(released);
            }
        }
    }

    async fn renew_if_due(&mut self) {
        let Some(memory) = self.kept.clone().filter(|_| self.clock.elapsed() >= self.next) else { return };
        let Err(error) = self.hold(memory).await else { return };
        tracing::warn!(%error, "The lease was not renewed");
        if !matches!(self.tenure.holder(), Holder::Me | Holder::Unknown) {
            // Too late, or somebody else's: what led must not go on.
            self.kept = None;
            self.guard.allow(None);
        }
    }

    async fn hold(&mut self, memory: Memory) -> Result<(), TenureError> {
        let asked = self.clock.elapsed();
        let mut held = self.tenure.hold(&memory.marks()).await;
        if matches!(held, Err(TenureError::Taken(_))) && matches!(self.tenure.holder(), Holder::Me | Holder::Lapsed) {
            held = self.tenure.hold(&memory.marks()).await; // Somebody wrote something else on it.
        }
        if held.is_ok() {
            self.guard.allow(self.tenure.held_until());
            self.kept = Some(memory);
        }
        self.next = asked + if held.is_ok() { self.interval } else { self.interval / 4 };
        held
    }

    fn tell(&mut self) {
        let (holder, memory) = (self.tenure.holder(), Memory::read(&self.tenure.marks()));
        let now = self.clock.elapsed();
        self.sender.send_if_modified(|view| {
            let since = view.vacant_since.or(Some(now)).filter(|_| holder == Holder::Nobody);
            let held_until = self.tenure.held_until();
            // That it was renewed is no news.
            let is_new = (&view.holder, &view.memory, view.vacant_since) != (&holder, &memory, since);
            *view = View { holder, memory, vacant_since: since, held_until };
            is_new
        });
    }
}
