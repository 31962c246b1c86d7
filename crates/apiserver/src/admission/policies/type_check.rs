//! What is wrong with a policy's expressions if objects are of the kinds that it is about.

use serde_json::{Value, json};

use crate::{
    cel::{Expression, KindType, Known, Names, Purpose},
    registry::{Registry, Served},
};

/// Of how many kinds the objects are looked at.
const KINDS_MAX: usize = 10;

/// The warnings of a policy, as its status has them.
pub(super) fn warnings(policy: &Value, registry: &Registry) -> Vec<Value> {
    let spec = &policy["spec"];
    let kinds = kinds(spec, registry);
    let params = params(spec, registry);
    let mut warnings = Vec::new();
    for (index, validation) in spec["validations"].as_array().into_iter().flatten().enumerate() {
        for field in ["expression", "messageExpression"] {
            let text = validation[field].as_str().unwrap_or_default();
            let found: Vec<String> =
                kinds.iter().filter_map(|kind| warning(spec, text, kind, params.as_ref())).collect();
            if !text.is_empty() && !found.is_empty() {
                let place = format!("spec.validations[{index}].{field}");
                warnings.push(json!({"fieldRef": place, "warning": found.join("\n")}));
            }
        }
    }
    warnings
}

/// The warning of one expression for one kind.
fn warning(spec: &Value, text: &str, kind: &Served, params: Option<&KindType>) -> Option<String> {
    let known = Known { object: KindType::of(kind.kind())?, params: params.cloned() };
    let has_params = !spec["paramKind"].is_null();
    let compiled = |text: &str, variables: &[(String, Expression)]| {
        let names =
            Names { params: has_params, variables: Some(variables), purpose: Purpose::TypeCheck, known: Some(&known) };
        Expression::compile(text, names)
    };
    let mut variables: Vec<(String, Expression)> = Vec::new();
    for variable in spec["variables"].as_array().into_iter().flatten() {
        let text = variable["expression"].as_str().unwrap_or_default();
        // What is wrong with a variable is not told where it is used.
        let expression = compiled(text, &variables).or_else(|_| compiled("dyn(true)", &[])).ok()?;
        variables.push((variable["name"].as_str().unwrap_or_default().to_owned(), expression));
    }
    let error = compiled(text, &variables).err()?;
    let issues = error.strip_prefix("compilation failed: ")?;
    let kind = kind.kind();
    let version = if kind.group.is_empty() { format!("/{}", kind.version) } else { kind.api_version() };
    Some(format!("{version}, Kind={}: {issues}\n", kind.kind))
}

/// The kinds that a policy is about, by group, version and kind. What it says of all groups or versions is left out.
fn kinds(spec: &Value, registry: &Registry) -> Vec<Served> {
    let mut kinds: Vec<Served> = Vec::new();
    for rule in spec["matchConstraints"]["resourceRules"].as_array().into_iter().flatten() {
        let list = |field: &str| {
            let mut all: Vec<&str> = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            all.sort_unstable();
            all
        };
        let (groups, versions, mut resources) = (list("apiGroups"), list("apiVersions"), list("resources"));
        resources.retain(|resource| !resource.contains(['*', '/']));
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            continue;
        }
        let places = groups.iter().flat_map(|group| versions.iter().map(move |version| (*group, *version)));
        let places = places.flat_map(|(group, version)| resources.iter().map(move |name| (group, version, *name)));
        let found = places.filter_map(|(group, version, resource)| registry.lookup(group, version, resource));
        for kind in found.take(KINDS_MAX) {
            if !kinds.iter().any(|known| known.is_same(&kind)) {
                kinds.push(kind);
            }
        }
    }
    kinds.truncate(KINDS_MAX);
    kinds.sort_by_cached_key(|served| {
        let kind = served.kind();
        (kind.group.clone(), kind.version.clone(), kind.kind.clone())
    });
    kinds
}

/// The type of a policy's parameters, if something is known of them.
fn params(spec: &Value, registry: &Registry) -> Option<KindType> {
    let (version, kind) = (spec["paramKind"]["apiVersion"].as_str()?, spec["paramKind"]["kind"].as_str()?);
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    KindType::of(registry.by_kind(group, version, kind)?.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(resources: &[&str], validations: Value, expected: &[(&str, &str)]) {
        let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": resources}]);
        let policy = json!({"spec": {"matchConstraints": {"resourceRules": rules}, "validations": validations,
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "variables": [{"name": "size", "expression": "object.spec.replicas"}]}});
        let found = warnings(&policy, &Registry::new());
        let found: Vec<_> =
            found.iter().map(|w| (w["fieldRef"].as_str().unwrap(), w["warning"].as_str().unwrap())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn objects_have_the_fields_of_their_kinds() {
        let fine = json!([
            {"expression": "object.spec.replicas > 1 && has(object.metadata.labels.a) && variables.size < 5"},
            {"expression": "object.metadata.creationTimestamp > timestamp('2026-01-02T03:04:05Z')"},
            {"expression": "object.spec.template.spec.containers.all(c, c.ports.all(p, p.containerPort > 1))"},
            {"expression": "params.data['a'] == 'b' && oldObject == null", "messageExpression": "object.kind"},
        ]);
        check(&["deployments"], fine, &[]);
        let wrong = json!([
            {"expression": "object.spec.replicas > '1'"},
            {"expression": "variables.size == 'a'", "messageExpression": "object.spec.nothing"},
            {"expression": "params.dat == null"},
        ]);
        let at = |column: usize, message: &str, text: &str| {
            let mark = ".".repeat(column - 1);
            format!("apps/v1, Kind=Deployment: ERROR: <input>:1:{column}: {message}\n | {text}\n | {mark}^\n")
        };
        let mismatch =
            |operator: &str| format!("found no matching overload for '{operator}' applied to '(int, string)'");
        let expected = [
            ("spec.validations[0].expression", at(22, &mismatch("_>_"), "object.spec.replicas > '1'")),
            ("spec.validations[1].expression", at(16, &mismatch("_==_"), "variables.size == 'a'")),
            ("spec.validations[1].messageExpression", at(12, "undefined field 'nothing'", "object.spec.nothing")),
            ("spec.validations[2].expression", at(7, "undefined field 'dat'", "params.dat == null")),
        ];
        let expected: Vec<_> = expected.iter().map(|(place, text)| (*place, text.as_str())).collect();
        check(&["deployments"], wrong, &expected);
    }

    #[test]
    fn every_kind_is_looked_at() {
        let rules = json!([{"expression": "object.spec.replicas > 1"}]);
        let text = "apps/v1, Kind=DaemonSet: ERROR: <input>:1:12: undefined field 'replicas'\n \
                    | object.spec.replicas > 1\n | ...........^\n";
        check(
            &["deployments", "daemonsets", "nothings", "deployments/status"],
            rules.clone(),
            &[("spec.validations[0].expression", text)],
        );
        check(&["*"], rules, &[]);
    }
}
