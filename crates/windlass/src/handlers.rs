//! An operator as a set of handlers: functions that run when something happens to a resource.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_core::CustomResource;
use windlass_runtime::engine::handlers::{Answer, Cause, Changed, Failure, HandlerContext, Handlers, Retry};

use crate::app::App;

/// Makes a program of handlers of the kind `R`: declare them, then call [`App::main`].
///
/// Each handler has an id, by which its progress is remembered: keep it when the code changes. Options such as [`App::retry`]
/// are for the handler before them.
pub fn handlers<R: CustomResource>(name: impl Into<String>) -> App<Handlers<R>> {
    App::of(name.into(), Handlers::default())
}

impl<R: CustomResource> App<Handlers<R>> {
    /// Runs when a resource is new, once.
    pub fn on_create<F, A, T>(self, id: &str, handler: F) -> Self
    where
        F: Fn(Arc<R>, HandlerContext<R>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Answer<R::Status>,
    {
        self.on(Cause::Create, id, handler)
    }

    /// Runs when the spec is another than the one that it was last done with.
    pub fn on_update<F, A, T>(self, id: &str, handler: F) -> Self
    where
        F: Fn(Arc<R>, HandlerContext<R>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Answer<R::Status>,
    {
        self.on(Cause::Update, id, handler)
    }

    /// Runs when the part of the spec that `pick` finds is another than the one that it was last done with, and gets both. What
    /// was there at the creation is no change.
    pub fn on_field<V, F, A, T>(
        mut self,
        id: &str,
        pick: impl Fn(&R::Spec) -> V + Send + Sync + 'static,
        handler: F,
    ) -> Self
    where
        V: Serialize + DeserializeOwned + Send + 'static,
        F: Fn(Arc<R>, Changed<V>, HandlerContext<R>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Answer<R::Status>,
    {
        self.operator_mut().on_field(id, pick, handler);
        self
    }

    /// Runs before a resource goes: resources get a finalizer, which stays until it succeeds.
    pub fn on_delete<F, A, T>(self, id: &str, handler: F) -> Self
    where
        F: Fn(Arc<R>, HandlerContext<R>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Answer<R::Status>,
    {
        self.on(Cause::Delete, id, handler)
    }

    /// Runs when this process begins to serve a resource that was served before: after a restart, or a change of the leader.
    pub fn on_resume<F, A, T>(self, id: &str, handler: F) -> Self
    where
        F: Fn(Arc<R>, HandlerContext<R>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Answer<R::Status>,
    {
        self.on(Cause::Resume, id, handler)
    }

    /// Runs again `interval` after its last run has ended, from the creation of a resource to its deletion.
    pub fn timer<F, A, T>(self, id: &str, interval: Duration, handler: F) -> Self
    where
        F: Fn(Arc<R>, HandlerContext<R>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Answer<R::Status>,
    {
        let mut app = self.on(Cause::Timer, id, handler);
        app.operator_mut().cycle(Some(interval), None, None);
        app
    }

    /// Runs beside all others, from the creation of a resource to its deletion, which waits for its end: it watches
    /// [`HandlerContext::stop`]. One that fails begins anew after a pause; one that succeeds has ended.
    pub fn daemon<F, A, T>(self, id: &str, handler: F) -> Self
    where
        F: Fn(Arc<R>, HandlerContext<R>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Answer<R::Status>,
    {
        self.on(Cause::Daemon, id, handler)
    }

    /// How often the handler before this is tried again.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.operator_mut().retry(retry);
        self
    }

    /// The timer before this runs only when the spec has been the same for this long.
    pub fn idle(mut self, idle: Duration) -> Self {
        self.operator_mut().cycle(None, Some(idle), None);
        self
    }

    /// The timer before this runs first when a resource is this old.
    pub fn initial_delay(mut self, delay: Duration) -> Self {
        self.operator_mut().cycle(None, None, Some(delay));
        self
    }

    /// The part that the [`App::on_field`] before this looks at is secret: it is remembered by a hash, and the handler is not
    /// told the old one.
    pub fn sealed(mut self) -> Self {
        self.operator_mut().sealed();
        self
    }

    /// The handler before this changes nothing but the cluster, so that `plan` may run it. Others are only named in a plan.
    pub fn plannable(mut self) -> Self {
        self.operator_mut().plannable();
        self
    }

    fn on<F, A, T>(mut self, cause: Cause, id: &str, handler: F) -> Self
    where
        F: Fn(Arc<R>, HandlerContext<R>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Answer<R::Status>,
    {
        self.operator_mut().on(cause, id, handler);
        self
    }
}
