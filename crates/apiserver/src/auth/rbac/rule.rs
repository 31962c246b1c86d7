//! One rule of a role, and what it allows.

use serde::{Deserialize, Deserializer, Serialize};

use crate::auth::{Attributes, Target};

/// Verbs that may be applied to resources or to paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// The verbs, or `*`.
    #[serde(deserialize_with = "or_empty")]
    pub verbs: Vec<String>,
    /// The API groups, or `*`.
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// The resources: `pods`, `pods/log`, `*/scale` or `*`.
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The names of the objects; empty means all.
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths outside of the resource tree; a `*` at the end matches any rest.
    #[serde(rename = "nonResourceURLs", deserialize_with = "or_empty", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

fn or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default())
}

impl Rule {
    /// Whether the rule allows what `attributes` describe.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !matches(&self.verbs, attributes.verb) {
            return false;
        }
        match attributes.target {
            Target::Path(path) => self.non_resource_urls.iter().any(|pattern| path_matches(pattern, path)),
            Target::Resource { group, resource, subresource, name, .. } => {
                matches(&self.api_groups, group)
                    && self.resources.iter().any(|pattern| resource_matches(pattern, resource, subresource))
                    && (self.resource_names.is_empty() || self.resource_names.iter().any(|own| own == name))
            }
        }
    }
}

/// Whether `list` holds `item` or `*`.
pub(super) fn matches(list: &[String], item: &str) -> bool {
    list.iter().any(|own| own == "*" || own == item)
}

/// Whether a resource pattern of a rule matches a resource and its subresource.
pub(super) fn resource_matches(pattern: &str, resource: &str, subresource: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    match pattern.split_once('/') {
        None => pattern == resource && subresource.is_empty(),
        Some((own, own_sub)) => !subresource.is_empty() && own_sub == subresource && (own == "*" || own == resource),
    }
}

/// Whether a path pattern of a rule matches a path.
pub(super) fn path_matches(pattern: &str, path: &str) -> bool {
    pattern == path || pattern.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &str, groups: &str, resources: &str, names: &str) -> Rule {
        let split = |text: &str| -> Vec<String> {
            if text == "-" { Vec::new() } else { text.split(',').map(str::to_owned).collect() }
        };
        Rule {
            verbs: split(verbs),
            api_groups: split(groups),
            resources: split(resources),
            resource_names: split(names),
            non_resource_urls: Vec::new(),
        }
    }

    fn check(rule: &Rule, request: &str, expected: bool) {
        let words: Vec<&str> = request.split(' ').collect();
        let [verb, group, resource, name] = words[..] else { panic!("not a request: {request}") };
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let (group, name) = (group.trim_matches('-'), name.trim_matches('-'));
        let target = Target::Resource { group, resource, subresource, namespace: "any", name };
        assert_eq!(rule.allows(&Attributes { verb, target }), expected, "{rule:?} {request}");
    }

    #[test]
    fn rules_match_by_verb_group_resource_and_name() {
        let pods = rule("get,list", "", "pods", "-");
        check(&pods, "get - pods a", true);
        check(&pods, "list - pods -", true);
        check(&pods, "delete - pods a", false);
        check(&pods, "get apps pods a", false);
        check(&pods, "get - pods/log a", false);

        let log = rule("get", "", "pods/log", "-");
        check(&log, "get - pods/log a", true);
        check(&log, "get - pods a", false);

        let scale = rule("update", "*", "*/scale", "-");
        check(&scale, "update apps deployments/scale a", true);
        check(&scale, "update apps deployments a", false);

        let everything = rule("*", "*", "*", "-");
        check(&everything, "escalate apps deployments/scale a", true);

        let named = rule("get", "", "secrets", "one");
        check(&named, "get - secrets one", true);
        check(&named, "get - secrets two", false);
        check(&named, "list - secrets -", false);
    }

    #[test]
    fn paths_match_exactly_or_by_prefix() {
        let rule = |url: &str| Rule {
            verbs: vec!["get".to_owned()],
            non_resource_urls: vec![url.to_owned()],
            ..Rule::default()
        };
        for (pattern, path, expected) in [
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz/", false),
            ("/healthz/*", "/healthz/etcd", true),
            ("/healthz/*", "/healthz", false),
            ("*", "/anything", true),
        ] {
            assert_eq!(rule(pattern).allows(&Attributes::path("get", path)), expected, "{pattern} {path}");
        }
        assert!(!rule("*").allows(&Attributes::path("post", "/anything")));
    }
}
