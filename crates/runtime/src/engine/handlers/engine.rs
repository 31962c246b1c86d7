//! The ring around the decision: it looks, writes down what begins, runs it, and writes down how it ended.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use windlass_core::{CustomResource, Event, World};

use super::answer::Failure;
use super::context::{HandlerContext, Surroundings};
use super::daemon::{Course, Daemons, Fate};
use super::decide::{Act, Cause, Entry, State, decide, settle, wants_finalizer};
use super::declare::{Handler, Handlers};
use super::progress::{Mark, Progress};
use super::record;
use super::report::{DELETION_FAILED, Standing, Words};
use super::seen::{Part, Seen, hash};
use super::session::{Session, Sessions};
use crate::controller::panic_text;
use crate::engine::deletion::set_finalizers;
use crate::engine::heat;
use crate::engine::kinds::Nursery;
use crate::engine::note::note;
use crate::engine::owner_of;
use crate::engine::parts::Standing as PartsStanding;
use crate::engine::report::{self, Pass};
use crate::engine::style::Outfit;
use crate::engine::switch::{Counter, Restart, Switches};
use crate::journal;
use crate::key::ObjectKey;
use crate::queue::Priority;
use crate::reconcile::{Action, Context, Crash, Error, Reconcile};

/// Runs the handlers of one kind.
pub struct HandlerEngine<R: CustomResource> {
    handlers: Arc<Handlers<R>>,
    entries: Vec<Entry>,
    world: World,
    nursery: Nursery,
    /// The controller's name, for metrics.
    name: String,
    sessions: Sessions<R::Status>,
    daemons: Daemons,
    counter: Counter,
}

/// One look at a resource.
struct Look<'a, R: CustomResource> {
    key: ObjectKey,
    resource: &'a Arc<R>,
    switches: Switches,
    seen: Seen,
    session: Session<R::Status>,
    /// The annotation as it is stored.
    stored: String,
    cx: &'a Context<R>,
}

/// A handler that is to run.
struct Turn {
    index: usize,
    attempt: u32,
    target: Mark,
    old: Option<serde_json::Value>,
}

impl<R: CustomResource> Reconcile for HandlerEngine<R> {
    type Resource = R;

    async fn reconcile(&self, resource: Arc<R>, cx: &Context<R>) -> Result<Action, Error> {
        let key = ObjectKey::of(&*resource);
        let is_deleting = resource.meta().deletion_timestamp.is_some();
        let switches = Switches::of(&*resource);
        self.counter.pause(&key, switches.paused, &cx.handle.metrics);
        if switches.paused || is_deleting {
            self.daemons.stop(&key).await;
        }
        if switches.paused {
            journal::decided(journal::Turn::Paused, "Paused", "the annotation windlass.dev/paused is true");
            let status = report::status(&*resource, &Pass::Paused, cx.clock().now());
            report::write(&*resource, status, cx).await?;
            return Ok(Action::Await);
        }
        if !is_deleting && let Some(action) = heat::cool_down(&*resource, cx).await? {
            return Ok(action);
        }
        if let Some(value) = switches.restarted_at.as_deref().filter(|_| switches.restart && !is_deleting) {
            let uid = resource.meta().uid.as_deref().unwrap_or_default();
            let restart = Restart { uid, value, manager: cx.name() };
            restart.carry_out(self.nursery.iter(), &cx.client()).await?;
        }
        if is_deleting && !record::has_finalizer(&*resource) {
            return Ok(Action::Await);
        }
        let mut look = self.look(key, &resource, switches, cx);
        self.advance(&mut look).await
    }

    async fn crashed(&self, resource: Arc<R>, crash: &Crash, cx: &Context<R>) {
        let status = report::status(&*resource, &Pass::Crashed(crash), cx.clock().now());
        if let Err(error) = report::write(&*resource, status, cx).await {
            tracing::warn!(resource = %ObjectKey::of(&*resource), %error, "Cannot report a crash in the status");
        }
    }

    fn gone(&self, key: &ObjectKey) {
        self.sessions.forget(key);
        self.daemons.forget(key);
        self.counter.gone(key);
    }

    async fn ended(&self) {
        self.daemons.stop_all().await;
    }
}

impl<R: CustomResource> HandlerEngine<R> {
    pub(super) fn new(handlers: Arc<Handlers<R>>, outfit: Outfit<Handlers<R>>) -> Self {
        let entries = handlers.all.iter().map(|handler| handler.entry.clone()).collect();
        let Outfit { world, nursery, name, .. } = outfit;
        let counter = Counter::new(name.clone());
        let (sessions, daemons) = (Sessions::default(), Daemons::default());
        Self { handlers, entries, world, nursery, name, sessions, daemons, counter }
    }

