//! What an operator wants, and how far it is.

use std::time::Duration;

use kube::Resource;
use kube::core::ApiResource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::child::Child;
use crate::condition::Statement;
use crate::event::Event;
use crate::names::condition;
use crate::order::{self, OrderError};
use crate::part::{Part, Piece};

/// The answer of [`Operator::desired`](crate::Operator::desired).
#[derive(Clone, Debug)]
pub enum Outcome<S> {
    /// All is as declared.
    Settled(Desired<S>),
    /// On the way; goes on when something changes. Without an intent, nothing is applied and nothing pruned.
    Waiting {
        /// What is wanted, if that is known already.
        desired: Option<Desired<S>>,
        /// A CamelCase word.
        reason: String,
        /// What it waits for, for people.
        message: String,
    },
    /// Something failed that may pass: to be tried again after a time. Nothing is pruned.
    Retry {
        /// How long to wait.
        after: Duration,
        /// What failed.
        message: String,
    },
    /// The resource cannot be served as it is: waits for a change of it, is not tried again. Nothing is pruned.
    Invalid {
        /// What to change.
        message: String,
    },
}

/// What is wanted: children, status, when to look again. Children that were wanted before and are not now are pruned.
#[derive(Clone, Debug)]
pub struct Desired<S> {
    /// The wanted objects.
    pub children: Vec<Child>,
    /// The wanted objects that have a place in an order.
    pub parts: Vec<Piece>,
    /// The objects that stay as they are, by kind and name.
    pub kept: Vec<(ApiResource, String)>,
    /// What to report; as before if it is not said.
    pub status: Option<S>,
    /// When to look again even if nothing changes.
    pub recheck: Option<Duration>,
    /// News to tell.
    pub events: Vec<Event>,
    /// Further conditions, besides those that every resource has.
    pub conditions: Vec<Statement>,
    /// How far it is, for people.
    pub progress: Option<String>,
    /// The first thing that made this intent unusable.
    flaw: Option<String>,
}

impl<S> Default for Desired<S> {
    fn default() -> Self {
        Self {
            children: Vec::new(),
            parts: Vec::new(),
            kept: Vec::new(),
            status: None,
            recheck: None,
            events: Vec::new(),
            conditions: Vec::new(),
            progress: None,
            flaw: None,
        }
    }
}

impl<S> Desired<S> {
    /// Nothing is wanted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wants `object`. Namespace, owner reference and labels are set by the runtime.
    #[must_use]
    pub fn child<K: Resource<DynamicType = ()> + Serialize>(mut self, object: K) -> Self {
        match Child::new(&object) {
            Ok(child) => self.children.push(child),
            Err(flaw) => self.flaw = self.flaw.or_else(|| Some(flaw.to_string())),
        }
        self
    }

    /// Wants the object that `make` makes, if `wanted`.
    #[must_use]
    pub fn child_if<K: Resource<DynamicType = ()> + Serialize>(self, wanted: bool, make: impl FnOnce() -> K) -> Self {
        if wanted { self.child(make()) } else { self }
    }

    /// Leaves the object of kind `K` called `name` as it is: neither changed nor pruned. For what is made once, such as a
    /// password, and for what has to wait for its turn, such as a server that is updated after the others.
    #[must_use]
    pub fn keep<K: Resource<DynamicType = ()>>(mut self, name: impl Into<String>) -> Self {
        self.kept.push((ApiResource::erase::<K>(&()), name.into()));
        self
    }

    /// Wants `part` at its place: made and changed when the parts that it is after are ready, and gone before they go.
    /// The resource is ready when all its parts are.
    #[must_use]
    pub fn part<K>(mut self, part: Part<K>) -> Self
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    {
        match part.piece() {
            Ok(piece) => self.parts.push(piece),
            Err(flaw) => self.flaw = self.flaw.or_else(|| Some(flaw.to_string())),
        }
        self
    }

    /// Wants the part that `make` makes, if `wanted`.
    #[must_use]
    pub fn part_if<K>(self, wanted: bool, make: impl FnOnce() -> Part<K>) -> Self
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    {
        if wanted { self.part(make()) } else { self }
    }

    /// The names of the parts in waves, each of which is made when those before it are ready: for tests.
    ///
    /// # Errors
    /// When there is no order: a name that no part has, two parts of one name, parts that wait for each other.
    pub fn order(&self) -> Result<Vec<Vec<String>>, OrderError> {
        order::waves(&self.parts)
    }

    /// Reports `status`.
    #[must_use]
    pub fn status(mut self, status: S) -> Self {
        self.status = Some(status);
        self
    }

