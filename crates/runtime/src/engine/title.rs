//! Whose an object is: what belongs to nobody is taken over before it is changed, and let go when it is to stay.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::ApiResource;
use serde_json::json;
use windlass_core::{Child, CustomResource, Event, Operator};

use super::act::{Trouble, api, title};
use super::carry::is_current;
use super::deletion::set_finalizers;
use super::report::Pass;
use super::step::Owner;
use super::style::Style;
use super::switch::Switches;
use super::{Engine, owner_of};
use crate::journal::{self, Turn};
use crate::key::ObjectKey;
use crate::reconcile::{Action, Context, Error};

/// Whether what a resource is made of stays when it is deleted.
pub(crate) type ReleasesFn<O> = fn(&<O as Style>::Resource) -> bool;

/// So many objects are read at once.
const PAGE_SIZE: u32 = 500;
/// How often objects that change meanwhile are read again before the whole is tried later.
const ROUNDS_MAX: usize = 5;
/// So many of the objects that were taken over are named.
const NAMED_MAX: usize = 5;

/// An object that has to be let go.
struct Held {
    resource: ApiResource,
    meta: ObjectMeta,
}

impl<O: Operator> Engine<O> {
    /// Makes `resource` the owner of objects that are wanted and belong to nobody, and changes nothing else of them: the operator
    /// decides about them when they are its own, and knows then what there is. Gives what the pass ends with.
    pub(super) async fn take_over(
        &self,
        resource: &O::Resource,
        owner: &Owner,
        unclaimed: &[&Child],
        cx: &Context<O::Resource>,
    ) -> Trouble {
        // With an owner that is gone they would be collected.
        match is_current(resource, cx).await {
            Ok(true) => {}
            Ok(false) => return Trouble::Outdated,
            Err(trouble) => return trouble,
        }
        for child in unclaimed {
            match self.claim(owner, child, cx).await {
                Ok(true) => {}
                // The watch is behind.
                Ok(false) => return Trouble::Outdated,
                Err(trouble) => return trouble,
            }
        }
        let named: Vec<String> =
            unclaimed.iter().take(NAMED_MAX).map(|child| title(&child.resource, &child.name)).collect();
        let more = unclaimed.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let message = format!("{}{more} belonged to nobody and are taken over as they are", named.join(", "));
        self.record(resource, Event::normal("Adopted", message), cx);
        Trouble::TakenOver
    }

    /// Makes one object the owner's, if it is still what was seen.
    async fn claim(&self, owner: &Owner, child: &Child, cx: &Context<O::Resource>) -> Result<bool, Trouble> {
        let key = ObjectKey { namespace: child.namespace.clone(), name: child.name.clone() };
        let Some(live) = self.nursery.of(&child.resource).and_then(|cache| cache.live(&key)) else { return Ok(false) };
        let mut owners = live.meta().owner_references.clone().unwrap_or_default();
        owners.push(owner.reference.clone());
        set_owners(&child.resource, live.meta(), &owners, "adopt", cx).await
    }

    /// Lets go of all that was made for `resource`, then of the resource.
    pub(super) async fn release(&self, resource: &O::Resource, cx: &Context<O::Resource>) -> Result<Action, Error> {
        journal::decided(Turn::Deleting, "Released", "what it is made of stays");
        if let Err(trouble) = self.let_go(resource, cx).await {
            let why = trouble.to_string();
            self.record(resource, Event::warning("ReleaseFailed", why.clone()), cx);
            self.report(resource, &Pass::DeletionBlocked { reason: "ReleaseFailed", why: &why }, cx).await?;
            return Err(Error::failed(trouble));
        }
        let message = "what it is made of stays as it is, and belongs to nobody";
        self.record(resource, Event::normal("Released", message), cx);
        set_finalizers(resource, &[], cx).await?;
        Ok(Action::Await)
    }

    async fn let_go(&self, resource: &O::Resource, cx: &Context<O::Resource>) -> Result<(), Trouble> {
        let owner = owner_of(resource, cx.name(), &Switches::default());
        for _ in 0..ROUNDS_MAX {
            let held = self.held(&owner, cx).await?;
            if held.is_empty() {
                return Ok(());
            }
            for Held { resource, meta } in held {
                let mut owners = meta.owner_references.clone().unwrap_or_default();
                owners.retain(|other| other.uid != owner.reference.uid);
                set_owners(&resource, &meta, &owners, "let go of", cx).await?;
            }
        }
        Err(Trouble::Unseen("what it is made of changes all the time".into()))
    }

    /// What the resource owns of the declared kinds, by the API itself: what a cache does not know yet would be collected. What is
    /// remembered of its revisions is about the resource, and goes with it.
    async fn held(&self, owner: &Owner, cx: &Context<O::Resource>) -> Result<Vec<Held>, Trouble> {
        let is_memory = |resource: &ApiResource| self.upgrades.is_some() && resource.kind == "ControllerRevision";
        let mut held = Vec::new();
        for children in self.nursery.iter().filter(|children| !is_memory(children.resource())) {
            let resource = children.resource();
            for meta in all(resource, owner.namespace.as_deref(), cx).await? {
                let mut owners = meta.owner_references.iter().flatten();
                if owners.any(|other| other.uid == owner.reference.uid) {
                    held.push(Held { resource: resource.clone(), meta });
                }
            }
        }
        Ok(held)
    }
}

/// All objects of a kind, in pages.
async fn all<R: CustomResource>(
    resource: &ApiResource,
    namespace: Option<&str>,
    cx: &Context<R>,
) -> Result<Vec<ObjectMeta>, Trouble> {
    let api = api(&cx.client(), resource, namespace);
    let (mut objects, mut params) = (Vec::new(), ListParams::default().limit(PAGE_SIZE));
    loop {
        let page = api.list_metadata(&params).await;
        let page = page.map_err(|source| Trouble::Api { verb: "list", what: resource.plural.clone(), source })?;
        objects.extend(page.items.into_iter().map(|object| object.metadata));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(objects);
        }
    }
}

/// Writes the owners of an object, if it is still there and what was seen; tells whether it is.
async fn set_owners<R: CustomResource>(
    resource: &ApiResource,
    seen: &ObjectMeta,
    owners: &[OwnerReference],
    verb: &'static str,
    cx: &Context<R>,
) -> Result<bool, Trouble> {
    let ObjectKey { namespace, name } = ObjectKey::of_meta(seen);
    let seen = json!({"ownerReferences": owners, "uid": seen.uid, "resourceVersion": seen.resource_version});
    let params = PatchParams { field_manager: Some(cx.name().to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({"metadata": seen}));
    match api(&cx.client(), resource, namespace.as_deref()).patch(&name, &params, &patch).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(source) => Err(Trouble::Api { verb, what: title(resource, &name), source }),
    }
}
