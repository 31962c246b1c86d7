//! Carrying out the steps of a pass.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, Request};
use kube::{Api, Client, Resource};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use windlass_core::{Child, Event};

use super::contains::contains;
use super::difference::Differences;
use super::kinds::{Live, Nursery};
use super::note::seen;
use super::step::{Owner, Refusal, Step, Unwanted};
use crate::cache::StateId;
use crate::journal;
use crate::key::ObjectKey;

/// What kept a pass from being carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("cannot {verb} {what}: {}", in_words(.source))]
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
    #[error("what was there was taken over, and is looked at again")]
    TakenOver,
}

/// What the API says; the error's own text has all of the answer in it, too, and people read this in conditions and events.
fn in_words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

impl Trouble {
    /// The reason in conditions and events.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Refused(_) => "ChildRefused",
            Self::Api { .. } => "ApplyFailed",
            Self::Unseen(_) | Self::Outdated => "WatchFailed",
            Self::TakenOver => "Adopted",
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

/// What was done, in words. The log tells of all of it; an event is one more write, and is for what people do not expect.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
    /// It follows from the resource being there.
    Expected(Event),
    /// It follows from the spec, or from something else that changed.
    Following(Event),
    /// Somebody may wonder about it.
    News(Event),
}

impl Deed {
    /// What the log says.
    pub(crate) fn words(&self) -> &Event {
        match self {
            Self::Expected(words) | Self::Following(words) | Self::News(words) => words,
        }
    }

    /// The event, if there is to be one. Of a spec that was not looked at before people know what follows.
    pub(crate) fn event(self, spec_is_new: bool) -> Option<Event> {
        match self {
            Self::Expected(_) => None,
            Self::Following(event) => (!spec_is_new).then_some(event),
            Self::News(event) => Some(event),
        }
    }
}

/// What came of a step.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) deed: Option<Deed>,
    /// The state that an apply left its object in, if the answer has all that was wished.
    pub(crate) left_in: Option<StateId>,
}

/// Makes one child as wanted, of which nothing is remembered.
pub(crate) async fn keep(
    client: &Client,
    nursery: &Nursery,
    owner: &Owner,
    child: Child,
) -> Result<Option<Deed>, Trouble> {
    let undeclared = || Refusal::Undeclared { kind: child.resource.kind.clone() };
    let cache = nursery.of(&child.resource).ok_or_else(undeclared)?;
    let child = owner.claim(child, None)?;
    if let Some(why) = cache.unseen(child.namespace.as_deref()) {
        return Err(Trouble::Unseen(why));
    }
    let live = cache.live(&ObjectKey { namespace: child.namespace.clone(), name: child.name.clone() });
    journal::saw(|| seen(&child, live.as_ref().map(Live::meta)));
    let live = live.map(|live| live.value(&owner.manager));
    match owner.step(child, live.as_ref())? {
        Some(step) => Ok(act(client, &owner.manager, &step, Before::New).await?.deed),
        None => Ok(None),
    }
}

/// Does one step and tells what was done.
pub(crate) async fn act(client: &Client, manager: &str, step: &Step, before: Before) -> Result<Done, Trouble> {
    match step {
        Step::Create(child) => {
            let left_in = apply(client, manager, child).await?;
            let what = title(&child.resource, &child.name);
            let deed = match before {
                Before::New => Deed::Expected(Event::normal("Created", format!("Created {what}"))),
                _ => Deed::News(Event::normal("Recreated", format!("{what} was gone, created it again"))),
            };
            Ok(Done { deed: Some(deed), left_in })
        }
        Step::Update(child, differences) | Step::Adopt(child, differences) => {
            let left_in = apply(client, manager, child).await?;
            Ok(Done { deed: updated(child, differences, before), left_in })
        }
        Step::Delete(unwanted) => {
            let is_done = delete(client, unwanted).await?;
            let event = || Event::normal("Deleted", format!("Deleted {}: it is no longer wanted", unwanted.title()));
            Ok(Done { deed: is_done.then(|| Deed::News(event())), left_in: None })
        }
    }
}

fn updated(child: &Child, differences: &Differences, before: Before) -> Option<Deed> {
    if differences.fields.is_empty() {
        return None;
    }
    let what = title(&child.resource, &child.name);
    let changes = differences.describe(child.resource.kind == "Secret");
    let is_drift = before == Before::Same || differences.fields.iter().any(|difference| difference.taken);
    Some(if is_drift {
        let words = format!("{what} was changed from outside, put it right: {changes}");
        Deed::News(Event::normal("DriftCorrected", words))
    } else {
        Deed::Following(Event::normal("Updated", format!("Updated {what}: {changes}")))
    })
}

/// Applies a child, and tells the state that it is in then, if that has all that was wished: what is applied is owned, so that
/// nothing else remains to be compared.
async fn apply(client: &Client, manager: &str, child: &Child) -> Result<Option<StateId>, Trouble> {
    let place = Place { resource: &child.resource, namespace: child.namespace.as_deref(), name: &child.name };
    let answer = place.apply(client, manager, None, &child.object).await.map_err(|source| Trouble::Api {
        verb: "apply",
        what: title(&child.resource, &child.name),
        source,
    })?;
    Ok(if contains(&answer, &child.object) { state_in(&answer) } else { None })
}

/// The state that an answer tells of. One that is on its way out is none that could be wished.
fn state_in(answer: &str) -> Option<StateId> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        uid: &'a str,
        resource_version: &'a str,
        deletion_timestamp: Option<IgnoredAny>,
    }
    let Answer { metadata } = serde_json::from_str(answer).ok()?;
    let is_going = metadata.deletion_timestamp.is_some();
    (!is_going).then(|| StateId::of(Some(metadata.uid), Some(metadata.resource_version)))
}

/// Where an object is, or will be.
pub(crate) struct Place<'a> {
    pub(crate) resource: &'a ApiResource,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

impl Place<'_> {
    /// Applies `object`, or a subresource of it, in the name of `manager`, and gives the answer, which the caches have read on
    /// its way.
    pub(crate) async fn apply(
        &self,
        client: &Client,
        manager: &str,
        subresource: Option<&str>,
        object: &Value,
    ) -> Result<String, kube::Error> {
        let (params, patch) = (PatchParams::apply(manager).force(), Patch::Apply(object));
        let path = Request::new(DynamicObject::url_path(self.resource, self.namespace));
        let request = match subresource {
            Some(subresource) => path.patch_subresource(subresource, self.name, &params, &patch),
            None => path.patch(self.name, &params, &patch),
        };
        client.request_text(request.map_err(kube::Error::BuildRequest)?).await
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_the_state_unless_it_is_one_of_leaving() {
        let state = StateId::of(Some("u"), Some("7"));
        let rows = [
            (r#"{"kind": "Thing", "metadata": {"uid": "u", "resourceVersion": "7"}}"#, Some(state)),
            (r#"{"metadata": {"uid": "u", "resourceVersion": "8"}}"#, Some(StateId::of(Some("u"), Some("8")))),
            (
                r#"{"metadata": {"uid": "u", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z"}}"#,
                None,
            ),
            (r#"{"metadata": {"uid": "u"}}"#, None),
            ("", None),
        ];
        for (answer, expected) in rows {
            assert_eq!(state_in(answer), expected, "{answer}");
        }
        assert_ne!(state_in(rows[1].0), Some(state));
    }
}
