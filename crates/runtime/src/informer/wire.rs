//! Objects as they come from the API: texts, of which only the head is read until somebody wants more. Every kind is
//! watched by the same code, and what is known already costs no more than its head.

use std::borrow::Cow;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::key::ObjectKey;
use crate::watch::Target;

/// An object as it came.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    /// Its name, namespace, uid and version, and nothing else.
    head: ObjectMeta,
    text: Box<RawValue>,
}

impl Wire {
    /// Its name, namespace, uid and version, and nothing else.
    pub(crate) fn head(&self) -> &ObjectMeta {
        &self.head
    }

    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::of_meta(&self.head)
    }

    /// All of it.
    pub(crate) fn text(&self) -> &str {
        self.text.get()
    }
}

impl<'de> Deserialize<'de> for Wire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Headed { metadata: Head { name, namespace, uid, resource_version } } =
            serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { head: ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() }, text })
    }
}

#[derive(Deserialize)]
struct Headed {
    #[serde(default)]
    metadata: Head,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

/// What the watch of `target` tells, for ever.
pub(super) fn events(target: &Target, client: Client) -> BoxStream<'static, watcher::Result<Event<Wire>>> {
    if target.metadata { asked::<true>(target, client) } else { asked::<false>(target, client) }
}

fn asked<const METADATA: bool>(target: &Target, client: Client) -> BoxStream<'static, watcher::Result<Event<Wire>>> {
    let api: Api<Asked<METADATA>> = match &target.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &target.resource),
        None => Api::all_with(client, &target.resource),
    };
    let config = watcher::Config {
        label_selector: target.labels.clone(),
        field_selector: target.fields.clone(),
        ..watcher::Config::default()
    };
    let plain = |event| match event {
        Event::Apply(Asked(wire)) => Event::Apply(wire),
        Event::Delete(Asked(wire)) => Event::Delete(wire),
        Event::InitApply(Asked(wire)) => Event::InitApply(wire),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    };
    watcher(api, config).map_ok(plain).boxed()
}

/// An object that was asked for whole, or for its metadata alone: kube learns that from the type.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
struct Asked<const METADATA: bool>(Wire);

impl<const METADATA: bool> Resource for Asked<METADATA> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn metadata_api() -> bool {
        METADATA
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0.head
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.head
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    #[test]
    fn an_object_that_cannot_be_read_keeps_its_name_and_the_others_readable() {
        let list = r#"{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": [
            {"metadata": {"name": "good", "namespace": "n", "labels": {"a": "b"}}, "data": {"a": "b"}},
            {"metadata": {"name": "bad"}, "data": {"a": 5}}]}"#;
        let list: ObjectList<Asked<false>> = serde_json::from_str(list).unwrap();
        let read: Vec<_> = list
            .items
            .iter()
            .map(|it| (it.0.key().name, serde_json::from_str::<ConfigMap>(it.0.text()).is_ok()))
            .collect();
        assert_eq!(read, [("good".to_owned(), true), ("bad".to_owned(), false)]);
    }

    #[test]
    fn an_event_is_read_without_its_object() {
        let line = r#"{"type":"MODIFIED","object":{"kind":"ConfigMap","metadata":{"name":"x","uid":"1","resourceVersion":"9"},"data":5}}"#;
        let WatchEvent::Modified(Asked::<false>(wire)) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
        assert_eq!((wire.head().uid.as_deref(), wire.head().resource_version.as_deref()), (Some("1"), Some("9")));
        assert!(serde_json::from_str::<ConfigMap>(wire.text()).is_err());
    }
}
