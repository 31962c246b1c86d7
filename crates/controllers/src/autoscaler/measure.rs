//! What each metric of an autoscaler asks for.

use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, ExternalMetricSource, ExternalMetricStatus, MetricSpec, MetricStatus, MetricTarget,
    MetricValueStatus, ObjectMetricSource, ObjectMetricStatus, PodsMetricStatus, ResourceMetricStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use windlass_schema::quantity::canonical;

use super::pods::requests;
use super::replicas::{Goal, Proposal, Sight, of_pods, of_share, of_value};
use super::source::Source;
use crate::quantity::Amount;

/// A metric that could be read.
pub(super) struct Measured {
    pub(super) replicas: i32,
    /// What it is called in messages.
    pub(super) name: String,
    pub(super) status: MetricStatus,
}

/// A metric that could not be read.
#[derive(Debug)]
pub(super) struct Unmeasured {
    /// The reason of the event and of the condition.
    pub(super) reason: &'static str,
    /// Which metric it is.
    pub(super) what: String,
    pub(super) why: String,
}

/// Where the Pods of the target are: namespace and selector.
pub(super) type Place<'a> = (&'a str, &'a str);

/// Reads one metric.
pub(super) async fn measure(
    source: &Source,
    sight: &Sight<'_>,
    place: Place<'_>,
    spec: &MetricSpec,
) -> Result<Measured, Unmeasured> {
    let (reason, what, outcome) = if let Some(resource) = &spec.resource {
        let outcome = of_resource(source, sight, place, (&resource.name, None), &resource.target).await;
        let status = |current| MetricStatus {
            resource: Some(ResourceMetricStatus { name: resource.name.clone(), current }),
            ..status(spec)
        };
        let outcome = outcome.map(|(proposal, name, current)| (proposal, name, status(current)));
        ("FailedGetResourceMetric", format!("{} resource metric value", resource.name), outcome)
    } else if let Some(it) = &spec.container_resource {
        let outcome = of_resource(source, sight, place, (&it.name, Some(&it.container)), &it.target).await;
        let status = |current| MetricStatus {
            container_resource: Some(ContainerResourceMetricStatus {
                name: it.name.clone(),
                container: it.container.clone(),
                current,
            }),
            ..status(spec)
        };
        let outcome = outcome.map(|(proposal, name, current)| (proposal, name, status(current)));
        ("FailedGetContainerResourceMetric", format!("{} container metric value", it.container), outcome)
    } else if spec.pods.is_some() {
        ("FailedGetPodsMetric", "pods metric value".to_owned(), of_pods_metric(source, sight, place, spec).await)
    } else if let Some(object) = &spec.object {
        let outcome = of_object(source, sight, place.0, object).await;
        ("FailedGetObjectMetric", "object metric value".to_owned(), outcome.map(|made| with_type(made, spec)))
    } else if let Some(external) = &spec.external {
        let outcome = of_external(source, sight, place.0, external).await;
        let what = format!("{} external metric value", external.metric.name);
        ("FailedGetExternalMetric", what, outcome.map(|made| with_type(made, spec)))
    } else {
        let why = format!("unknown metric source type {:?}", spec.type_);
        ("InvalidMetricSourceType", "metric value".to_owned(), Err(why))
    };
    outcome
        .map(|(proposal, name, status)| Measured { replicas: proposal.replicas, name, status })
        .map_err(|why| Unmeasured { reason, what, why })
}

/// The status of a metric without its value.
pub(super) fn status(spec: &MetricSpec) -> MetricStatus {
    MetricStatus { type_: spec.type_.clone(), ..MetricStatus::default() }
}

type Outcome<T> = Result<(Proposal, String, T), String>;

fn with_type(
    (proposal, name, status): (Proposal, String, MetricStatus),
    spec: &MetricSpec,
) -> (Proposal, String, MetricStatus) {
    (proposal, name, MetricStatus { type_: spec.type_.clone(), ..status })
}

async fn of_resource(
    source: &Source,
    sight: &Sight<'_>,
    place: Place<'_>,
    (resource, container): (&str, Option<&str>),
    target: &MetricTarget,
) -> Outcome<MetricValueStatus> {
    let word = if target.average_value.is_some() { "usage" } else { "utilization" };
    let failed = |why: String| format!("failed to get {resource} {word}: {why}");
    let read = async || {
        let readings = source.resource(place, resource, container).await;
        readings.map_err(|why| format!("unable to get metrics for resource {resource}: {why}")).map_err(failed)
    };
    if let Some(average) = &target.average_value {
        let goal = Goal::Average(Amount::from(average).millis());
        let proposal = of_pods(sight, goal, read().await?, Some(resource)).map_err(failed)?;
        let current = MetricValueStatus { average_value: Some(used(resource, proposal.value)), ..Default::default() };
        return Ok((proposal, format!("{resource} resource"), current));
    }
    let Some(percent) = target.average_utilization else {
        return Err("invalid resource metric source: neither an average utilization target nor an average value \
                    (usage) target was set"
            .to_owned());
    };
    let readings = read().await?;
    let requests = requests(sight.pods, container, resource).map_err(failed)?;
    let proposal = of_pods(sight, Goal::Utilization(percent, &requests), readings, Some(resource)).map_err(failed)?;
    let current = MetricValueStatus {
        average_utilization: proposal.utilization,
        average_value: Some(used(resource, proposal.value)),
        value: None,
    };
    let of_container = if container.is_some() { "container " } else { "" };
    Ok((proposal, format!("{resource} {of_container}resource utilization (percentage of request)"), current))
}

