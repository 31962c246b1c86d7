//! One look at one object: its live state and that of its owners, then the deed.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, Patch, Preconditions, PropagationPolicy};
use serde_json::{Value, json};
use windlass_runtime::{Action, Error, Event, Priority};

use super::Collector;
use super::graph::{Deletion, FOREGROUND, Node, ORPHAN, Place, Uid};
use super::judge::{Dependents, OwnerState, Propagation, Verdict, judge};
use crate::actor::is_gone;
use crate::kinds::{Kind, group_of};

/// An object as it is now, with what is needed to change it.
struct Live {
    kind: Kind,
    place: Place,
    meta: ObjectMeta,
}

impl Collector {
    pub(super) async fn look_at(&self, uid: &Uid) -> Result<Action, Error> {
        let Some(node) = self.shared.graph().get(uid).cloned() else { return Ok(Action::Await) };
        let Some(live) = self.live(uid, &node).await? else {
            // The watch will say so, too; what it says then is no news.
            return Ok(Action::Await);
        };
        match Deletion::of(&live.meta) {
            Deletion::Pending => {}
            Deletion::Orphans => self.orphan(uid, &live).await?,
            Deletion::WaitsForDependents => self.wait_for_dependents(uid, &live).await?,
            Deletion::None => self.collect(uid, &live).await?,
        }
        Ok(Action::Await)
    }

    async fn live(&self, uid: &Uid, node: &Node) -> Result<Option<Live>, Error> {
        let Some(kind) = self.kinds.find(&node.place.group, &node.place.kind) else { return Ok(None) };
        let meta = self.meta_of(&kind, node.place.namespace.as_deref(), &node.place.name).await?;
        let same = meta.filter(|meta| meta.uid.as_ref() == Some(uid));
        Ok(same.map(|meta| Live { kind, place: node.place.clone(), meta }))
    }

