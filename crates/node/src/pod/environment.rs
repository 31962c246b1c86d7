//! The environment of a container: Service variables, `envFrom`, `env` with references to earlier variables.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod};

use super::downward::{self, Addresses};
use super::sources::Sources;

/// What an environment is made of.
pub(crate) struct Surroundings<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) addresses: Addresses,
    pub(crate) sources: &'a Sources,
    /// What the image sets.
    pub(crate) image: &'a [(String, String)],
    /// Where Services are.
    pub(crate) services: &'a [(String, String)],
}

/// Why a container has no environment.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum EnvironmentError {
    #[error("configmap \"{0}\" not found")]
    ConfigMap(String),
    #[error("secret \"{0}\" not found")]
    Secret(String),
    #[error("couldn't find key {key} in {kind} {name}")]
    Key { kind: &'static str, name: String, key: String },
    #[error("the downward API has no field {0:?}")]
    Field(String),
    #[error("variable {0:?} is not valid UTF-8")]
    Encoding(String),
}

/// The whole environment, later entries over earlier ones.
pub(crate) fn environment(
    container: &Container,
    around: &Surroundings<'_>,
) -> Result<Vec<(String, String)>, EnvironmentError> {
    let mut set = Variables::default();
    for (name, value) in around.services.iter().chain(around.image) {
        set.put(name, value.clone());
    }
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        let (entries, optional, missing) = if let Some(reference) = &from.config_map_ref {
            let found = around.sources.config_map(&reference.name);
            (found, reference.optional, EnvironmentError::ConfigMap(reference.name.clone()))
        } else if let Some(reference) = &from.secret_ref {
            let found = around.sources.secret(&reference.name);
            (found, reference.optional, EnvironmentError::Secret(reference.name.clone()))
        } else {
            continue;
        };
        match entries {
            Some(entries) => set.put_all(prefix, entries)?,
            None if optional == Some(true) => {}
            None => return Err(missing),
        }
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(value), _) => Some(expand(value, &set.values)),
            (None, Some(source)) => referred(&variable.name, source, container, around)?,
            (None, None) => Some(String::new()),
        };
        if let Some(value) = value {
            set.put(&variable.name, value);
        }
    }
    Ok(set.into_list())
}

#[derive(Default)]
struct Variables {
    order: Vec<String>,
    values: BTreeMap<String, String>,
}

impl Variables {
    fn put(&mut self, name: &str, value: String) {
        if self.values.insert(name.to_owned(), value).is_none() {
            self.order.push(name.to_owned());
        }
    }

    fn put_all(&mut self, prefix: &str, entries: BTreeMap<String, Vec<u8>>) -> Result<(), EnvironmentError> {
        for (key, value) in entries {
            let name = format!("{prefix}{key}");
            let value = String::from_utf8(value).map_err(|_| EnvironmentError::Encoding(name.clone()))?;
            self.put(&name, value);
        }
        Ok(())
    }

    fn into_list(mut self) -> Vec<(String, String)> {
        let take = |name: String| self.values.remove(&name).map(|value| (name, value));
        self.order.into_iter().filter_map(take).collect()
    }
}

fn referred(
    variable: &str,
    source: &EnvVarSource,
    container: &Container,
    around: &Surroundings<'_>,
) -> Result<Option<String>, EnvironmentError> {
    if let Some(field) = &source.field_ref {
        let value = downward::field(around.pod, around.addresses, &field.field_path);
        return value.map(Some).ok_or_else(|| EnvironmentError::Field(field.field_path.clone()));
    }
    if let Some(resource) = &source.resource_field_ref {
        let own = std::slice::from_ref(container);
        let value = downward::resource(own, &container.name, resource);
        return value.map(Some).ok_or_else(|| EnvironmentError::Field(resource.resource.clone()));
    }
    let (kind, name, key, optional, entries) = if let Some(reference) = &source.config_map_key_ref {
        let entries = around.sources.config_map(&reference.name);
        ("ConfigMap", &reference.name, &reference.key, reference.optional, entries)
    } else if let Some(reference) = &source.secret_key_ref {
        let entries = around.sources.secret(&reference.name);
        ("Secret", &reference.name, &reference.key, reference.optional, entries)
    } else {
        return Ok(None);
    };
    let missing = match (&entries, kind) {
        (Some(_), _) => EnvironmentError::Key { kind, name: name.clone(), key: key.clone() },
        (None, "ConfigMap") => EnvironmentError::ConfigMap(name.clone()),
        (None, _) => EnvironmentError::Secret(name.clone()),
    };
    match entries.and_then(|mut entries| entries.remove(key)) {
        Some(value) => String::from_utf8(value).map(Some).map_err(|_| EnvironmentError::Encoding(variable.to_owned())),
        None if optional == Some(true) => Ok(None),
        None => Err(missing),
    }
}

