//! The gallery: small reconcilers with one bug each, of a class that was found in a real operator, and without it.

mod credentials;
mod members;
mod outside;
mod reports;
mod scenarios;
mod settings;
mod table;
mod vaults;
mod widget;

use std::sync::Mutex;

use serde_json::{Value, json};
use windlass::Crew;
use windlass::prelude::*;
use windlass_testkit::Campaign;
use windlass_testkit::explore::{Exploration, Report, User};

pub(crate) use scenarios::play;
pub(crate) use table::{Bug, ENTRIES, Entry, Family, Play};

/// The reconciler of `family` with `bug`; [`Bug::None`] is the fixed one.
fn program(family: Family, bug: Bug) -> Crew {
    let crew = windlass::program("gallery-operator");
    match family {
        Family::Settings => {
            let reconciler = settings::Settings { bug, done: Mutex::default() };
            // The bugs do more than the fixed one.
            let app = windlass::reconcile(reconciler).owns::<ConfigMap>();
            crew.with(own_patch(app.allow("", "configmaps", &["update", "deletecollection"])))
        }
        Family::Members => {
            let reconciler = members::Members { bug, seen: Mutex::default() };
            crew.with(windlass::reconcile(reconciler).owns::<ConfigMap>().owns::<Secret>())
        }
        Family::Credentials => {
            let reconciler = credentials::Credentials { bug, ran: Mutex::default() };
            crew.with(windlass::reconcile(reconciler).owns::<ConfigMap>().owns::<Secret>())
        }
        Family::Outside => {
            let app = windlass::reconcile(outside::Outside { bug, handles: Mutex::default() });
            let app = app.watches::<ConfigMap>(|change| {
                let name = change.object().name_any();
                let widget = name.strip_prefix("outside-").map(str::to_owned);
                let namespace = Some("default".to_owned());
                widget.map(|name| ObjectKey { namespace, name }).into_iter().collect()
            });
            crew.with(own_patch(app.allow("", "configmaps", &["create", "patch", "delete"])))
        }
        Family::Reports => {
            let app = windlass::reconcile(reports::Reports { bug }).owns::<ConfigMap>();
            crew.with(own_patch(app.allow("", "secrets", &["get"])))
        }
        Family::Vaults => crew.with(vault_app(bug)),
    }
}

/// The reconciler may change widgets themselves.
fn own_patch<R: Reconcile<Resource = widget::Widget>>(app: windlass::ReconcileApp<R>) -> windlass::ReconcileApp<R> {
    app.allow("gallery.example.com", "widgets", &["patch", "update"])
}

fn vault_app(bug: Bug) -> windlass::ReconcileApp<vaults::Vaults> {
    let app = windlass::reconcile(vaults::Vaults { bug }).owns::<ConfigMap>();
    match bug {
        Bug::Undeclared => app,
        Bug::AllNamespaces => app.allow("", "secrets", &["get", "list"]),
        Bug::AsksTooMuch => app.allow("", "secrets", &["get", "delete"]),
        Bug::ClusterWide => {
            let verbs = ["create", "patch"];
            app.allow("", "secrets", &["get"]).allow_in_cluster("rbac.authorization.k8s.io", "clusterroles", &verbs)
        }
        _ => app.allow("", "secrets", &["get"]),
    }
}

/// What a vault is given by its manifests and need not take in each scenario, with the reason.
const ARGUED: [&str; 8] = [
    // Lists and watches are how the runtime reads.
    "get configmaps",
    // Clusters that enforce owner references ask for it.
    "update vaults.gallery.example.com/finalizers",
    "patch vaults.gallery.example.com",
    // The child is always wanted.
    "delete configmaps",
    "create configmaps",
    "create events",
    "patch events",
    "get secrets",
];

/// Explores the reconciler of `family` with `bug`.
pub(crate) fn exploration(family: Family, bug: &Bug) -> Exploration {
    let bug = *bug;
    let exploration = Exploration::of(move || program(family, bug));
    if family == Family::Vaults { exploration.argues(ARGUED) } else { exploration }
}

/// Changes a resource of the reconciler of `family` with `bug`.
pub(crate) fn campaign(family: Family, bug: &Bug) -> Campaign {
    let bug = *bug;
    let widget = |spec: Value| json!({"kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    let text = if family == Family::Credentials { "one" } else { "image:1" };
    let object = match family {
        Family::Vaults => {
            json!({"kind": "Vault", "metadata": {"name": "v"}, "spec": {"secretName": "access"}})
        }
        _ => widget(json!({"size": 2, "text": text, "options": {"a": "1"}})),
    };
    let campaign = Campaign::of(move || program(family, bug), object);
    match family {
        Family::Settings => campaign.inert("/spec/size"),
        Family::Members => campaign.inert("/spec/options"),
        Family::Credentials | Family::Outside => campaign.inert("/spec/size").inert("/spec/options").inert("/spec/tls"),
        Family::Reports => campaign.inert("/spec/options").inert("/spec/tls"),
        Family::Vaults => campaign.given(scenarios::access()),
    }
}

/// Plays what an entry of the gallery is about, with at most `plans` plans, until something is found if there is a `bug`.
pub(crate) fn run(entry: &Entry, bug: &Bug, tune: Tune) -> Report {
    if entry.play == Play::Changes {
        let mut campaign = campaign(entry.family, bug);
        campaign = tune.plans.into_iter().fold(campaign, Campaign::plans);
        campaign = tune.threads.into_iter().fold(campaign, Campaign::threads);
        campaign = if *bug == Bug::None { campaign } else { campaign.until_found() };
        return campaign.run().report;
    }
    let mut exploration = exploration(entry.family, bug);
    exploration = tune.classes.into_iter().fold(exploration, |exploration, class| exploration.classes([class]));
    exploration = tune.plans.into_iter().fold(exploration, Exploration::plans);
    exploration = tune.threads.into_iter().fold(exploration, Exploration::threads);
    exploration = if *bug == Bug::None { exploration } else { exploration.until_found() };
    let play = entry.play;
    exploration.run(move |user: User| scenarios::play(play, user))
}

/// How much is tried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tune {
    /// Only faults of this class.
    pub classes: Option<&'static str>,
    pub plans: Option<usize>,
    pub threads: Option<usize>,
}
