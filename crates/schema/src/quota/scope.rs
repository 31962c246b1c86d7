//! The sorts of objects that a quota can be about.

use serde_json::Value;

/// One sort of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    name: String,
    operator: String,
    values: Vec<String>,
}

impl Scope {
    /// All sorts that the objects of a quota must belong to.
    pub(super) fn of_quota(quota: &Value) -> Vec<Scope> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let spec = &quota["spec"];
        let plain = list(&spec["scopes"]).into_iter().map(|scope| Scope {
            name: text(&scope),
            operator: "Exists".to_owned(),
            values: Vec::new(),
        });
        let selected = list(&spec["scopeSelector"]["matchExpressions"]).into_iter().map(|expression| Scope {
            name: text(&expression["scopeName"]),
            operator: text(&expression["operator"]),
            values: list(&expression["values"]).iter().map(text).collect(),
        });
        plain.chain(selected).collect()
    }

    pub(super) fn has_pod(&self, pod: &Value) -> bool {
        match self.name.as_str() {
            "Terminating" => is_terminating(pod),
            "NotTerminating" => !is_terminating(pod),
            "BestEffort" => is_best_effort(pod),
            "NotBestEffort" => !is_best_effort(pod),
            "PriorityClass" => self.selects(pod["spec"]["priorityClassName"].as_str().filter(|name| !name.is_empty())),
            "CrossNamespacePodAffinity" => looks_across_namespaces(pod),
            _ => false,
        }
    }

    pub(super) fn has_claim(&self, claim: &Value) -> bool {
        const CLASSES: [&str; 3] = [
            "/spec/volumeAttributesClassName",
            "/status/currentVolumeAttributesClassName",
            "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
        ];
        if self.name != "VolumeAttributesClass" {
            return false;
        }
        let named = CLASSES.iter().filter_map(|path| claim.pointer(path)?.as_str()).filter(|name| !name.is_empty());
        let names: Vec<&str> = named.collect();
        if names.is_empty() { self.selects(None) } else { names.into_iter().any(|name| self.selects(Some(name))) }
    }

    fn selects(&self, value: Option<&str>) -> bool {
        let listed = value.is_some_and(|value| self.values.iter().any(|known| known == value));
        match self.operator.as_str() {
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        }
    }
}

/// Whether the Pod's life is limited.
fn is_terminating(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

/// Whether nothing in the Pod asks for processor or memory.
fn is_best_effort(pod: &Value) -> bool {
    let spec = &pod["spec"];
    let lists =
        ["containers", "initContainers"].into_iter().flat_map(|list| spec[list].as_array().into_iter().flatten());
    let asks = |owner: &Value| {
        ["requests", "limits"].iter().any(|field| {
            let amounts = super::amounts(&owner["resources"][field]);
            ["cpu", "memory"].iter().any(|name| amounts.get(*name).is_some_and(|amount| amount.nanos() > 0))
        })
    };
    !asks(spec) && !lists.into_iter().any(asks)
}

fn looks_across_namespaces(pod: &Value) -> bool {
    const TERMS: [&str; 2] =
        ["requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"];
    let across = |term: &Value| {
        let named = term["namespaces"].as_array().is_some_and(|names| !names.is_empty());
        named || !term["namespaceSelector"].is_null()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let affinity = &pod["spec"]["affinity"][kind];
        TERMS.iter().any(|terms| {
            let terms = affinity[terms].as_array().into_iter().flatten();
            terms.into_iter().any(|term| across(term) || across(&term["podAffinityTerm"]))
        })
    })
}