    fn look<'a>(&self, key: ObjectKey, resource: &'a Arc<R>, switches: Switches, cx: &'a Context<R>) -> Look<'a, R> {
        let seen = self.seen(&**resource, cx);
        let stored = record::stored(&**resource, cx.name()).unwrap_or_default().to_owned();
        let existed = Progress::read(Some(&stored), &seen.uid).is_some();
        let session = self.sessions.open(&key, &seen.uid, existed);
        Look { key, resource, switches, seen, session, stored, cx }
    }

    fn seen(&self, resource: &R, cx: &Context<R>) -> Seen {
        let meta = resource.meta();
        let uid = meta.uid.clone().unwrap_or_default();
        let part = |handler: &Handler<R>| {
            let pick = handler.pick.as_ref()?;
            Some((handler.entry.id.clone(), Part::new(&uid, pick(resource), handler.sealed)))
        };
        let parts = self.handlers.all.iter().filter_map(part).collect();
        let spec = serde_json::to_value(resource).map(|mut value| value["spec"].take()).unwrap_or_default();
        let value = |name: &str| meta.annotations.as_ref().and_then(|annotations| annotations.get(name));
        Seen {
            generation: meta.generation.unwrap_or_default(),
            spec: hash(&uid, &spec),
            parts,
            created_at: meta.creation_timestamp.as_ref().map_or_else(|| cx.clock().now(), |time| time.0),
            is_deleting: meta.deletion_timestamp.is_some(),
            has_finalizer: record::has_finalizer(resource),
            force: value(windlass_core::names::FORCE).map(|value| hash(&uid, &value.as_str().into())),
            uid,
        }
    }

    /// Decides once, and does what was decided.
    async fn advance(&self, look: &mut Look<'_, R>) -> Result<Action, Error> {
        let unwritten = look.session.unwritten.take().filter(|(begun, _)| *begun == look.stored);
        let progress = match unwritten {
            Some((_, progress)) => progress,
            None => Progress::read(Some(&look.stored), &look.seen.uid).unwrap_or_default(),
        };
        let state = State { progress, memo: look.session.memo.clone() };
        let decision = decide(&self.entries, &look.seen, state, look.cx.clock().now());
        match decision.act {
            Act::Run { index, attempt, target, old } => {
                self.run(look, decision.state, Turn { index, attempt, target, old }).await
            }
            Act::Rest { until } => self.rest(look, decision.state, until).await,
            Act::Release => {
                set_finalizers(&**look.resource, &[], look.cx).await?;
                Ok(Action::Await)
            }
        }
    }

    /// Runs one handler.
    async fn run(&self, look: &mut Look<'_, R>, state: State, turn: Turn) -> Result<Action, Error> {
        let handler = &self.handlers.all[turn.index];
        let begun = self.begin(look, &state).await?;
        look.session.memo = state.memo.clone();
        self.sessions.keep(&look.key, &look.session);
        if turn.attempt == 1
            && handler.entry.cause != Cause::Timer
            && let Err(error) = self.report(look, &state).await
        {
            tracing::debug!(resource = %look.key, %error, "Cannot report that a handler begins");
        }
        let mut outcome = self.call(look, handler, &turn).await;
        // The author's part of the status comes before the word that all is done: if it is lost, the handler runs again. The
        // conditions come after it, with the next look.
        if look.session.desk.look().is_some()
            && let (Err(error), Ok(())) = (self.report(look, &state).await, &outcome)
        {
            outcome = Err(Failure::temporary(format!("the status cannot be written: {error}")));
        }
        let state = self.settled(look, state, &turn, &outcome);
        let gave_up = state.tries(&handler.entry, &turn.target).is_some_and(|tries| tries.gave_up);
        self.tell(look, handler, gave_up, &outcome);
        let ended = state.progress.write();
        look.session.memo = state.memo.clone();
        look.session.unwritten = (ended != begun).then(|| (begun.clone(), state.progress));
        self.sessions.keep(&look.key, &look.session);
        if ended != begun {
            record::conclude(&**look.resource, &begun, &ended, look.cx).await?;
        }
        Ok(Action::Recheck(Duration::ZERO))
    }

