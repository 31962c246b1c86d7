//! What an author declares: handlers, each with an id, and their options.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_core::CustomResource;

use super::answer::{Answer, Failure};
use super::context::HandlerContext;
use super::decide::{Cause, Cycle, Entry};
use super::engine::HandlerEngine;
use super::retry::{PAUSE_MAX, PAUSE_MIN, Retry};
use crate::engine::style::{Outfit, Style};

/// How many handlers an operator may have: what is remembered of each is in one annotation.
const HANDLERS_MAX: usize = 64;
/// How long an id may be.
const ID_CHARS_MAX: usize = 40;
/// What a run takes besides the handler itself: writing down that it begins, and how it ended.
const RECORDING_MAX: Duration = Duration::from_secs(60);

/// The handlers of one kind; [`Declaration`](crate::engine::Declaration) puts them to work.
pub struct Handlers<R: CustomResource> {
    pub(super) all: Vec<Handler<R>>,
}

/// A part of a spec that is another than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed<V> {
    /// What the handler was last done with. Not known if the handler is new, or the part was not kept.
    pub old: Option<V>,
    /// What it is now.
    pub new: V,
}

type Ended<R> = Result<Option<<R as CustomResource>::Status>, Failure>;
type Call<R> = Arc<dyn Fn(Arc<R>, Option<Value>, HandlerContext<R>) -> BoxFuture<'static, Ended<R>> + Send + Sync>;
type Pick<R> = Box<dyn Fn(&R) -> Value + Send + Sync>;

/// One handler.
pub(super) struct Handler<R: CustomResource> {
    pub(super) entry: Entry,
    pub(super) call: Call<R>,
    /// The part that it looks at.
    pub(super) pick: Option<Pick<R>>,
    /// Whether its part is remembered by a hash alone.
    pub(super) sealed: bool,
    /// Whether a plan may run it: it changes nothing but the cluster.
    pub(super) plannable: bool,
}

impl<R: CustomResource> Default for Handlers<R> {
    fn default() -> Self {
        Self { all: Vec::new() }
    }
}

impl<R: CustomResource> Handlers<R> {
    /// Declares a handler for `cause`.
    ///
    /// # Panics
    /// If the id is not one, or is taken; if there are too many handlers.
    pub fn on<F, A, T>(&mut self, cause: Cause, id: &str, handler: F)
    where
        F: Fn(Arc<R>, HandlerContext<R>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Answer<R::Status>,
    {
        let call: Call<R> = Arc::new(move |resource, _, context| {
            handler(resource, context).map(|ended| ended.map(Answer::status)).boxed()
        });
        self.add(cause, id, call, None);
    }

    /// Declares a handler for changes of the part that `pick` finds.
    ///
    /// # Panics
    /// As [`Handlers::on`].
    pub fn on_field<V, F, A, T>(&mut self, id: &str, pick: impl Fn(&R::Spec) -> V + Send + Sync + 'static, handler: F)
    where
        V: Serialize + DeserializeOwned + Send + 'static,
        F: Fn(Arc<R>, Changed<V>, HandlerContext<R>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Answer<R::Status>,
    {
        let pick = Arc::new(pick);
        let look = pick.clone();
        let call: Call<R> = Arc::new(move |resource, old, context| {
            let new = pick(resource.spec());
            // A part that another version of the operator kept in another form is not known.
            let old = old.and_then(|old| serde_json::from_value(old).ok());
            handler(resource, Changed { old, new }, context).map(|ended| ended.map(Answer::status)).boxed()
        });
        // What cannot be written as JSON is not in a spec, which came from JSON.
        let part = move |resource: &R| serde_json::to_value(look(resource.spec())).unwrap_or_default();
        self.add(Cause::Field, id, call, Some(Box::new(part)));
    }

    fn add(&mut self, cause: Cause, id: &str, call: Call<R>, pick: Option<Pick<R>>) {
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        let is_id = !id.is_empty() && id.len() <= ID_CHARS_MAX && id.chars().all(is_plain);
        assert!(is_id, "{id:?} is not the id of a handler: write a-z, 0-9 and -, at most {ID_CHARS_MAX}");
        assert!(self.all.iter().all(|known| known.entry.id != id), "there are two handlers {id}");
        assert!(self.all.len() < HANDLERS_MAX, "there are more than {HANDLERS_MAX} handlers");
        let entry = Entry { id: id.to_owned(), cause, retry: Retry::new(), cycle: Cycle::default() };
        self.all.push(Handler { entry, call, pick, sealed: false, plannable: false });
    }

    /// How often the last declared handler is tried again.
    pub fn retry(&mut self, retry: Retry) {
        self.last().entry.retry = retry;
    }

    /// When the last declared handler, a timer, runs.
    ///
    /// # Panics
    /// If it is none.
    pub fn cycle(&mut self, interval: Option<Duration>, idle: Option<Duration>, initial_delay: Option<Duration>) {
        let Entry { id, cause, cycle, .. } = &mut self.last().entry;
        assert!(*cause == Cause::Timer, "{id} is not a timer");
        cycle.interval = interval.unwrap_or(cycle.interval).clamp(PAUSE_MIN, PAUSE_MAX);
        cycle.idle = idle.or(cycle.idle).map(|idle| idle.min(PAUSE_MAX));
        cycle.initial_delay = initial_delay.unwrap_or(cycle.initial_delay).min(PAUSE_MAX);
    }

    /// The part of the last declared handler is remembered by a hash alone.
    ///
    /// # Panics
    /// If it is not one for a part.
    pub fn sealed(&mut self) {
        let last = self.last();
        assert!(last.pick.is_some(), "{} is not a handler of a field", last.entry.id);
        last.sealed = true;
    }

    /// A plan may run the last declared handler: it changes nothing but the cluster.
    pub fn plannable(&mut self) {
        self.last().plannable = true;
    }

    fn last(&mut self) -> &mut Handler<R> {
        self.all.last_mut().expect("an option follows the handler that it is for")
    }
}

impl<R: CustomResource> Style for Handlers<R> {
    type Resource = R;
    type Engine = HandlerEngine<R>;

    fn engine(self: Arc<Self>, outfit: Outfit<Self>) -> HandlerEngine<R> {
        HandlerEngine::new(self, outfit)
    }

    fn patches_resources(&self) -> bool {
        true
    }

    fn deadline(&self) -> Option<Duration> {
        let longest = self.all.iter().map(|handler| handler.entry.retry.attempt_max()).max();
        longest.map(|longest| longest.saturating_add(RECORDING_MAX))
    }
}
