//! Where an operator works: in all namespaces, or in some that may change while it runs.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, Weak};

use k8s_openapi::api::core::v1::Namespace;
use kube::core::{PartialObjectMeta, Selector};
use tokio::sync::watch;

use crate::informer::Subscription;
use crate::reconcile::Handle;
use crate::watch::Watch;

/// The namespaces to work in; clones are the same set. What watches it follows its changes.
#[derive(Clone, Debug, Default)]
pub struct Namespaces(Option<Arc<Live>>);

#[derive(Debug)]
struct Live {
    names: watch::Sender<BTreeSet<String>>,
    /// What keeps the set up to date, if that is not the caller.
    source: OnceLock<Subscription>,
}

impl Namespaces {
    /// All namespaces.
    pub fn all() -> Self {
        Self(None)
    }

    /// These namespaces, and those that are added later.
    pub fn only(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self(Some(Arc::new(Live { names: watch::Sender::new(names), source: OnceLock::new() })))
    }

    /// The namespaces of `cluster` that have these labels, as they come and go.
    pub fn labelled(cluster: &Handle, labels: Selector) -> Self {
        let namespaces = Self::only([] as [String; 0]);
        let Some(live) = &namespaces.0 else { return namespaces };
        let watched: Weak<Live> = Arc::downgrade(live);
        let informer = cluster.informers.get(Watch::<PartialObjectMeta<Namespace>>::all().labels(labels));
        let subscription = informer.subscribe(move |change| {
            let Some(live) = watched.upgrade() else { return };
            let name = change.key().name;
            match change.new {
                Some(_) => live.add(name),
                None => live.remove(&name),
            }
        });
        // Nothing else has seen this set yet, so there is nothing to lose.
        let _ = live.source.set(subscription);
        namespaces
    }

    /// Works in `name`, too. Nothing changes if all are served already.
    pub fn add(&self, name: impl Into<String>) {
        if let Some(live) = &self.0 {
            live.add(name.into());
        }
    }

    /// Works in `name` no longer: what is there stays as it is. Of all namespaces none can be taken away.
    pub fn remove(&self, name: &str) {
        if let Some(live) = &self.0 {
            live.remove(name);
        }
    }

    /// The names at present; `None` is all.
    pub fn names(&self) -> Option<BTreeSet<String>> {
        self.0.as_ref().map(|live| live.names.borrow().clone())
    }

    pub(crate) fn contains(&self, namespace: Option<&str>) -> bool {
        let Some(live) = &self.0 else { return true };
        namespace.is_some_and(|namespace| live.names.borrow().contains(namespace))
    }

    /// The names as they change; `None` if all namespaces are served.
    pub(crate) fn changes(&self) -> Option<watch::Receiver<BTreeSet<String>>> {
        self.0.as_ref().map(|live| live.names.subscribe())
    }

    /// What makes two sets the same while one of them lives.
    pub(crate) fn identity(&self) -> Option<usize> {
        self.0.as_ref().map(|live| Arc::as_ptr(live).addr())
    }
}

impl Live {
    fn add(&self, name: String) {
        self.names.send_if_modified(|names| names.insert(name));
    }

    fn remove(&self, name: &str) {
        self.names.send_if_modified(|names| names.remove(name));
    }
}
