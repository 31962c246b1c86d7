//! Carrying out the steps of a pass.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::ApiResource;
use kube::{Api, Client};
use windlass_core::{Child, Event};

use super::difference::Differences;
use super::kinds::Nursery;
use super::note::seen;
use super::step::{Owner, Refusal, Step, Unwanted};
use crate::journal;
use crate::key::ObjectKey;

/// What kept a pass from being carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("cannot {verb} {what}: {source}")]
    Api {
        verb: &'static str,
        what: String,
        #[source]
        source: kube::Error,
    },
    #[error("cannot see what there is: {0}")]
    Unseen(String),
    #[error("the resource is gone or on its way out, and the watch does not know yet")]
    Outdated,
}

impl Trouble {
    /// The reason in conditions and events.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Refused(_) => "ChildRefused",
            Self::Api { .. } => "ApplyFailed",
            Self::Unseen(_) | Self::Outdated => "WatchFailed",
        }
    }

    /// What happened, without what is in the object.
    pub(crate) fn in_short(&self) -> String {
        match self {
            Self::Api { verb, what, source } => format!("cannot {verb} {what}: {}", journal::of_api(source)),
            other => other.to_string(),
        }
    }

    /// Whether trying again does not help.
    pub(crate) fn needs_a_person(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

/// What was done before to the same object, as far as this process remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing.
    New,
    /// Another state was applied.
    Other,
    /// The same state was applied: whatever is different now is the work of somebody else.
    Same,
}

/// Makes one child as wanted; `before` says what was done to it before.
pub(crate) async fn keep(
    client: &Client,
    nursery: &Nursery,
    owner: &Owner,
    child: Child,
    before: impl FnOnce(&Child) -> Before,
) -> Result<(Child, Option<Event>), Trouble> {
    let undeclared = || Refusal::Undeclared { kind: child.resource.kind.clone() };
    let cache = nursery.of(&child.resource).ok_or_else(undeclared)?;
    let child = owner.claim(child, None)?;
    if let Some(why) = cache.unseen(child.namespace.as_deref()) {
        return Err(Trouble::Unseen(why));
    }
    let live = cache.live(&ObjectKey { namespace: child.namespace.clone(), name: child.name.clone() });
    journal::saw(|| seen(&child, live.as_ref()));
    let Some(step) = owner.step(child.clone(), live.as_ref())? else { return Ok((child, None)) };
    let before = before(&child);
    let event = act(client, &owner.manager, &step, before).await?;
    Ok((child, event))
}

/// Does one step and tells what was done, if that is worth an event.
pub(crate) async fn act(client: &Client, manager: &str, step: &Step, before: Before) -> Result<Option<Event>, Trouble> {
    match step {
        Step::Create(child) => {
            apply(client, manager, child).await?;
            let what = title(&child.resource, &child.name);
            Ok(Some(match before {
                Before::New => Event::normal("Created", format!("Created {what}")),
                _ => Event::normal("Recreated", format!("{what} was gone, created it again")),
            }))
        }
        Step::Update(child, differences) => {
            apply(client, manager, child).await?;
            Ok(updated(child, differences, before))
        }
        Step::Delete(unwanted) => {
            let is_done = delete(client, unwanted).await?;
            let event = || Event::normal("Deleted", format!("Deleted {}: it is no longer wanted", unwanted.title()));
            Ok(is_done.then(event))
        }
    }
}

fn updated(child: &Child, differences: &Differences, before: Before) -> Option<Event> {
    if differences.fields.is_empty() {
        return None;
    }
    let what = title(&child.resource, &child.name);
    let changes = differences.describe(child.resource.kind == "Secret");
    let is_drift = before == Before::Same || differences.fields.iter().any(|difference| difference.taken);
    Some(if is_drift {
        Event::normal("DriftCorrected", format!("{what} was changed from outside, put it right: {changes}"))
    } else {
        Event::normal("Updated", format!("Updated {what}: {changes}"))
    })
}

async fn apply(client: &Client, manager: &str, child: &Child) -> Result<(), Trouble> {
    let params = PatchParams::apply(manager).force();
    let api = api(client, &child.resource, child.namespace.as_deref());
    let applied = api.patch(&child.name, &params, &Patch::Apply(&child.object)).await;
    applied.map(drop).map_err(|source| Trouble::Api {
        verb: "apply",
        what: title(&child.resource, &child.name),
        source,
    })
}

/// Deletes an object if it is still what was seen; tells whether it did.
async fn delete(client: &Client, unwanted: &Unwanted) -> Result<bool, Trouble> {
    let is_part = unwanted.mark.part.is_some();
    // A part is gone when all below it is: its Pods may still use what it was after.
    let params = if is_part { DeleteParams::foreground() } else { DeleteParams::background() };
    // The order is that of the objects that were seen. One that has changed since may have been let go, and tells of itself.
    let resource_version = unwanted.resource_version.clone().filter(|_| is_part);
    let params = params.preconditions(Preconditions { uid: Some(unwanted.uid.clone()), resource_version });
    match api(client, &unwanted.resource, unwanted.namespace.as_deref()).delete(&unwanted.name, &params).await {
        Ok(_) => Ok(true),
        // Gone, or no longer the same: either way it is not the one to delete any more.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(source) => Err(Trouble::Api { verb: "delete", what: unwanted.title(), source }),
    }
}

/// The way to the objects of a kind that is known only at run time.
pub(crate) fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

pub(super) fn title(resource: &ApiResource, name: &str) -> String {
    format!("{} {name}", resource.kind)
}
