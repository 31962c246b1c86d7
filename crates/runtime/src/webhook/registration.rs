//! What tells the API server where webhooks are: configurations and definitions, as values.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use windlass_core::Chain;
use windlass_core::admission::{FailurePolicy, Hook, Operation, Task};

/// The path of conversion.
pub(super) const CONVERT_PATH: &str = "/convert";
/// The label that every namespace has its name in.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// How the API server gets to webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By a Service of the cluster, on port 443.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// By a URL such as `https://127.0.0.1:9443`: for operators that run outside of the cluster.
    Url(String),
}

impl Reach {
    /// The names that the certificate must have.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name } => {
                let short = format!("{name}.{namespace}");
                vec![format!("{short}.svc"), format!("{short}.svc.cluster.local"), short]
            }
            Self::Url(url) => {
                let host = url.strip_prefix("https://").unwrap_or(url);
                let host = host.split('/').next().unwrap_or(host);
                let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
                vec![host.trim_matches(['[', ']']).to_owned()]
            }
        }
    }

    fn client(&self, path: &str, bundle: Option<&str>) -> WebhookClientConfig {
        let mut client = WebhookClientConfig { ca_bundle: bundle.map(bytes), ..WebhookClientConfig::default() };
        match self {
            Self::Service { namespace, name } => {
                let (namespace, name) = (namespace.clone(), name.clone());
                client.service = Some(ServiceReference { namespace, name, path: Some(path.into()), port: Some(443) });
            }
            Self::Url(url) => client.url = Some(format!("{}{path}", url.trim_end_matches('/'))),
        }
        client
    }
}

/// The webhooks of an operator, as the API server is to know them.
#[derive(Clone)]
pub struct Registration {
    /// The name of the configurations: the operator's.
    pub name: String,
    /// Functions of admission.
    pub hooks: Vec<Hook>,
    /// The versions of kinds.
    pub chains: Vec<Chain>,
    /// The one namespace whose objects are looked at; all if it is not said.
    pub namespace: Option<String>,
}

impl Registration {
    /// Whether there is anything to serve.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty() && !self.chains.iter().any(Chain::converts)
    }

    /// The definitions of the kinds, with the way to their conversion.
    pub fn definitions(&self, reach: &Reach, bundle: Option<&str>) -> Vec<extensions::CustomResourceDefinition> {
        let define = |chain: &Chain| {
            let mut definition = chain.definition();
            if chain.converts() {
                definition.spec.conversion = Some(conversion(reach, bundle));
            }
            definition
        };
        self.chains.iter().map(define).collect()
    }

    /// The configuration of functions that fill in, if there are any.
    pub fn mutating(&self, reach: &Reach, bundle: Option<&str>) -> Option<MutatingWebhookConfiguration> {
        let hooks: Vec<_> =
            self.of(Task::Default).map(|hook| mutating(hook, &self.common(hook, reach, bundle))).collect();
        let metadata = self.metadata();
        (!hooks.is_empty()).then_some(MutatingWebhookConfiguration { metadata, webhooks: Some(hooks) })
    }

    /// The configuration of functions that refuse, if there are any.
    pub fn validating(&self, reach: &Reach, bundle: Option<&str>) -> Option<ValidatingWebhookConfiguration> {
        let hooks: Vec<_> =
            self.of(Task::Validate).map(|hook| validating(hook, &self.common(hook, reach, bundle))).collect();
        let metadata = self.metadata();
        (!hooks.is_empty()).then_some(ValidatingWebhookConfiguration { metadata, webhooks: Some(hooks) })
    }

    fn of(&self, task: Task) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().filter(move |hook| hook.task == task)
    }

    fn metadata(&self) -> ObjectMeta {
        ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() }
    }

    fn common(&self, hook: &Hook, reach: &Reach, bundle: Option<&str>) -> Common {
        let (client, is_namespaced) = (reach.client(&hook.path(), bundle), hook.is_namespaced);
        let selector = self.namespace.as_ref().filter(|_| is_namespaced).map(|namespace| LabelSelector {
            match_labels: Some([(NAMESPACE_NAME.to_owned(), namespace.clone())].into()),
            ..LabelSelector::default()
        });
        Common { name: name(hook), client, selector, seconds: i32::try_from(hook.timeout.as_secs().clamp(1, 30)).ok() }
    }
}

