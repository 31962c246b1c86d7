//! What a cluster needs to run an operator, as values.

pub(crate) mod command;
mod helm;
mod kustomize;
mod network;
mod options;
mod output;
mod roles;
mod workload;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;
use windlass_core::names;
use windlass_runtime::webhook::{Reach, Registration};

pub use options::{Extra, ManifestOptions};

pub(crate) use output::{File, OutputError, yaml};
pub(crate) use roles::{role_name, roles};

use crate::app::Program;
use crate::rbac::{self, Need};

/// The label that says what Pods a namespace takes.
const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";

/// The name of the Service by which the API server comes to the webhooks of an operator.
pub(crate) fn service_name(operator: &str) -> String {
    format!("{operator}-webhook")
}

/// Namespace, definitions, permissions, Deployment, network and webhooks, in the order in which to apply them.
pub(crate) fn all(program: &dyn Program, options: &ManifestOptions) -> Vec<Value> {
    let maker = Maker::new(program, options);
    let mut all = vec![value(&maker.namespace())];
    all.extend(maker.definitions());
    all.push(value(&maker.account()));
    all.extend(permissions(program, options));
    all.extend(maker.kind_roles());
    all.push(value(&maker.deployment()));
    all.extend(maker.disruption_budget().iter().map(value));
    all.extend(maker.network());
    all.extend(maker.webhooks());
    all
}

/// What a cluster needs for an operator that runs outside of it: definitions, an account and its permissions, and a place
/// for the keys of webhooks. The operator itself says where its webhooks are (`run --webhooks=local`).
pub(crate) fn visiting(program: &dyn Program, options: &ManifestOptions) -> Vec<Value> {
    let maker = Maker::new(program, options);
    let mut needs = needs(program, options);
    needs.extend(rbac::visit(&maker.registration));
    let mut all = vec![value(&maker.namespace())];
    all.extend(maker.registration.chains.iter().map(|chain| value(&chain.definition())));
    all.push(value(&maker.account()));
    all.extend(roles(program.name(), options, &needs));
    if !maker.registration.is_empty() {
        all.push(value(&maker.secret()));
    }
    all
}

/// The definitions of the kinds, as a cluster that the operator runs in knows them.
pub(crate) fn definitions(program: &dyn Program) -> Vec<CustomResourceDefinition> {
    let options = ManifestOptions::of(program);
    let maker = Maker::new(program, &options);
    maker.registration.definitions(&maker.reach(), None)
}

/// The permissions alone.
pub(crate) fn permissions(program: &dyn Program, options: &ManifestOptions) -> Vec<Value> {
    roles(program.name(), options, &needs(program, options))
}

/// All that the operator needs to be allowed if it is run with `options`.
pub(crate) fn needs(program: &dyn Program, options: &ManifestOptions) -> Vec<Need> {
    let mut needs = program.needs();
    needs.extend(rbac::lead(program.name(), options.shards.is_some()));
    needs.extend(rbac::webhooks(&program.registration(options.watch_namespaces.clone())));
    needs
}

/// Makes the objects of one operator.
pub(crate) struct Maker<'a> {
    name: &'a str,
    options: &'a ManifestOptions,
    registration: Registration,
    /// Whether the program has commands that it carries into Pods of its own making.
    carries: bool,
}

impl<'a> Maker<'a> {
    pub(crate) fn new(program: &'a dyn Program, options: &'a ManifestOptions) -> Self {
        let registration = program.registration(options.watch_namespaces.clone());
        Self { name: program.name(), options, registration, carries: !program.commands().is_empty() }
    }

    fn has(&self, extra: Extra) -> bool {
        self.options.extras.contains(&extra)
    }

    fn reach(&self) -> Reach {
        Reach::Service { namespace: self.options.namespace.clone(), name: service_name(self.name) }
    }

    fn meta(&self, namespace: Option<&str>) -> ObjectMeta {
        self.meta_of(self.name.to_owned(), namespace)
    }

    fn meta_of(&self, name: String, namespace: Option<&str>) -> ObjectMeta {
        let namespace = namespace.map(Into::into);
        ObjectMeta {
            name: Some(name),
            namespace,
            labels: Some(labels(self.name, self.options)),
            ..ObjectMeta::default()
        }
    }

    /// What the operator's Pods are known by: it never changes.
    fn selector(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(names::APP_NAME.to_owned(), self.name.to_owned())])
    }

    fn namespace(&self) -> Namespace {
        let mut metadata = self.meta_of(self.options.namespace.clone(), None);
        if self.has(Extra::PodSecurity) {
            metadata.labels.get_or_insert_default().insert(POD_SECURITY.to_owned(), "restricted".to_owned());
        }
        Namespace { metadata, ..Namespace::default() }
    }

    pub(crate) fn definitions(&self) -> Vec<Value> {
        self.registration.definitions(&self.reach(), None).iter().map(value).collect()
    }

    fn account(&self) -> ServiceAccount {
        ServiceAccount { metadata: self.meta(Some(&self.options.namespace)), ..ServiceAccount::default() }
    }
}

/// The labels of an object of the operator.
fn labels(name: &str, options: &ManifestOptions) -> BTreeMap<String, String> {
    let mut labels = options.labels.clone();
    labels.insert(names::APP_NAME.to_owned(), name.to_owned());
    labels
}

pub(crate) fn value<T: Serialize>(object: &T) -> Value {
    let mut value = serde_json::to_value(object).expect("objects of the API can be written as JSON");
    drop_zero_fractions(&mut value);
    value
}

/// Up to here a float is every whole number.
const WHOLE_MAX: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// The limits of a schema are floats; people write `16`, not `16.0`.
fn drop_zero_fractions(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(drop_zero_fractions),
        Value::Array(items) => items.iter_mut().for_each(drop_zero_fractions),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() <= WHOLE_MAX {
                *value = Value::from(float as i64);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
pub(crate) mod tests;
