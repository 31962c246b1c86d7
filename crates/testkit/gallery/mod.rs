//! The gallery: small reconcilers with one bug each, of a class that was found in a real operator, and without it.

mod credentials;
mod members;
mod outside;
mod reports;
mod scenarios;
mod settings;
mod table;
mod widget;

use std::sync::Mutex;

use windlass::prelude::*;
use windlass_testkit::explore::{Exploration, Report, User};

pub(crate) use table::{Bug, ENTRIES, Entry, Family, Play};

/// Explores the reconciler of `family` with `bug`; [`Bug::None`] is the fixed one.
pub(crate) fn exploration(family: Family, bug: &Bug) -> Exploration {
    let bug = *bug;
    match family {
        Family::Settings => Exploration::of(move || {
            let reconciler = settings::Settings { bug, done: Mutex::default() };
            windlass::reconcile(reconciler).owns::<ConfigMap>()
        }),
        Family::Members => Exploration::of(move || {
            let reconciler = members::Members { bug, seen: Mutex::default() };
            windlass::reconcile(reconciler).owns::<ConfigMap>().owns::<Secret>()
        }),
        Family::Credentials => Exploration::of(move || {
            let reconciler = credentials::Credentials { bug, ran: Mutex::default() };
            windlass::reconcile(reconciler).owns::<ConfigMap>().owns::<Secret>()
        }),
        Family::Outside => Exploration::of(move || {
            windlass::reconcile(outside::Outside { bug, handles: Mutex::default() }).watches::<ConfigMap>(|change| {
                let name = change.object().name_any();
                let widget = name.strip_prefix("outside-").map(str::to_owned);
                let namespace = Some("default".to_owned());
                widget.map(|name| ObjectKey { namespace, name }).into_iter().collect()
            })
        }),
        Family::Reports => Exploration::of(move || windlass::reconcile(reports::Reports { bug }).owns::<ConfigMap>()),
    }
}

/// Plays what an entry of the gallery is about.
pub(crate) fn run(exploration: &Exploration, play: Play) -> Report {
    exploration.run(move |user: User| scenarios::play(play, user))
}