    async fn meta_of(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Result<Option<ObjectMeta>, Error> {
        let found = kind.api(&self.actor.client, namespace).get_metadata_opt(name).await?;
        Ok(found.map(|found| found.metadata))
    }

    /// Deletes the object, or takes references away, as its owners demand.
    async fn collect(&self, uid: &Uid, live: &Live) -> Result<(), Error> {
        let Some(owners) = self.owners(live).await? else {
            self.shared.park(uid);
            return Ok(());
        };
        let dependents = self.dependents(uid);
        match judge(&live.meta, &owners, dependents) {
            Verdict::Keep => Ok(()),
            Verdict::Strip(gone) => self.strip(live, &gone).await,
            Verdict::Delete(propagation) => self.delete(live, propagation).await,
            Verdict::UnblockAndDelete => {
                self.unblock(live).await?;
                // The object has changed; the next look deletes what it finds then.
                let changed = self.meta_of(&live.kind, live.place.namespace.as_deref(), &live.place.name).await?;
                let Some(meta) = changed.filter(|meta| meta.uid == live.meta.uid) else { return Ok(()) };
                let live = Live { kind: live.kind.clone(), place: live.place.clone(), meta };
                self.delete(&live, Propagation::Foreground).await
            }
        }
    }

    /// The state of each owner; `None` while the kind of one is not served, so that nothing can be said.
    async fn owners(&self, live: &Live) -> Result<Option<Vec<(Uid, OwnerState)>>, Error> {
        let mut states = vec![];
        for reference in live.meta.owner_references.iter().flatten() {
            let Some(kind) = self.kinds.find(group_of(&reference.api_version), &reference.kind) else {
                return Ok(None);
            };
            states.push((reference.uid.clone(), self.owner(live, &kind, reference).await?));
        }
        Ok(Some(states))
    }

    async fn owner(&self, live: &Live, kind: &Kind, reference: &OwnerReference) -> Result<OwnerState, Error> {
        let namespace = live.place.namespace.as_deref();
        if kind.namespaced && namespace.is_none() {
            self.tell_invalid(live, reference);
            return Ok(OwnerState::Impossible);
        }
        let found = self.meta_of(kind, namespace, &reference.name).await?;
        let Some(owner) = found.filter(|owner| owner.uid.as_ref() == Some(&reference.uid)) else {
            let elsewhere =
                self.shared.graph().get(&reference.uid).is_some_and(|owner| {
                    owner.place.namespace.is_some() && owner.place.namespace != live.place.namespace
                });
            if elsewhere {
                self.tell_invalid(live, reference);
            }
            return Ok(OwnerState::Absent);
        };
        Ok(match Deletion::of(&owner) {
            Deletion::WaitsForDependents => OwnerState::Waits,
            _ => OwnerState::Solid,
        })
    }

    fn dependents(&self, uid: &str) -> Dependents {
        let graph = self.shared.graph();
        let mut found = Dependents::None;
        for (_, node) in graph.dependents(uid) {
            if node.deletion == Deletion::WaitsForDependents {
                return Dependents::SomeWait;
            }
            found = Dependents::Some;
        }
        found
    }

    /// Sets the dependents free, then the object.
    async fn orphan(&self, uid: &Uid, live: &Live) -> Result<(), Error> {
        let dependents: Vec<(Uid, Node)> =
            self.shared.graph().dependents(uid).map(|(uid, node)| (uid.clone(), node.clone())).collect();
        for (dependent, node) in dependents {
            if let Some(dependent) = self.live(&dependent, &node).await? {
                self.strip(&dependent, std::slice::from_ref(uid)).await?;
            }
        }
        self.remove_finalizer(live, ORPHAN).await
    }

    /// Lets an object go whose blocking dependents have gone; else sees that they do.
    async fn wait_for_dependents(&self, uid: &Uid, live: &Live) -> Result<(), Error> {
        let blocking: Vec<(Uid, Deletion)> =
            self.shared.graph().blocking(uid).map(|(uid, node)| (uid.clone(), node.deletion)).collect();
        if blocking.is_empty() {
            return self.remove_finalizer(live, FOREGROUND).await;
        }
        for (dependent, _) in blocking.iter().filter(|(_, deletion)| *deletion == Deletion::None) {
            self.shared.enqueue(dependent.clone(), Priority::Normal);
        }
        Ok(())
    }

    async fn strip(&self, live: &Live, owners: &[Uid]) -> Result<(), Error> {
        let all = live.meta.owner_references.iter().flatten();
        let kept: Vec<&OwnerReference> = all.clone().filter(|owner| !owners.contains(&owner.uid)).collect();
        if kept.len() == all.count() {
            return Ok(());
        }
        self.change(live, json!({"ownerReferences": kept})).await
    }

    async fn unblock(&self, live: &Live) -> Result<(), Error> {
        let mut references = live.meta.owner_references.clone().unwrap_or_default();
        references.iter_mut().for_each(|reference| reference.block_owner_deletion = Some(false));
        self.change(live, json!({"ownerReferences": references})).await
    }

    async fn remove_finalizer(&self, live: &Live, finalizer: &str) -> Result<(), Error> {
        let kept: Vec<&String> = live.meta.finalizers.iter().flatten().filter(|known| *known != finalizer).collect();
        self.change(live, json!({"finalizers": kept})).await
    }

    /// Changes metadata of exactly the object that was seen.
    async fn change(&self, live: &Live, mut metadata: Value) -> Result<(), Error> {
        metadata["uid"] = json!(live.meta.uid);
        metadata["resourceVersion"] = json!(live.meta.resource_version);
        let api = live.kind.api(&self.actor.client, live.place.namespace.as_deref());
        let patch = Patch::Merge(json!({"metadata": metadata}));
        match api.patch(&live.place.name, &self.actor.patch(), &patch).await {
            Err(error) if !is_gone(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn delete(&self, live: &Live, propagation: Propagation) -> Result<(), Error> {
        let policy = match propagation {
            Propagation::Background => PropagationPolicy::Background,
            Propagation::Foreground => PropagationPolicy::Foreground,
            Propagation::Orphan => PropagationPolicy::Orphan,
        };
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions {
                uid: live.meta.uid.clone(),
                resource_version: live.meta.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        let api = live.kind.api(&self.actor.client, live.place.namespace.as_deref());
        match api.delete(&live.place.name, &params).await {
            Ok(_) => Ok(()),
            Err(error) if is_gone(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn tell_invalid(&self, live: &Live, reference: &OwnerReference) {
        let namespace = live.place.namespace.as_deref().unwrap_or_default();
        let OwnerReference { api_version, kind, name, uid, .. } = reference;
        let message = format!(
            "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace \"{namespace}\""
        );
        let regarding = ObjectReference {
            api_version: Some(live.kind.resource.api_version.clone()),
            kind: Some(live.place.kind.clone()),
            namespace: live.place.namespace.clone(),
            name: Some(live.place.name.clone()),
            uid: live.meta.uid.clone(),
            ..ObjectReference::default()
        };
        self.actor.events().record_at(regarding, Event::warning("OwnerRefInvalidNamespace", message));
    }
}
