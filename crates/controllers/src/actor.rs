//! The hand of one controller: its name on every write, and deletions that hit only what was meant.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Status;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use windlass_runtime::{Clock, Event, Manager, Recorder};

/// A kind that lives in namespaces and is known at compile time.
pub(crate) trait Namespaced:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

impl<K> Namespaced for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

/// What one controller acts with.
#[derive(Clone)]
pub(crate) struct Actor {
    pub(crate) name: &'static str,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    events: Recorder,
}

impl Actor {
    /// The hand of the controller called `name`, which is its field manager and the source of its events.
    pub(crate) fn new(manager: &Manager, name: &'static str) -> Self {
        let handle = manager.handle();
        let events = Recorder::new(handle.client.clone(), handle.clock.clone(), name);
        Self { name, client: handle.client, clock: handle.clock, events }
    }

    /// The API of a namespaced kind.
    pub(crate) fn api<K: Namespaced>(&self, namespace: Option<&str>) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace.unwrap_or("default"))
    }

    /// Parameters of a create or replace.
    pub(crate) fn post(&self) -> PostParams {
        PostParams { field_manager: Some(self.name.to_owned()), ..PostParams::default() }
    }

    /// Parameters of a patch.
    pub(crate) fn patch(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.name.to_owned()), ..PatchParams::default() }
    }

    /// Records that `event` happened to `object`.
    pub(crate) fn tell<K: Resource<DynamicType = ()>>(&self, object: &K, event: Event) {
        self.events.record(object, &(), event);
    }

    /// The recorder, for objects whose kind is known at run time only.
    pub(crate) fn events(&self) -> &Recorder {
        &self.events
    }

    /// Makes an object.
    pub(crate) async fn create<K: Namespaced>(&self, object: &K) -> Result<K, kube::Error> {
        self.api(object.meta().namespace.as_deref()).create(&self.post(), object).await
    }

    /// Asks whether `seen` is the object as the API has it now; a conflict if not. A cache can be behind, most of all after a
    /// start: what follows from an old view was done before, or is not wanted any more.
    pub(crate) async fn check_current<K: Namespaced>(&self, seen: &K) -> Result<(), kube::Error> {
        let meta = seen.meta();
        let live = self.api::<K>(meta.namespace.as_deref()).get_metadata_opt(&seen.name_any()).await?;
        let is_same = |live: ObjectMeta| live.uid == meta.uid && live.resource_version == meta.resource_version;
        if live.is_some_and(|live| is_same(live.metadata)) {
            return Ok(());
        }
        let status = Status::failure("the object has changed since it was seen", "Conflict").with_code(409);
        Err(kube::Error::Api(status.boxed()))
    }

    /// Replaces an object that has not changed since it was read.
    pub(crate) async fn replace<K: Namespaced>(&self, object: &K) -> Result<K, kube::Error> {
        let object = whole(object);
        self.api(object.meta().namespace.as_deref()).replace(&object.name_any(), &self.post(), &object).await
    }

    /// Replaces the status of an object that has not changed since it was read.
    pub(crate) async fn replace_status<K: Namespaced>(&self, object: &K) -> Result<K, kube::Error> {
        let object = whole(object);
        self.api(object.meta().namespace.as_deref()).replace_status(&object.name_any(), &self.post(), &object).await
    }

    /// Deletes exactly this object, not another of the same name. `false` if it was gone already.
    pub(crate) async fn delete<K: Namespaced>(&self, object: &K) -> Result<bool, kube::Error> {
        self.delete_with(object, DeleteParams::background()).await
    }

    /// The same with parameters; the UID is added to them.
    pub(crate) async fn delete_with<K: Namespaced>(
        &self,
        object: &K,
        mut params: DeleteParams,
    ) -> Result<bool, kube::Error> {
        params.preconditions.get_or_insert_with(Preconditions::default).uid = object.meta().uid.clone();
        let api = self.api::<K>(object.meta().namespace.as_deref());
        match api.delete(&object.name_any(), &params).await {
            Ok(_) => Ok(true),
            // With the UID as the only condition, a conflict is another object of the same name.
            Err(error) if is_gone(&error) || is_conflict(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes a finalizer off an object that has not changed since it was read.
    pub(crate) async fn remove_finalizer<K: Namespaced>(&self, object: &K, finalizer: &str) -> Result<(), kube::Error> {
        let meta = object.meta();
        let kept: Vec<&String> = object.finalizers().iter().filter(|known| *known != finalizer).collect();
        let patch = json!({"metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": kept,
        }});
        let api = self.api::<K>(meta.namespace.as_deref());
        match api.patch(&object.name_any(), &self.patch(), &Patch::Merge(&patch)).await {
            Err(error) if !is_gone(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes the owner references of an object that has not changed since it was read.
    pub(crate) async fn set_owners<K: Namespaced>(
        &self,
        object: &K,
        owners: &[OwnerReference],
    ) -> Result<K, kube::Error> {
        let meta = object.meta();
        let patch = json!({"metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "ownerReferences": owners,
        }});
        let api = self.api::<K>(meta.namespace.as_deref());
        api.patch(&object.name_any(), &self.patch(), &Patch::Merge(&patch)).await
    }
}

/// Caches drop the managed fields of others; without any, the server keeps its own.
fn whole<K: Resource + Clone>(object: &K) -> K {
    let mut object = object.clone();
    object.meta_mut().managed_fields = None;
    object
}

/// Whether the object is not there.
pub(crate) fn is_gone(error: &kube::Error) -> bool {
    is(error, 404, "NotFound")
}

/// Whether somebody else was faster, or a precondition does not hold.
pub(crate) fn is_conflict(error: &kube::Error) -> bool {
    is(error, 409, "Conflict")
}

/// Whether an object of that name exists.
pub(crate) fn exists_already(error: &kube::Error) -> bool {
    is(error, 409, "AlreadyExists")
}

/// Whether the namespace is on its way out, so that nothing can be made in it any more.
pub(crate) fn namespace_leaves(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

fn is(error: &kube::Error, code: u16, reason: &str) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code && status.reason == reason)
}

/// The sentence in an error that people should read.
pub(crate) fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
