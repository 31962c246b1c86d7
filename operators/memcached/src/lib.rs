//! Keeps memcached clusters running: one Deployment and one Service per resource.

mod upgrade;

use std::collections::BTreeMap;

use windlass::prelude::*;
use windlass::{App, names};

const PORT: i32 = 11211;
const DEFAULT_IMAGE: &str = "memcached:1.6";

/// A memcached cluster.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "cache.example.com", version = "v1alpha1", kind = "Memcached", status = MemcachedStatus)]
#[resource(short = "mc", category = "all", scale(".spec.size", ".status.replicas", ".status.selector"))]
#[resource(column("Size", path = ".spec.size", type = "integer"), column("Ready", condition = "Ready"))]
#[resource(column("Status", path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1))]
pub struct MemcachedSpec {
    /// How many memcached processes to run.
    #[schema(min = 1, max = 16, default = 1)]
    pub size: u32,
    /// The image to run; memcached:1.6 if it is not said.
    #[schema(min_length = 1, max_length = 255, cel("!self.contains(' ')", message = "an image has no spaces"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Further arguments of memcached, such as -m and 128.
    #[schema(max_items = 32)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
}

/// What is known of a memcached cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default)]
pub struct MemcachedStatus {
    /// The names of the Pods.
    pub nodes: Vec<String>,
    /// How many Pods there are.
    pub replicas: u32,
    /// The label selector of the Pods, for autoscalers.
    pub selector: String,
}

/// From a [`Memcached`] to its Deployment and Service.
pub struct MemcachedOperator;

/// The operator as a program.
pub fn app() -> App<MemcachedOperator> {
    let judge = Hook::validate(judge).ignoring_failure();
    windlass::operator(MemcachedOperator)
        .version(env!("CARGO_PKG_VERSION"))
        .owns::<Deployment>()
        .owns::<Service>()
        .pods()
        .upgrades()
        .webhook(judge)
}

/// Warns of images that may become others while a cluster runs.
fn judge(memcached: &Memcached, _: &Request<Memcached>) -> Verdict {
    let image = image(memcached);
    let (_, name) = image.rsplit_once('/').unwrap_or(("", &image));
    let is_fixed = name.contains(['@', ':']) && !name.ends_with(":latest");
    Verdict::allow().warn_if(!is_fixed, format!("{image} may become another image: name a version"))
}

impl Operator for MemcachedOperator {
    type Resource = Memcached;

    fn desired(&self, memcached: &Memcached, world: &World) -> Outcome<MemcachedStatus> {
        let pods = world.pods_of(memcached).active();
        let size = memcached.spec.size;
        Desired::new()
            .child(deployment(memcached))
            .child(service(memcached))
            .status(MemcachedStatus { nodes: pods.names(), replicas: pods.count(), selector: selector(memcached) })
            .progress(format!("{} of {size} Pods are ready", pods.ready()))
            .ready_when(pods.ready() == size && pods.count() == size)
    }
}

fn deployment(memcached: &Memcached) -> Deployment {
    let container = Container {
        name: "memcached".into(),
        image: Some(image(memcached)),
        args: Some(memcached.spec.arguments.clone()).filter(|arguments| !arguments.is_empty()),
        ports: Some(vec![ContainerPort {
            name: Some("memcached".into()),
            container_port: PORT,
            ..ContainerPort::default()
        }]),
        readiness_probe: Some(Probe {
            tcp_socket: Some(TCPSocketAction { port: IntOrString::Int(PORT), host: None }),
            initial_delay_seconds: Some(1), // It listens at once, but not before it runs.
            period_seconds: Some(2),
            ..Probe::default()
        }),
        ..Container::default()
    };
    let spec = DeploymentSpec {
        replicas: i32::try_from(memcached.spec.size).ok(),
        selector: LabelSelector { match_labels: Some(labels(memcached)), ..LabelSelector::default() },
        template: PodTemplateSpec {
            metadata: Some(ObjectMeta { labels: Some(labels(memcached)), ..ObjectMeta::default() }),
            spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
        },
        ..DeploymentSpec::default()
    };
    Deployment { metadata: metadata(memcached), spec: Some(spec), ..Deployment::default() }
}

fn image(memcached: &Memcached) -> String {
    memcached.spec.image.clone().unwrap_or_else(|| DEFAULT_IMAGE.into())
}