async fn of_pods_metric(
    source: &Source,
    sight: &Sight<'_>,
    place: Place<'_>,
    spec: &MetricSpec,
) -> Outcome<MetricStatus> {
    let pods = spec.pods.as_ref().ok_or("no pods metric")?;
    let name = &pods.metric.name;
    let target = pods.target.average_value.as_ref().ok_or("invalid pods metric source: no average value was set")?;
    let readings = source.pods(place, &pods.metric).await;
    let readings = readings.map_err(|why| format!("unable to get metric {name}: {why}"))?;
    let proposal = of_pods(sight, Goal::Average(Amount::from(target).millis()), readings, None)?;
    let current = MetricValueStatus { average_value: Some(plain(proposal.value)), ..Default::default() };
    let known = PodsMetricStatus { metric: pods.metric.clone(), current };
    Ok((proposal, format!("pods metric {name}"), MetricStatus { pods: Some(known), ..status(spec) }))
}

async fn of_object(
    source: &Source,
    sight: &Sight<'_>,
    namespace: &str,
    object: &ObjectMetricSource,
) -> Outcome<MetricStatus> {
    let (described, name) = (&object.described_object, &object.metric.name);
    let read = async || {
        source.object(namespace, described, &object.metric).await.map_err(|why| {
            format!("unable to get metric {name}: {} on {namespace} {}/{why}", described.kind, described.name)
        })
    };
    let (proposal, shown, current) = match (&object.target.value, &object.target.average_value) {
        (Some(value), _) => {
            let proposal = of_value(sight, read().await?, Amount::from(value).millis())?;
            let current = MetricValueStatus { value: Some(plain(proposal.value)), ..Default::default() };
            (proposal, format!("{} metric {name}", described.kind), current)
        }
        (None, Some(average)) => {
            let usage = read().await.map_err(|why| format!("failed to get {name} object metric: {why}"))?;
            let proposal = of_share(sight, usage, Amount::from(average).millis());
            let current = MetricValueStatus { average_value: Some(plain(proposal.value)), ..Default::default() };
            (proposal, format!("external metric {name}"), current)
        }
        (None, None) => {
            let why = "invalid object metric source: neither a value target nor an average value target was set";
            return Err(why.to_owned());
        }
    };
    let known = ObjectMetricStatus { current, described_object: described.clone(), metric: object.metric.clone() };
    Ok((proposal, shown, MetricStatus { object: Some(known), ..MetricStatus::default() }))
}

async fn of_external(
    source: &Source,
    sight: &Sight<'_>,
    namespace: &str,
    external: &ExternalMetricSource,
) -> Outcome<MetricStatus> {
    let name = &external.metric.name;
    let read = async || {
        let failed = |why| {
            format!("failed to get {name} external metric: unable to get external metric {namespace}/{name}: {why}")
        };
        source.external(namespace, &external.metric).await.map_err(failed)
    };
    let (proposal, current) = match (&external.target.average_value, &external.target.value) {
        (Some(average), _) => {
            let proposal = of_share(sight, read().await?, Amount::from(average).millis());
            (proposal, MetricValueStatus { average_value: Some(plain(proposal.value)), ..Default::default() })
        }
        (None, Some(value)) => {
            let proposal = of_value(sight, read().await?, Amount::from(value).millis())?;
            (proposal, MetricValueStatus { value: Some(plain(proposal.value)), ..Default::default() })
        }
        (None, None) => {
            let why = "invalid external metric source: neither a value target nor an average value target was set";
            return Err(why.to_owned());
        }
    };
    let known = ExternalMetricStatus { current, metric: external.metric.clone() };
    Ok((proposal, format!("external metric {name}"), MetricStatus { external: Some(known), ..MetricStatus::default() }))
}

/// A number of thousandths of a resource, in the form that people know of it.
fn used(resource: &str, millis: i64) -> Quantity {
    let binary = resource == "memory" && millis % 1_024_000 == 0;
    if binary { written(&format!("{}Ki", millis / 1_024_000)) } else { plain(millis) }
}

fn plain(millis: i64) -> Quantity {
    written(&format!("{millis}m"))
}

fn written(text: &str) -> Quantity {
    Quantity(canonical(text).unwrap_or_else(|| text.to_owned()))
}
