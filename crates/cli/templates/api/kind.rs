//! {{Kind}}: copies of one program, kept running by a Deployment.

{{#conversion}}
pub mod {{older}};

{{/conversion}}
use std::collections::BTreeMap;

use windlass::prelude::*;
use windlass::{App, names};

{{#conversion}}
/// What ran before the image could be chosen.
const DEFAULT_IMAGE: &str = "memcached:1.6";

{{/conversion}}
/// Copies of one program, kept running.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "{{group}}", version = "{{version}}", kind = "{{Kind}}", status = {{Kind}}Status)]
#[resource(column("Replicas", path = ".spec.replicas", type = "integer"))]
#[resource(column("Ready", condition = "Ready"))]
pub struct {{Kind}}Spec {
    /// How many copies run.
    #[schema(max = 100, default = 1)]
    pub replicas: u32,
    /// The image to run.
    #[schema(min_length = 1, max_length = 255)]
    pub image: String,
}

/// What is known of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default)]
pub struct {{Kind}}Status {
    /// How many copies are ready.
    pub ready: u32,
}

/// From a [`{{Kind}}`] to what it consists of.
pub struct {{Kind}}Operator;

/// The operator and the kinds that it makes: watches, caches and permissions follow from these lines.
pub fn app() -> App<{{Kind}}Operator> {
    windlass::operator({{Kind}}Operator)
        .owns::<Deployment>()
        .pods()
{{#webhook}}
        .validating(judge)
{{/webhook}}
{{#conversion}}
        .versions(&{{older}}::versions())
{{/conversion}}
}

impl Operator for {{Kind}}Operator {
    type Resource = {{Kind}};

    /// What should be, from what is wanted and what there is. It does nothing itself: the runtime acts on the answer.
    fn desired(&self, {{kind}}: &{{Kind}}, world: &World) -> Outcome<{{Kind}}Status> {
        let pods = world.pods_of({{kind}}).active();
        let wanted = {{kind}}.spec.replicas;
        Desired::new()
            .child(deployment({{kind}}))
            .status({{Kind}}Status { ready: pods.ready() })
            .progress(format!("{} of {wanted} Pods are ready", pods.ready()))
            .ready_when(pods.ready() == wanted && pods.count() == wanted)
    }
}

fn deployment({{kind}}: &{{Kind}}) -> Deployment {
    let labels = labels({{kind}});
    let container = Container {
        name: "{{kebab}}".into(),
        image: Some({{kind}}.spec.image.clone()),
        ..Container::default()
    };
    let spec = DeploymentSpec {
        replicas: i32::try_from({{kind}}.spec.replicas).ok(),
        selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
        template: PodTemplateSpec {
            metadata: Some(ObjectMeta { labels: Some(labels.clone()), ..ObjectMeta::default() }),
            spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
        },
        ..DeploymentSpec::default()
    };
    let metadata = ObjectMeta { labels: Some(labels), ..named({{kind}}.name_any()) };
    Deployment { metadata, spec: Some(spec), ..Deployment::default() }
}

fn labels({{kind}}: &{{Kind}}) -> BTreeMap<String, String> {
    BTreeMap::from([
        (names::APP_NAME.to_owned(), "{{kebab}}".to_owned()),
        (names::APP_INSTANCE.to_owned(), {{kind}}.name_any()),
    ])
}
{{#webhook}}

/// The API server asks this before it stores a new or changed {{Kind}}.
fn judge({{kind}}: &{{Kind}}, _: &Request<{{Kind}}>) -> Verdict {
    let image = &{{kind}}.spec.image;
    let (_, name) = image.rsplit_once('/').unwrap_or(("", image));
    Verdict::allow()
        .invalid_if(!name.contains([':', '@']), "spec.image", "name a version, as in memcached:1.6")
        .warn_if({{kind}}.spec.replicas == 0, "nothing runs with 0 replicas")
}
{{/webhook}}

#[cfg(test)]
mod tests {
    use windlass::k8s_openapi::api::core::v1::{PodCondition, PodStatus};
    use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use super::*;

    fn {{kind}}(replicas: u32, image: &str) -> {{Kind}} {
        let mut {{kind}} = {{Kind}}::new("sample", {{Kind}}Spec { replicas, image: image.into() });
        {{kind}}.metadata.uid = Some("owner".into());
        {{kind}}
    }

    fn pod(name: &str, ready: bool) -> Pod {
        let owner = OwnerReference { uid: "owner".into(), ..OwnerReference::default() };
        let metadata = ObjectMeta { uid: Some(name.into()), owner_references: Some(vec![owner]), ..named(name) };
        let status = if ready { "True" } else { "False" };
        let condition = PodCondition { type_: "Ready".into(), status: status.into(), ..PodCondition::default() };
        let status = PodStatus { conditions: Some(vec![condition]), ..PodStatus::default() };
        Pod { metadata, status: Some(status), ..Pod::default() }
    }

    #[test]
    fn it_is_ready_when_all_its_pods_are_and_no_more() {
        let rows: [(u32, &[bool], bool); 5] = [
            (0, &[], true),
            (1, &[], false),
            (2, &[true, false], false),
            (2, &[true, true], true),
            (1, &[true, true], false),
        ];
        for (replicas, pods, expected) in rows {
            let mut world = World::new();
            for (number, ready) in pods.iter().enumerate() {
                world = world.with(pod(&number.to_string(), *ready));
            }
            let outcome = {{Kind}}Operator.desired(&{{kind}}(replicas, "memcached:1.6"), &world);
            assert_eq!(matches!(outcome, Outcome::Settled(_)), expected, "{replicas} {pods:?}");
        }
    }

    #[test]
    fn the_deployment_follows_the_spec() {
        let spec = deployment(&{{kind}}(3, "memcached:1.6")).spec.unwrap();
        assert_eq!(spec.replicas, Some(3));
        assert_eq!(spec.template.spec.unwrap().containers[0].image.as_deref(), Some("memcached:1.6"));
    }
{{#webhook}}

    #[test]
    fn images_without_a_version_are_refused() {
        let request = Request {
            operation: Operation::Create,
            old: None,
            user: Default::default(),
            dry_run: false,
            namespace: None,
            name: "sample".into(),
        };
        let rows = [("memcached:1.6", true), ("registry:5000/memcached", false), ("memcached@sha256:0", true), ("memcached", false)];
        for (image, is_allowed) in rows {
            let verdict = judge(&{{kind}}(1, image), &request);
            assert_eq!(verdict.is_allowed(), is_allowed, "{image}");
        }
    }
{{/webhook}}
}