/// Headless: a client of memcached spreads its keys over all nodes, so it has to see each of them.
fn service(memcached: &Memcached) -> Service {
    let port = ServicePort { name: Some("memcached".into()), port: PORT, ..ServicePort::default() };
    let spec = ServiceSpec {
        cluster_ip: Some("None".into()),
        selector: Some(labels(memcached)),
        ports: Some(vec![port]),
        ..ServiceSpec::default()
    };
    Service { metadata: metadata(memcached), spec: Some(spec), ..Service::default() }
}

fn metadata(memcached: &Memcached) -> ObjectMeta {
    ObjectMeta { labels: Some(labels(memcached)), ..named(memcached.name_any()) }
}

fn labels(memcached: &Memcached) -> BTreeMap<String, String> {
    BTreeMap::from([
        (names::APP_NAME.to_owned(), "memcached".to_owned()),
        (names::APP_INSTANCE.to_owned(), memcached.name_any()),
    ])
}

fn selector(memcached: &Memcached) -> String {
    labels(memcached).iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use windlass::k8s_openapi::api::core::v1::{PodCondition, PodStatus};
    use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use super::*;

    fn memcached(size: u32, image: Option<&str>) -> Memcached {
        let mut memcached =
            Memcached::new("cache", MemcachedSpec { size, image: image.map(Into::into), arguments: Vec::new() });
        memcached.metadata.uid = Some("owner".into());
        memcached
    }

    fn pod(name: &str, ready: bool) -> Pod {
        let owner = OwnerReference { uid: "owner".into(), ..OwnerReference::default() };
        let metadata = ObjectMeta { uid: Some(name.into()), owner_references: Some(vec![owner]), ..named(name) };
        let status = if ready { "True" } else { "False" };
        let condition = PodCondition { type_: "Ready".into(), status: status.into(), ..PodCondition::default() };
        let status = PodStatus { conditions: Some(vec![condition]), ..PodStatus::default() };
        Pod { metadata, status: Some(status), ..Pod::default() }
    }

    fn check(size: u32, pods: &[(&str, bool)], ready: bool, nodes: &[&str]) {
        let world = pods.iter().fold(World::new(), |world, (name, ready)| world.with(pod(name, *ready)));
        let outcome = MemcachedOperator.desired(&memcached(size, None), &world);
        assert_eq!(matches!(outcome, Outcome::Settled(_)), ready, "{size} {pods:?}");
        let status = outcome.desired().and_then(|desired| desired.status.clone()).unwrap();
        assert_eq!(status.nodes, nodes);
        assert_eq!(status.replicas as usize, pods.len());
    }

    #[test]
    fn the_cluster_is_ready_when_all_its_pods_are_and_no_more() {
        check(1, &[], false, &[]);
        check(1, &[("a", false)], false, &["a"]);
        check(1, &[("a", true)], true, &["a"]);
        check(2, &[("b", true), ("a", true)], true, &["a", "b"]);
        check(1, &[("a", true), ("b", true)], false, &["a", "b"]);
    }

    #[test]
    fn only_images_without_a_version_are_warned_of() {
        let rows = [
            (None, false),
            (Some("r:5000/m"), true),
            (Some("m:latest"), true),
            (Some("r/m:1"), false),
            (Some("m@sha256:0"), false),
        ];
        for (image, is_warned) in rows {
            let request = Request {
                operation: Operation::Create,
                old: None,
                user: Default::default(),
                dry_run: false,
                namespace: None,
                name: "cache".into(),
            };
            let verdict = judge(&memcached(1, image), &request);
            assert_eq!((verdict.is_allowed(), verdict.warnings().is_empty()), (true, !is_warned), "{image:?}");
        }
    }

    #[test]
    fn the_deployment_follows_the_spec() {
        let rows = [(3, None, "memcached:1.6"), (5, Some("memcached:1.7"), "memcached:1.7")];
        for (size, image, expected) in rows {
            let spec = deployment(&memcached(size, image)).spec.unwrap();
            assert_eq!(spec.replicas, Some(size.cast_signed()));
            assert_eq!(spec.template.spec.unwrap().containers[0].image.as_deref(), Some(expected));
        }
    }

    #[test]
    fn the_service_selects_the_pods_of_the_deployment() {
        let memcached = memcached(1, None);
        let template = deployment(&memcached).spec.unwrap().template;
        assert_eq!(service(&memcached).spec.unwrap().selector, template.metadata.unwrap().labels);
    }
}