/// Replaces `$(NAME)` by the variable's value; `$$` is a dollar, and an unknown name stays as it is.
pub(crate) fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('$') {
            result.push('$');
            rest = after;
        } else if let Some((name, after_name)) = after.strip_prefix('(').and_then(|after| after.split_once(')')) {
            match variables.get(name) {
                Some(value) => result.push_str(value),
                None => result.extend(["$(", name, ")"]),
            }
            rest = after_name;
        } else {
            result.push('$');
            rest = after;
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_expanded_as_in_kubernetes() {
        let variables: BTreeMap<String, String> = [("A".to_owned(), "1".to_owned())].into();
        let check = |text: &str, expect: &str| assert_eq!(expand(text, &variables), expect, "{text}");
        check("$(A)", "1");
        check("x-$(A)-$(B)", "x-1-$(B)");
        check("$$(A)", "$(A)");
        check("$A $", "$A $");
        check("$(A", "$(A");
    }

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c"}], "nodeName": "node"}
        }))
        .unwrap()
    }

    fn check(container: serde_json::Value, expect: Result<&[(&str, &str)], EnvironmentError>) {
        let container: Container = serde_json::from_value(container).unwrap();
        let config: ConfigMap = serde_json::from_value(json!({"data": {"k": "v", "l": "w"}})).unwrap();
        let sources = Sources { config_maps: [("cm".to_owned(), Arc::new(config))].into(), ..Sources::default() };
        let pod = pod();
        let around = Surroundings {
            pod: &pod,
            addresses: Addresses { pod: Ipv4Addr::new(127, 64, 128, 1), host: Ipv4Addr::new(127, 64, 0, 1) },
            sources: &sources,
            image: &[("PATH".to_owned(), "/bin".to_owned())],
            services: &[],
        };
        let got = environment(&container, &around).map(|mut list| {
            list.retain(|(name, _)| name != "PATH");
            list
        });
        let expect =
            expect.map(|list| list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect::<Vec<_>>());
        assert_eq!(got, expect);
    }

    #[test]
    fn values_come_from_everywhere() {
        check(
            json!({"name": "c", "env": [
                {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"},
                {"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "K", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k"}}},
                {"name": "M", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}}],
                "resources": {"limits": {"memory": "64Mi"}}}),
            Ok(&[("A", "1"), ("B", "12"), ("L", "x"), ("IP", "127.64.128.1"), ("K", "v"), ("M", "64")]),
        );
        check(
            json!({"name": "c", "envFrom": [{"prefix": "P_", "configMapRef": {"name": "cm"}}]}),
            Ok(&[("P_k", "v"), ("P_l", "w")]),
        );
    }

    #[test]
    fn what_is_missing_is_named_unless_it_is_optional() {
        let from = |name: &str, key: &str, optional: bool| {
            json!({"name": "c", "env": [{"name": "X", "valueFrom":
                {"configMapKeyRef": {"name": name, "key": key, "optional": optional}}}]})
        };
        check(from("none", "k", false), Err(EnvironmentError::ConfigMap("none".to_owned())));
        let key = EnvironmentError::Key { kind: "ConfigMap", name: "cm".to_owned(), key: "z".to_owned() };
        check(from("cm", "z", false), Err(key));
        check(from("cm", "z", true), Ok(&[]));
        check(from("none", "z", true), Ok(&[]));
    }
}
