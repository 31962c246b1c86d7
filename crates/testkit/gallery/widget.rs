//! The resource of the gallery, and what its reconcilers have in common.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass::k8s_openapi::ByteString;
use windlass::kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use windlass::kube::{Api, Resource as AnyResource};
use windlass::prelude::*;
use windlass_testkit::Kind;

/// Something with settings, members and credentials.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "gallery.example.com", version = "v1", kind = "Widget", status = WidgetStatus)]
pub(crate) struct WidgetSpec {
    pub size: u32,
    pub text: String,
    #[serde(default)]
    pub tls: bool,
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default)]
pub(crate) struct WidgetStatus {
    pub phase: String,
    pub note: String,
    pub members: u32,
    pub ready: bool,
}

pub(crate) type Cx = Context<Widget>;

pub(crate) const FINALIZER: &str = "gallery.example.com/outside";
const MANAGER: &str = "gallery";

pub(crate) fn api<K: Kind>(cx: &Cx) -> Api<K> {
    Api::namespaced(cx.client(), "default")
}

/// The widget as the API has it now, if it is still the one that was seen and is wanted.
pub(crate) async fn live(cx: &Cx, seen: &Widget) -> Result<Option<Widget>, Error> {
    let found: Option<Widget> = api(cx).get_opt(&seen.name_any()).await?;
    Ok(found.filter(|found| found.metadata.uid == seen.metadata.uid && found.metadata.deletion_timestamp.is_none()))
}

/// Metadata of an object that belongs to `widget`.
pub(crate) fn owned(name: impl Into<String>, widget: &Widget) -> ObjectMeta {
    let labels = BTreeMap::from([("widget".to_owned(), widget.name_any())]);
    let owner = widget.controller_owner_ref(&()).expect("an object of the API has a name and a uid");
    ObjectMeta { labels: Some(labels), owner_references: Some(vec![owner]), ..named(name) }
}

pub(crate) fn map(metadata: ObjectMeta, data: impl IntoIterator<Item = (String, String)>) -> ConfigMap {
    ConfigMap { metadata, data: Some(data.into_iter().collect()), ..ConfigMap::default() }
}

pub(crate) fn text_map(metadata: ObjectMeta, text: &str) -> ConfigMap {
    map(metadata, [("text".to_owned(), text.to_owned())])
}

pub(crate) fn text_secret(metadata: ObjectMeta, text: &str) -> Secret {
    // Not as `stringData`, which is another field of the object: to apply it again is a change.
    let data = Some(BTreeMap::from([("text".to_owned(), ByteString(text.as_bytes().to_vec()))]));
    Secret { metadata, data, ..Secret::default() }
}

pub(crate) fn is_owned<K: AnyResource>(object: &K, widget: &Widget) -> bool {
    let owners = object.meta().owner_references.iter().flatten();
    owners.into_iter().any(|owner| Some(&owner.uid) == widget.metadata.uid.as_ref())
}

/// Makes an object as wanted, and leaves what others have written there.
pub(crate) async fn apply<K: Kind>(cx: &Cx, object: &K) -> Result<(), Error> {
    let mut value = serde_json::to_value(object).map_err(Error::failed)?;
    value["apiVersion"] = K::api_version(&()).into();
    value["kind"] = K::kind(&()).into();
    let params = PatchParams::apply(MANAGER).force();
    api::<K>(cx).patch(&object.name_any(), &params, &Patch::Apply(value)).await?;
    Ok(())
}

/// The objects that belong to `widget`.
pub(crate) async fn all<K: Kind>(cx: &Cx, widget: &Widget) -> Result<Vec<K>, Error> {
    let params = ListParams::default().labels(&format!("widget={}", widget.name_any()));
    Ok(api::<K>(cx).list(&params).await?.items.into_iter().filter(|object| is_owned(object, widget)).collect())
}

/// Deletes exactly the object that was seen.
pub(crate) async fn delete<K: Kind>(cx: &Cx, object: &K) -> Result<(), Error> {
    let exactly = Preconditions { uid: object.meta().uid.clone(), resource_version: None };
    let params = DeleteParams::background().preconditions(exactly);
    match api::<K>(cx).delete(&object.name_any(), &params).await {
        Err(windlass::kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        deleted => Ok(deleted.map(drop)?),
    }
}

/// Deletes whatever has this name.
pub(crate) async fn delete_by_name<K: Kind>(cx: &Cx, name: &str) -> Result<(), Error> {
    ignore(404, api::<K>(cx).delete(name, &DeleteParams::background()).await)
}

/// Takes an answer with `code` for a success.
pub(crate) fn ignore<T: Debug>(code: u16, outcome: windlass::kube::Result<T>) -> Result<(), Error> {
    match outcome {
        Err(windlass::kube::Error::Api(status)) if status.code == code => Ok(()),
        outcome => Ok(outcome.map(drop)?),
    }
}

/// Writes the status for the generation that was served.
pub(crate) async fn report(cx: &Cx, widget: &Widget, status: Value) -> Result<(), Error> {
    let mut status = status;
    status["observedGeneration"] = json!(widget.metadata.generation);
    patch_status(cx, widget, &json!({"status": status})).await
}

async fn patch_status<K: Kind + DeserializeOwned>(cx: &Cx, widget: &K, patch: &Value) -> Result<(), Error> {
    let patched = api::<K>(cx).patch_status(&widget.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
    ignore(404, patched)
}

pub(crate) fn own(widget: &Widget) -> WidgetStatus {
    widget.status.clone().map(|status| status.own).unwrap_or_default()
}
