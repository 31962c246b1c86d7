//! Roles: of the operator, and of people for its kinds.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use windlass_runtime::tap::Right;

use super::{Extra, Maker, ManifestOptions, labels, value};
use crate::rbac::{Need, Part, Scope, rules};

/// The name of the roles of a part.
pub(crate) fn role_name(operator: &str, part: Part) -> String {
    match part {
        Part::Work => operator.to_owned(),
        Part::Lead => format!("{operator}-leader"),
        Part::Webhooks => format!("{operator}-webhooks"),
    }
}

/// Roles and bindings that grant `needs`: in each served namespace if these are named, else in the cluster.
pub(crate) fn roles(operator: &str, options: &ManifestOptions, needs: &[Need]) -> Vec<Value> {
    let mut all = Vec::new();
    for part in [Part::Work, Part::Lead, Part::Webhooks] {
        let of = |scope: Scope| {
            let is_it = move |need: &&Need| need.part == part && need.scope == scope;
            rules(needs.iter().filter(is_it))
        };
        let maker = RoleMaker { operator, options, name: role_name(operator, part) };
        let (served, mut cluster) = (of(Scope::Served), of(Scope::Cluster));
        if options.watch_namespaces.is_empty() {
            cluster.splice(..0, served);
        } else {
            let namespaces = options.watch_namespaces.iter().filter(|_| !served.is_empty());
            all.extend(namespaces.flat_map(|namespace| maker.role(namespace, served.clone())));
        }
        if !cluster.is_empty() {
            all.extend(maker.cluster_role(cluster));
        }
        let own = of(Scope::Own);
        if !own.is_empty() {
            all.extend(maker.role(&options.namespace, own));
        }
    }
    merge_same(all)
}

/// What is needed in the operator's own namespace and in a served one may be in two roles of one name: they become one.
fn merge_same(objects: Vec<Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for mut object in objects {
        let same =
            merged.iter_mut().find(|known| known["kind"] == object["kind"] && known["metadata"] == object["metadata"]);
        match same {
            Some(known) => {
                let more = object.get_mut("rules").and_then(Value::as_array_mut).map(std::mem::take);
                if let Some(rules) = known.get_mut("rules").and_then(Value::as_array_mut) {
                    rules.extend(more.unwrap_or_default());
                }
            }
            None => merged.push(object),
        }
    }
    merged
}

struct RoleMaker<'a> {
    operator: &'a str,
    options: &'a ManifestOptions,
    name: String,
}

impl RoleMaker<'_> {
    fn cluster_role(&self, rules: Vec<PolicyRule>) -> [Value; 2] {
        let metadata = self.metadata(None);
        let role = ClusterRole { metadata: metadata.clone(), rules: Some(rules), ..ClusterRole::default() };
        let binding = ClusterRoleBinding {
            metadata,
            role_ref: self.reference("ClusterRole"),
            subjects: Some(vec![self.subject()]),
        };
        [value(&role), value(&binding)]
    }

    fn role(&self, namespace: &str, rules: Vec<PolicyRule>) -> [Value; 2] {
        let metadata = self.metadata(Some(namespace));
        let role = Role { metadata: metadata.clone(), rules: Some(rules) };
        let (role_ref, subjects) = (self.reference("Role"), Some(vec![self.subject()]));
        [value(&role), value(&RoleBinding { metadata, role_ref, subjects })]
    }

    fn metadata(&self, namespace: Option<&str>) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name.clone()),
            namespace: namespace.map(Into::into),
            labels: Some(labels(self.operator, self.options)),
            ..ObjectMeta::default()
        }
    }

    fn reference(&self, kind: &str) -> RoleRef {
        let group = "rbac.authorization.k8s.io".to_owned();
        RoleRef { api_group: Some(group), kind: kind.to_owned(), name: self.name.clone() }
    }

    fn subject(&self) -> Subject {
        Subject {
            kind: "ServiceAccount".into(),
            name: self.operator.to_owned(),
            namespace: Some(self.options.namespace.clone()),
            api_group: None,
        }
    }
}

impl Maker<'_> {
    /// For each kind a role to view and one to edit, which the cluster adds to its own roles of these names.
    pub(super) fn kind_roles(&self) -> Vec<Value> {
        if !self.has(Extra::KindRoles) {
            return Vec::new();
        }
        let chains = &self.registration.chains;
        chains.iter().flat_map(|chain| self.roles_of_kind(&chain.definition())).collect()
    }

    fn roles_of_kind(&self, definition: &CustomResourceDefinition) -> [Value; 2] {
        let (group, plural) = (&definition.spec.group, &definition.spec.names.plural);
        let has_scale = definition
            .spec
            .versions
            .iter()
            .any(|version| version.subresources.as_ref().is_some_and(|subresources| subresources.scale.is_some()));
        let need = |resource: String, verb: &&str| {
            Need::new(Right::new(group.clone(), resource, *verb), Scope::Cluster, "people ask for it")
        };
        let scale = has_scale.then(|| format!("{plural}/scale"));
        let read = ["get", "list", "watch"];
        let mut view: Vec<Need> = read.iter().map(|verb| need(plural.clone(), verb)).collect();
        view.push(need(format!("{plural}/status"), &"get"));
        view.extend(scale.iter().map(|scale| need(scale.clone(), &"get")));
        let write = ["create", "update", "patch", "delete", "deletecollection"];
        let mut edit: Vec<Need> = write.iter().map(|verb| need(plural.clone(), verb)).collect();
        edit.extend(scale.iter().flat_map(|scale| ["update", "patch"].map(|verb| need(scale.clone(), &verb))));
        [("view", "viewer", view), ("edit", "editor", edit)].map(|(to, suffix, needs)| {
            let mut metadata = self.meta_of(format!("{}-{plural}-{suffix}", self.name), None);
            let label = format!("rbac.authorization.k8s.io/aggregate-to-{to}");
            metadata.labels.get_or_insert_default().insert(label, "true".to_owned());
            value(&ClusterRole { metadata, rules: Some(rules(&needs)), ..ClusterRole::default() })
        })
    }
}
