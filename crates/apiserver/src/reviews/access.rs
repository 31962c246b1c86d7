//! May someone do something, and what may they do at all?

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::auth::rbac::Rule;
use crate::auth::{Attributes, Auth, Target, User};
use crate::{ApiError, Cause, Subject};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AccessSpec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<NonResourceAttributes>,
    user: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResourceAttributes {
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NonResourceAttributes {
    verb: String,
    path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RulesSpec {
    namespace: String,
}

impl AccessSpec {
    fn attributes(&self, kind: &str) -> Result<Attributes<'_>, ApiError> {
        match (&self.resource_attributes, &self.non_resource_attributes) {
            (Some(wanted), None) => {
                let ResourceAttributes { verb, group, resource, subresource, namespace, name } = wanted;
                Ok(Attributes { verb, target: Target::Resource { group, resource, subresource, namespace, name } })
            }
            (None, Some(wanted)) => Ok(Attributes::path(&wanted.verb, &wanted.path)),
            _ => Err(invalid(
                kind,
                "spec.resourceAttributes",
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            )),
        }
    }

    fn subject(&self, kind: &str) -> Result<User, ApiError> {
        let groups = self.groups.clone().unwrap_or_default();
        if self.user.is_empty() && groups.is_empty() {
            return Err(invalid(kind, "spec.user", "at least one of user or group must be specified"));
        }
        let extra = self.extra.clone().unwrap_or_default();
        Ok(User { name: self.user.clone(), uid: self.uid.clone(), groups, extra })
    }
}

/// The rights of whoever asks.
pub(super) fn own(auth: &Auth, user: &User, spec: &AccessSpec) -> Result<Value, ApiError> {
    Ok(decision(auth, user, &spec.attributes("SelfSubjectAccessReview")?))
}

/// The rights of someone else.
pub(super) fn of_subject(auth: &Auth, spec: &AccessSpec, kind: &str) -> Result<Value, ApiError> {
    Ok(decision(auth, &spec.subject(kind)?, &spec.attributes(kind)?))
}

/// The rights of someone else in one namespace.
pub(super) fn in_namespace(auth: &Auth, spec: &AccessSpec, namespace: &str) -> Result<Value, ApiError> {
    const KIND: &str = "LocalSubjectAccessReview";
    match &spec.resource_attributes {
        Some(wanted) if wanted.namespace != namespace => {
            Err(invalid(KIND, "spec.resourceAttributes.namespace", "must match metadata.namespace"))
        }
        None => {
            Err(invalid(KIND, "spec.resourceAttributes", "resourceAttributes must be specified in a namespaced review"))
        }
        Some(_) => of_subject(auth, spec, KIND),
    }
}

/// All rights of whoever asks.
pub(super) fn rules(auth: &Auth, user: &User, spec: &RulesSpec) -> Result<Value, ApiError> {
    if spec.namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let mut rules: Vec<Rule> =
        auth.authorizer().ask(|policy| policy.rules_of(user, &spec.namespace).cloned().collect());
    rules.sort();
    rules.dedup();
    let (paths, resources): (Vec<&Rule>, Vec<&Rule>) = rules.iter().partition(|rule| rule.resources.is_empty());
    Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
}

fn decision(auth: &Auth, user: &User, attributes: &Attributes<'_>) -> Value {
    json!({"allowed": auth.authorizer().allows(user, attributes)})
}

fn invalid(kind: &str, field: &str, message: &str) -> ApiError {
    let cause = Cause {
        reason: "FieldValueInvalid".to_owned(),
        message: format!("Invalid value: {message}"),
        field: Some(field.to_owned()),
    };
    ApiError::invalid(Subject { group: "authorization.k8s.io", resource: kind }, "", vec![cause])
}