    /// Writes down what begins, if that is to be remembered, and returns the annotation.
    async fn begin(&self, look: &Look<'_, R>, state: &State) -> Result<String, Error> {
        let text = state.progress.write();
        let finalizer = if look.seen.is_deleting { look.seen.has_finalizer } else { wants_finalizer(&self.entries) };
        if text != look.stored || finalizer != look.seen.has_finalizer {
            record::begin(&**look.resource, &text, finalizer, look.cx).await?;
        }
        Ok(text)
    }

    /// The state after a run, whose failure is remembered in words.
    fn settled(&self, look: &mut Look<'_, R>, state: State, turn: &Turn, outcome: &Result<(), Failure>) -> State {
        let id = &self.entries[turn.index].id;
        match outcome {
            Ok(()) => look.session.words.remove(id),
            Err(failure) => look.session.words.insert(id.clone(), failure.why()),
        };
        let ended = (state, outcome.as_ref().copied());
        settle(&self.entries, turn.index, &turn.target, ended, look.cx.clock().now())
    }

    /// Nothing is to run: lets daemons run, reports, and waits.
    async fn rest(&self, look: &mut Look<'_, R>, state: State, until: Option<Timestamp>) -> Result<Action, Error> {
        if !look.seen.is_deleting {
            self.begin(look, &state).await?;
            if state.progress.created {
                self.keep_daemons(look);
            }
        }
        look.session.memo = state.memo.clone();
        self.sessions.keep(&look.key, &look.session);
        self.report(look, &state).await?;
        let now = look.cx.clock().now();
        let left = |until: Timestamp| Duration::try_from(until.duration_since(now)).unwrap_or_default();
        Ok(until.map_or(Action::Await, |until| Action::Recheck(left(until))))
    }

    /// Calls a handler; a panic, and a run over its deadline, are failures like any other.
    async fn call(&self, look: &Look<'_, R>, handler: &Handler<R>, turn: &Turn) -> Result<(), Failure> {
        if look.cx.handle.rehearsal && !handler.plannable {
            return Ok(());
        }
        let surroundings = self.surroundings(look);
        let (desk, stop) = (surroundings.desk.clone(), look.cx.attempt().stop.clone());
        let context = HandlerContext::new(surroundings, handler.entry.cause, turn.attempt, stop);
        let deadline = handler.entry.retry.attempt_max();
        let run = async { (handler.call)(look.resource.clone(), turn.old.clone(), context).await };
        let status = match tokio::time::timeout(deadline, AssertUnwindSafe(run).catch_unwind()).await {
            Ok(Ok(ended)) => ended?,
            Ok(Err(panic)) => return Err(Failure::temporary(format!("panic: {}", panic_text(&*panic)))),
            Err(_) => return Err(Failure::temporary(format!("did not finish within {deadline:?}"))),
        };
        if let Some(status) = status {
            desk.put(status);
        }
        Ok(())
    }

    fn surroundings(&self, look: &Look<'_, R>) -> Surroundings<R> {
        Surroundings {
            handle: look.cx.handle.clone(),
            informer: look.cx.informer.clone(),
            queue: look.cx.wishes.queue(),
            resource: look.resource.clone(),
            owner: owner_of(&**look.resource, look.cx.name(), &look.switches),
            nursery: self.nursery.clone(),
            world: self.world.clone(),
            desk: look.session.desk.clone(),
        }
    }

    /// Lets all daemons of the resource run.
    fn keep_daemons(&self, look: &Look<'_, R>) {
        let Seen { uid, generation, .. } = &look.seen;
        for handler in self.handlers.all.iter().filter(|handler| handler.entry.cause == Cause::Daemon) {
            let id = &handler.entry.id;
            if look.cx.handle.rehearsal {
                let event = Event::normal("WouldRun", format!("the daemon {id} would run"));
                look.cx.events().record(&**look.resource, &(), event);
                continue;
            }
            self.daemons.keep(&look.key, id, (uid, *generation), || self.course(look, handler));
        }
    }

