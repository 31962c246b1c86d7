//! Where metrics come from: `metrics.k8s.io`, `custom.metrics.k8s.io`, `external.metrics.k8s.io`, whoever serves them.

use std::collections::BTreeMap;

use form_urlencoded::Serializer;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::{CrossVersionObjectReference, MetricIdentifier};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Client;
use kube::core::Selector;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use windlass_schema::duration;

use super::reading::{Reading, Readings};
use crate::actor::{is_gone, message};
use crate::kinds::{Kinds, group_of};
use crate::quantity::Amount;

const CUSTOM_GROUP: &str = "custom.metrics.k8s.io";
/// The versions of the custom metrics that are understood, the best one first.
const CUSTOM_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
const EXTERNAL: &str = "/apis/external.metrics.k8s.io/v1beta1";
/// The time that custom metrics are of which do not say.
const WINDOW_DEFAULT: SignedDuration = SignedDuration::from_mins(1);

/// Where metrics come from.
pub(super) struct Source {
    pub(super) client: Client,
    pub(super) kinds: Kinds,
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

#[derive(Deserialize)]
struct PodMetrics {
    metadata: Named,
    timestamp: Timestamp,
    window: String,
    containers: Vec<ContainerMetrics>,
}

#[derive(Deserialize)]
struct ContainerMetrics {
    name: String,
    usage: BTreeMap<String, Quantity>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// A value of a custom or external metric.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetricValue {
    described_object: Option<Named>,
    timestamp: Option<Timestamp>,
    #[serde(alias = "window")]
    window_seconds: Option<i64>,
    value: Quantity,
}

#[derive(Deserialize)]
struct Group {
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

impl Source {
    /// What the Pods of a selector, or one container of each, use of a resource.
    pub(super) async fn resource(
        &self,
        (namespace, selector): (&str, &str),
        resource: &str,
        container: Option<&str>,
    ) -> Result<Readings, String> {
        let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods");
        let found = self.get::<List<PodMetrics>>(&path, &[("labelSelector", selector)]).await;
        let found = found.map_err(|why| format!("unable to fetch metrics from resource metrics API: {why}"))?.items;
        if found.is_empty() {
            return Err("no metrics returned from resource metrics API".to_owned());
        }
        Ok(found.into_iter().filter_map(|pod| reading(pod, resource, container)).collect())
    }

    /// What a custom metric says of the Pods of a selector.
    pub(super) async fn pods(
        &self,
        (namespace, selector): (&str, &str),
        metric: &MetricIdentifier,
    ) -> Result<Readings, String> {
        let path = format!("namespaces/{namespace}/pods/*/{}", metric.name);
        let found =
            self.custom(&path, &[("labelSelector", selector), ("metricLabelSelector", &labels(metric)?)]).await?;
        if found.is_empty() {
            return Err("no metrics returned from custom metrics API".to_owned());
        }
        let reading = |it: MetricValue| {
            let window = it.window_seconds.map_or(WINDOW_DEFAULT, SignedDuration::from_secs);
            let at = it.timestamp.unwrap_or(Timestamp::MIN);
            Some((it.described_object?.name, Reading { value: Amount::from(&it.value).millis(), at, window }))
        };
        Ok(found.into_iter().filter_map(reading).collect())
    }

    /// What a custom metric says of one object.
    pub(super) async fn object(
        &self,
        namespace: &str,
        object: &CrossVersionObjectReference,
        metric: &MetricIdentifier,
    ) -> Result<i64, String> {
        let group = group_of(object.api_version.as_deref().unwrap_or_default());
        let path = if object.kind == "Namespace" && group.is_empty() {
            format!("namespaces/{namespace}/metrics/{}", metric.name)
        } else {
            let kind = self.kinds.find(group, &object.kind);
            let kind = kind.ok_or_else(|| format!("no matches for kind {:?} in group {group:?}", object.kind))?;
            let (plural, group) = (&kind.resource.plural, &kind.resource.group);
            let resource = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
            format!("namespaces/{namespace}/{resource}/{}/{}", object.name, metric.name)
        };
        match &self.custom(&path, &[("metricLabelSelector", &labels(metric)?)]).await?[..] {
            [only] => Ok(Amount::from(&only.value).millis()),
            other => Err(format!(
                "unable to fetch metrics from custom metrics API: the custom metrics API server returned {} results \
                 when we asked for exactly one",
                other.len()
            )),
        }
    }

    /// The sum of the values of an external metric.
    pub(super) async fn external(&self, namespace: &str, metric: &MetricIdentifier) -> Result<i64, String> {
        let path = format!("{EXTERNAL}/namespaces/{namespace}/{}", metric.name);
        let found = self.get::<List<MetricValue>>(&path, &[("labelSelector", &labels(metric)?)]).await;
        let found = found.map_err(|why| format!("unable to fetch metrics from external metrics API: {why}"))?.items;
        if found.is_empty() {
            return Err("no metrics returned from external metrics API".to_owned());
        }
        Ok(found.iter().map(|it| Amount::from(&it.value).millis()).fold(0, i64::saturating_add))
    }

    async fn custom(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Vec<MetricValue>, String> {
        let fetched = async {
            let group = self.request::<Group>(&format!("/apis/{CUSTOM_GROUP}"), &[]).await;
            let group = group.map_err(|error| match is_gone(&error) {
                true => format!("no custom metrics API ({CUSTOM_GROUP}) registered"),
                false => message(&error),
            })?;
            let known = |version: &&str| group.versions.iter().any(|known| known.version == *version);
            let version = CUSTOM_VERSIONS.iter().find(|version| known(version));
            let version = version.ok_or_else(|| format!("no version of {CUSTOM_GROUP} that is understood"))?;
            self.get::<List<MetricValue>>(&format!("/apis/{CUSTOM_GROUP}/{version}/{path}"), parameters).await
        };
        let found = fetched.await.map_err(|why| format!("unable to fetch metrics from custom metrics API: {why}"))?;
        Ok(found.items)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, parameters: &[(&str, &str)]) -> Result<T, String> {
        self.request(path, parameters).await.map_err(|error| message(&error))
    }

    async fn request<T: DeserializeOwned>(&self, path: &str, parameters: &[(&str, &str)]) -> Result<T, kube::Error> {
        let given = parameters.iter().filter(|(_, value)| !value.is_empty());
        let query = given.fold(Serializer::new(String::new()), |mut query, (name, value)| {
            query.append_pair(name, value);
            query
        });
        let uri = format!("{path}?{}", { query }.finish());
        let request = http::Request::get(uri).body(vec![]).map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }
}

fn labels(metric: &MetricIdentifier) -> Result<String, String> {
    let Some(selector) = metric.selector.clone() else { return Ok(String::new()) };
    Selector::try_from(selector).map(|selector| selector.to_string()).map_err(|error| error.to_string())
}

/// What a Pod, or one container of it, uses; `None` if that is not known.
fn reading(pod: PodMetrics, resource: &str, container: Option<&str>) -> Option<(String, Reading)> {
    let wanted: Vec<&ContainerMetrics> =
        pod.containers.iter().filter(|it| container.is_none_or(|name| it.name == name)).collect();
    if wanted.is_empty() {
        return None;
    }
    let values = wanted.iter().map(|it| it.usage.get(resource).map(|quantity| Amount::from(quantity).millis()));
    let value = values.collect::<Option<Vec<i64>>>()?.into_iter().fold(0, i64::saturating_add);
    let window = SignedDuration::from_nanos(duration::nanos(&pod.window)?);
    Some((pod.metadata.name, Reading { value, at: pod.timestamp, window }))
}