    /// Looks again after `interval`, even if nothing changes.
    #[must_use]
    pub fn recheck(mut self, interval: Duration) -> Self {
        self.recheck = Some(interval);
        self
    }

    /// Tells people something.
    #[must_use]
    pub fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    /// Sets a further condition.
    #[must_use]
    pub fn condition(mut self, statement: Statement) -> Self {
        self.conditions.push(statement);
        self
    }

    /// Says how far it is, for people: shown while it is not ready.
    #[must_use]
    pub fn progress(mut self, message: impl Into<String>) -> Self {
        self.progress = Some(message.into());
        self
    }

    /// Settled if `ready`, waiting otherwise.
    pub fn ready_when(self, ready: bool) -> Outcome<S> {
        if ready { self.settled() } else { self.waiting("InProgress") }
    }

    /// All is as declared, as soon as all parts are ready.
    pub fn settled(self) -> Outcome<S> {
        match self.flaw() {
            Some(message) => Outcome::Invalid { message },
            None => Outcome::Settled(self),
        }
    }

    /// On the way.
    pub fn waiting(mut self, reason: impl Into<String>) -> Outcome<S> {
        if let Some(message) = self.flaw() {
            return Outcome::Invalid { message };
        }
        let message = self.progress.take().unwrap_or_else(|| "waiting for the children to become ready".into());
        Outcome::Waiting { desired: Some(self), reason: reason.into(), message }
    }

    /// What makes this intent unusable.
    fn flaw(&self) -> Option<String> {
        let disorder = || self.order().err().map(|error| error.to_string());
        let both = || {
            let mut pairs = self.parts.iter().flat_map(|part| self.children.iter().map(move |child| (part, child)));
            let (part, child) = pairs.find(|(part, child)| part.child.is_same_object(child))?;
            Some(format!(
                "{} {} is a child and the part {}: drop one of them",
                child.resource.kind, child.name, part.name
            ))
        };
        self.flaw.clone().or_else(disorder).or_else(both)
    }
}

impl<S> Outcome<S> {
    /// Waits for something without which nothing can be wanted.
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Waiting { desired: None, reason: reason.into(), message: message.into() }
    }

    /// The resource cannot be served as it is.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into() }
    }

    /// To be tried again after a time.
    pub fn retry(after: Duration, message: impl Into<String>) -> Self {
        Self::Retry { after, message: message.into() }
    }

    /// What is wanted, if that is known.
    pub fn desired(&self) -> Option<&Desired<S>> {
        match self {
            Self::Settled(desired) => Some(desired),
            Self::Waiting { desired, .. } => desired.as_ref(),
            Self::Retry { .. } | Self::Invalid { .. } => None,
        }
    }

    /// The conditions that follow: every resource has Ready, Progressing and Stalled.
    pub fn statements(&self) -> Vec<Statement> {
        let three = |ready: bool, progressing: bool, stalled: bool, reason: &str, message: &str| {
            vec![
                Statement::new(condition::READY, ready, reason, message),
                Statement::new(condition::PROGRESSING, progressing, reason, message),
                Statement::new(condition::STALLED, stalled, reason, if stalled { message } else { "" }),
            ]
        };
        let mut statements = match self {
            Self::Settled(_) => three(true, false, false, "Settled", "all is as declared"),
            Self::Waiting { reason, message, .. } => three(false, true, false, reason, message),
            Self::Retry { message, .. } => three(false, true, false, "Retrying", message),
            Self::Invalid { message } => three(false, false, true, "Invalid", message),
        };
        statements.extend(self.desired().into_iter().flat_map(|desired| desired.conditions.iter().cloned()));
        statements
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn check(outcome: &Outcome<()>, expected: &str) {
        let statements = outcome.statements();
        let text: Vec<_> = statements.iter().map(|it| format!("{}={}", it.type_, it.truth.as_str())).collect();
        assert_eq!(text.join(" "), expected);
    }

    #[test]
    fn outcomes_become_conditions() {
        check(&Desired::new().ready_when(true), "Ready=True Progressing=False Stalled=False");
        check(&Desired::new().ready_when(false), "Ready=False Progressing=True Stalled=False");
        check(&Outcome::waiting("SecretMissing", "no secret"), "Ready=False Progressing=True Stalled=False");
        check(&Outcome::retry(Duration::ZERO, "timeout"), "Ready=False Progressing=True Stalled=False");
        check(&Outcome::invalid("size"), "Ready=False Progressing=False Stalled=True");
    }

    #[test]
    fn a_child_without_a_name_makes_the_intent_invalid() {
        let outcome: Outcome<()> = Desired::new().child(ConfigMap::default()).ready_when(true);
        assert!(matches!(outcome, Outcome::Invalid { message } if message.contains("metadata.name")));
    }
}
