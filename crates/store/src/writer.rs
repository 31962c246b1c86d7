//! The one thread that writes to disk: it takes what waits as one batch, syncs once, then answers all of it.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::{
    CommitError, Revision, Snapshot, Write,
    disk::Disk,
    stage::{Staged, stage},
    store::State,
};

/// How many commits wait for the disk before the next one has to wait for room.
const QUEUE_MAX: usize = 1_024;
/// How many commits share one sync.
const BATCH_MAX: usize = 256;
/// How many bytes they may have before no other joins them.
const BATCH_BYTES_MAX: usize = 16 << 20;

type Answer = oneshot::Sender<Result<Revision, CommitError>>;

/// A commit on its way to the disk.
struct Job {
    writes: Vec<Write>,
    answer: Answer,
}

impl Job {
    fn bytes(&self) -> usize {
        self.writes.iter().map(|write| write.key.len() + write.value.as_ref().map_or(0, Bytes::len)).sum()
    }
}

/// The handle of the thread; closing or dropping it lets the thread finish what waits and closes the disk.
#[derive(Debug)]
pub(crate) struct Writer(Mutex<Option<Running>>);

#[derive(Debug)]
struct Running {
    queue: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
}

impl Writer {
    pub(crate) fn start(disk: Disk, state: Arc<Mutex<State>>) -> io::Result<Self> {
        let (queue, jobs) = mpsc::channel(QUEUE_MAX);
        let run = move || Loop { disk, state }.run(jobs);
        let thread = thread::Builder::new().name("store-writer".into()).spawn(run)?;
        Ok(Self(Mutex::new(Some(Running { queue, thread }))))
    }

    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<Revision, CommitError> {
        let (answer, answered) = oneshot::channel();
        let queue = self.running().as_ref().map(|running| running.queue.clone()).ok_or(CommitError::Closed)?;
        queue.send(Job { writes, answer }).await.map_err(|_| CommitError::Closed)?;
        answered.await.map_err(|_| CommitError::Closed)?
    }
}

impl Writer {
    /// Finishes what waits and closes the disk; later commits are refused.
    pub(crate) fn close(&self) {
        let Some(Running { queue, thread }) = self.running().take() else { return };
        drop(queue);
        if thread.join().is_err() {
            tracing::error!("the store's writer thread panicked");
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

struct Loop {
    disk: Disk,
    state: Arc<Mutex<State>>,
}

impl Loop {
    fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while let Some(first) = jobs.blocking_recv() {
            let mut bytes = first.bytes();
            batch.push(first);
            while batch.len() < BATCH_MAX
                && bytes < BATCH_BYTES_MAX
                && let Ok(job) = jobs.try_recv()
            {
                bytes += job.bytes();
                batch.push(job);
            }
            self.commit(batch.drain(..));
        }
    }

    fn commit(&mut self, jobs: impl Iterator<Item = Job>) {
        let base = self.current();
        let (staged, answers) = stage_all(&base, jobs);
        if let Err(error) = self.disk.write(&staged) {
            tracing::error!(%error, "the disk refused a commit");
            let error = CommitError::Disk(Arc::new(error));
            answers.into_iter().for_each(|(to, _)| answer(to, Err(error.clone())));
            return;
        }
        self.publish(staged);
        answers.into_iter().for_each(|(to, revision)| answer(to, Ok(revision)));
    }

    fn publish(&self, staged: Vec<Staged>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        staged.into_iter().for_each(|staged| state.publish(staged));
    }

    fn current(&self) -> Snapshot {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).current.clone()
    }
}

/// Stages every job on top of the one before; those that cannot be are answered at once.
fn stage_all(base: &Snapshot, jobs: impl Iterator<Item = Job>) -> (Vec<Staged>, Vec<(Answer, Revision)>) {
    let mut base = base.clone();
    let (mut all, mut answers) = (Vec::new(), Vec::new());
    for job in jobs {
        match stage(&base, job.writes) {
            Ok(staged) => {
                base = staged.snapshot.clone();
                answers.push((job.answer, base.revision()));
                if !staged.events.is_empty() {
                    all.push(staged);
                }
            }
            Err(error) => answer(job.answer, Err(error)),
        }
    }
    (all, answers)
}

/// Whoever asked may be gone; the commit stands all the same.
fn answer(to: Answer, result: Result<Revision, CommitError>) {
    let _ = to.send(result);
}