/// What the two kinds of webhooks have in common and is not in the hook itself.
struct Common {
    name: String,
    client: WebhookClientConfig,
    selector: Option<LabelSelector>,
    seconds: Option<i32>,
}

fn mutating(hook: &Hook, common: &Common) -> MutatingWebhook {
    MutatingWebhook {
        name: common.name.clone(),
        client_config: common.client.clone(),
        namespace_selector: common.selector.clone(),
        timeout_seconds: common.seconds,
        rules: Some(vec![rule(hook)]),
        failure_policy: Some(failure_policy(hook)),
        match_conditions: match_conditions(hook),
        match_policy: Some("Equivalent".into()),
        side_effects: "None".into(),
        admission_review_versions: vec!["v1".into()],
        ..MutatingWebhook::default()
    }
}

fn validating(hook: &Hook, common: &Common) -> ValidatingWebhook {
    ValidatingWebhook {
        name: common.name.clone(),
        client_config: common.client.clone(),
        namespace_selector: common.selector.clone(),
        timeout_seconds: common.seconds,
        rules: Some(vec![rule(hook)]),
        failure_policy: Some(failure_policy(hook)),
        match_conditions: match_conditions(hook),
        match_policy: Some("Equivalent".into()),
        side_effects: "None".into(),
        admission_review_versions: vec!["v1".into()],
        ..ValidatingWebhook::default()
    }
}

/// A name that no other webhook has: the task, the resource and its group.
fn name(hook: &Hook) -> String {
    let task = match hook.task {
        Task::Default => "default",
        Task::Validate if hook.operations == [Operation::Delete] => "validate-deletion",
        Task::Validate => "validate",
    };
    let group = if hook.resource.group.is_empty() { "core" } else { &hook.resource.group };
    format!("{task}.{}.{group}", hook.resource.plural)
}

fn rule(hook: &Hook) -> RuleWithOperations {
    RuleWithOperations {
        api_groups: Some(vec![hook.resource.group.clone()]),
        api_versions: Some(vec![hook.resource.version.clone()]),
        resources: Some(vec![hook.resource.plural.clone()]),
        operations: Some(hook.operations.iter().map(|operation| operation.as_str().to_owned()).collect()),
        scope: Some(if hook.is_namespaced { "Namespaced" } else { "Cluster" }.into()),
    }
}

fn failure_policy(hook: &Hook) -> String {
    match hook.failure_policy {
        FailurePolicy::Fail => "Fail".into(),
        FailurePolicy::Ignore => "Ignore".into(),
    }
}

fn match_conditions(hook: &Hook) -> Option<Vec<MatchCondition>> {
    let condition =
        |(name, expression): &(String, String)| MatchCondition { name: name.clone(), expression: expression.clone() };
    (!hook.match_conditions.is_empty()).then(|| hook.match_conditions.iter().map(condition).collect())
}

fn conversion(reach: &Reach, bundle: Option<&str>) -> extensions::CustomResourceConversion {
    let client = reach.client(CONVERT_PATH, bundle);
    let service = client.service.map(|service| extensions::ServiceReference {
        name: service.name,
        namespace: service.namespace,
        path: service.path,
        port: service.port,
    });
    extensions::CustomResourceConversion {
        strategy: "Webhook".into(),
        webhook: Some(extensions::WebhookConversion {
            client_config: Some(extensions::WebhookClientConfig {
                ca_bundle: client.ca_bundle,
                service,
                url: client.url,
            }),
            conversion_review_versions: vec!["v1".into()],
        }),
    }
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_is_for_what_callers_call() {
        let names = |reach: Reach| reach.names().join(" ");
        let service = Reach::Service { namespace: "n".into(), name: "s".into() };
        assert_eq!(names(service), "s.n.svc s.n.svc.cluster.local s.n");
        assert_eq!(names(Reach::Url("https://127.0.0.1:9443".into())), "127.0.0.1");
        assert_eq!(names(Reach::Url("https://[::1]:9443/x".into())), "::1");
        assert_eq!(names(Reach::Url("https://me.example".into())), "me.example");
    }
}