    fn course(&self, look: &Look<'_, R>, handler: &Handler<R>) -> Course {
        let (surroundings, stop) = (self.surroundings(look), look.cx.attempt().stop.child_token());
        let (call, daemon_stop) = (handler.call.clone(), stop.clone());
        let run = {
            let surroundings = surroundings.clone();
            move |attempt| {
                let context = HandlerContext::new(surroundings.clone(), Cause::Daemon, attempt, daemon_stop.clone());
                let resource = context.current().unwrap_or_else(|| surroundings.resource.clone());
                let (run, desk) = (call(resource, None, context), surroundings.desk.clone());
                async move { run.await.map(|status| status.into_iter().for_each(|status| desk.put(status))) }.boxed()
            }
        };
        let (id, metrics, name) = (handler.entry.id.clone(), look.cx.handle.metrics.clone(), self.name.clone());
        let on_change = move |fate: &Fate| {
            let key = ObjectKey::of(&*surroundings.resource);
            let told = match fate {
                Fate::Failing(why) => Some(("HandlerFailed", format!("{id}: {why}"))),
                Fate::GaveUp(why) => Some(("HandlerGaveUp", format!("{id}: {why}"))),
                Fate::Running | Fate::Finished | Fate::Stopped => None,
            };
            if let Some((reason, message)) = told {
                tracing::warn!(resource = %key, reason, "{message}");
                metrics.handled(&name, &id, "failed");
                surroundings.handle.events.record(&*surroundings.resource, &(), Event::warning(reason, message));
            }
            if *fate != Fate::Stopped {
                surroundings.queue.add(key, Priority::Normal);
            }
        };
        let clock = look.cx.clock().clone();
        Course { run: Box::new(run), retry: handler.entry.retry, clock, stop, on_change: Box::new(on_change) }
    }

    /// Tells people and metrics how a run ended.
    fn tell(&self, look: &Look<'_, R>, handler: &Handler<R>, gave_up: bool, outcome: &Result<(), Failure>) {
        let Entry { id, cause, .. } = &handler.entry;
        let is_rehearsed = look.cx.handle.rehearsal && !handler.plannable;
        let (event, word) = match outcome {
            Ok(()) if is_rehearsed => (Some(Event::normal("WouldRun", format!("{id} would run ({cause:?})"))), "done"),
            Ok(()) if *cause == Cause::Timer => (None, "done"),
            Ok(()) => (Some(Event::normal("Handled", format!("{id} is done ({cause:?})"))), "done"),
            Err(failure) if gave_up => {
                (Some(Event::warning("HandlerGaveUp", format!("{id}: {}", failure.why()))), "gave_up")
            }
            Err(failure) => (Some(Event::warning("HandlerFailed", format!("{id}: {}", failure.why()))), "failed"),
        };
        look.cx.handle.metrics.handled(&self.name, id, word);
        if let Some(event) = event {
            tracing::info!(resource = %look.key, reason = %event.reason, "{}", event.message);
            look.cx.events().record(&**look.resource, &(), event);
        }
    }

    /// Writes the status if it is not what the resource has already.
    async fn report(&self, look: &Look<'_, R>, state: &State) -> Result<(), Error> {
        let cx = look.cx;
        // The newest: handlers and daemons may have written meanwhile.
        let newest = cx.cache().get(&look.key).filter(|newest| newest.meta().uid == look.resource.meta().uid);
        let Some(newest) = newest else { return Ok(()) };
        let mut newest = (*newest).clone();
        let mut standing = Standing::of(&self.entries, &look.seen, state, cx.clock().now());
        let mut said = look.session.words.clone();
        for (id, why) in self.daemons.failures(&look.key) {
            standing.daemons.push(id.clone());
            said.insert(id, why);
        }
        let conditions = newest.status().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let words = Words { said: &said, conditions };
        let own = look.session.desk.look();
        let is_served = look.seen.force.is_some() && state.progress.forced == look.seen.force;
        let mut switches = Switches::of(&newest);
        switches.force = switches.force.filter(|_| is_served);
        let outcome = standing.outcome(own.clone(), &words);
        let carried = Ok(PartsStanding::default());
        note(&outcome, Some(&carried));
        let why = standing.first_failed().map(|id| words.of(id, DELETION_FAILED));
        let pass = match &why {
            Some(why) if look.seen.is_deleting => Pass::DeletionBlocked { reason: "HandlerFailed", why },
            _ => Pass::Made { outcome: &outcome, carried: Some(&carried), switches: &switches, way: None },
        };
        // What is reported is about the spec that was looked at, even if there is a newer one.
        newest.meta_mut().generation = look.resource.meta().generation;
        let mut status = report::status(&newest, &pass, cx.clock().now());
        if let Some(own) = &own {
            status.own = own.clone();
        }
        report::write(&newest, status, cx).await?;
        look.session.desk.clear(&own);
        self.counter.serve(&switches, &cx.handle.metrics);
        Ok(())
    }
}
