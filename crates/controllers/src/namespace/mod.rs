//! Namespaces on their way out are emptied, Pods first, then let go.

mod content;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, PropagationPolicy};
use kube::{Api, Resource, ResourceExt};
use tokio::sync::watch;
use windlass_runtime::{Action, Attempt, Change, Controller, Error, Informer, Manager, ObjectKey, Priority, Process};

use crate::actor::{Actor, is_gone, message};
use crate::census::{self, Meta};
use crate::kinds::{Kind, Kinds};
use content::Content;

/// The entry in `spec.finalizers` that this controller answers for.
const FINALIZER: &str = "kubernetes";

/// A look in between, for objects of kinds that cannot be watched.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// How many objects are counted per kind: the conditions are for people.
const COUNT_MAX: u32 = 500;

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager, kinds: &Kinds) {
    let namespaces = manager.informers().all::<Namespace>();
    let process = Lifecycle {
        actor: Actor::new(manager, "namespace-controller"),
        namespaces: namespaces.clone(),
        kinds: kinds.clone(),
    };
    let controller = Controller::keyed(manager, "namespace", process).on(&namespaces, leaving);
    let queue = controller.queue();
    manager.add(controller);
    census::follow(manager, kinds, watch::Sender::new(false), move |_, change| {
        if let Some(namespace) = emptier(change, &namespaces) {
            queue.add(namespace, Priority::Normal);
        }
    });
}

fn leaving(change: &Change<Namespace>) -> Option<String> {
    let namespace = change.new.as_ref().filter(|namespace| namespace.metadata.deletion_timestamp.is_some())?;
    Some(namespace.name_any())
}

/// The namespace on its way out that an object has left.
fn emptier(change: &Change<Meta>, namespaces: &Informer<Namespace>) -> Option<String> {
    let gone = change.old.as_ref().filter(|_| change.new.is_none())?;
    let name = gone.meta().namespace.clone()?;
    let namespace = namespaces.get(&ObjectKey::cluster(name.clone()))?;
    namespace.metadata.deletion_timestamp.is_some().then_some(name)
}

struct Lifecycle {
    actor: Actor,
    namespaces: Informer<Namespace>,
    kinds: Kinds,
}

impl Process for Lifecycle {
    type Key = String;

    async fn process(&self, name: &String, _: &Attempt) -> Result<Action, Error> {
        let Some(namespace) = self.namespaces.get(&ObjectKey::cluster(name.clone())) else {
            return Ok(Action::Await);
        };
        let is_ours = |finalizer: &String| finalizer == FINALIZER;
        let spec = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_ref());
        if namespace.metadata.deletion_timestamp.is_none() || !spec.is_some_and(|list| list.iter().any(is_ours)) {
            return Ok(Action::Await);
        }
        let mut kinds = self.kinds.clone();
        while kinds.now().is_empty() {
            if !kinds.changed().await {
                return Ok(Action::Await);
            }
        }
        let Some(namespace) = self.live(&namespace).await? else { return Ok(Action::Await) };
        let content = self.empty(name, &kinds.now()).await;
        let namespace = self.report(namespace, &content).await?;
        if content.is_empty() {
            self.finalize(&namespace).await?;
            return Ok(Action::Await);
        }
        match content.failure() {
            Some(why) => Err(Error::failed(why)),
            None => Ok(Action::Recheck(LOOK_AGAIN)),
        }
    }
}

impl Lifecycle {
    /// The namespace as it is now. A cache can be behind: one of the same name may be there by now, whose content is wanted.
    async fn live(&self, seen: &Namespace) -> Result<Option<Arc<Namespace>>, kube::Error> {
        let api: Api<Namespace> = Api::all(self.actor.client.clone());
        let live = api.get_opt(&seen.name_any()).await?;
        let goes = |live: &Namespace| live.uid() == seen.uid() && live.metadata.deletion_timestamp.is_some();
        Ok(live.filter(goes).map(Arc::new))
    }

    /// Deletes everything in the namespace; Pods first, so that what they use outlives them.
    async fn empty(&self, namespace: &str, kinds: &[Kind]) -> Content {
        let mut content = Content::default();
        let is_pod = |kind: &&Kind| kind.resource.group.is_empty() && kind.resource.kind == "Pod";
        let deletable = || kinds.iter().filter(|kind| kind.namespaced && kind.can("delete") && kind.can("list"));
        for kind in deletable().filter(is_pod) {
            self.empty_of(kind, namespace, &mut content).await;
        }
        if content.has_objects() {
            return content;
        }
        for kind in deletable().filter(|kind| !is_pod(kind)) {
            self.empty_of(kind, namespace, &mut content).await;
        }
        content
    }

    async fn empty_of(&self, kind: &Kind, namespace: &str, content: &mut Content) {
        let title = format!("{}.{}", kind.resource.plural, kind.resource.group);
        match self.try_empty_of(kind, namespace, &title, content).await {
            Err(error) if !is_gone(&error) => content.failed(format!("{title}: {}", message(&error))),
            _ => {}
        }
    }

    async fn try_empty_of(
        &self,
        kind: &Kind,
        namespace: &str,
        title: &str,
        content: &mut Content,
    ) -> Result<(), kube::Error> {
        let api = kind.api(&self.actor.client, Some(namespace));
        let page = ListParams::default().limit(COUNT_MAX);
        let present = api.list_metadata(&page).await?;
        if present.items.is_empty() {
            return Ok(());
        }
        let params =
            DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
        if kind.can("deletecollection") {
            api.delete_collection(&params, &ListParams::default()).await?;
        } else {
            for object in present.items.iter().filter(|object| object.metadata.deletion_timestamp.is_none()) {
                match api.delete(&object.name_any(), &params).await {
                    Err(error) if !is_gone(&error) => return Err(error),
                    _ => {}
                }
            }
        }
        let left = api.list_metadata(&page).await?;
        left.items.iter().for_each(|object| content.remains(title, &object.metadata));
        Ok(())
    }

    async fn report(&self, namespace: Arc<Namespace>, content: &Content) -> Result<Arc<Namespace>, kube::Error> {
        let status = content.status(namespace.status.as_ref(), self.actor.clock.now());
        if namespace.status.as_ref() == Some(&status) {
            return Ok(namespace);
        }
        let mut updated = Namespace { status: Some(status), ..Namespace::clone(&namespace) };
        updated.metadata.managed_fields = None;
        let api: Api<Namespace> = Api::all(self.actor.client.clone());
        api.replace_status(&updated.name_any(), &self.actor.post(), &updated).await.map(Arc::new)
    }

    async fn finalize(&self, namespace: &Namespace) -> Result<(), kube::Error> {
        let mut released = namespace.clone();
        released.metadata.managed_fields = None;
        if let Some(finalizers) = released.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
        let api: Api<Namespace> = Api::all(self.actor.client.clone());
        let answer = api.replace_subresource("finalize", &released.name_any(), &self.actor.post(), &released).await;
        match answer {
            Err(error) if !is_gone(&error) => Err(error),
            _ => Ok(()),
        }
    }
}
