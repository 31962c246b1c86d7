//! Which requests are logged.

use serde::Deserialize;

use crate::{
    auth::{Attributes, Target, User},
    codec::parse_yaml,
};

/// Rules of which the first that matches a request decides; what none matches is not logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<Rule>,
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The text is no policy.
    #[error("the audit policy cannot be read: {0}; it must be a Policy of audit.k8s.io/v1")]
    Unreadable(String),
    /// The text is something else.
    #[error("the audit policy is a {0:?}; it must be a Policy of audit.k8s.io/v1")]
    OtherKind(String),
    /// There is no such level.
    #[error("there is no audit level {0:?}; use None, Metadata, Request or RequestResponse")]
    Level(String),
}

/// How much of a request is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who asked for what, and how it ended.
    Metadata,
    /// The body of the request as well.
    Request,
    /// The body of the answer as well.
    RequestResponse,
}

impl Level {
    const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Request, Self::RequestResponse];

    /// The level as policies and the log spell it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    api_version: String,
    kind: String,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    level: String,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<Resources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Resources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

impl Default for Policy {
    /// Everything.
    fn default() -> Self {
        Self { rules: vec![Rule { level: "Metadata".to_owned(), ..Rule::default() }] }
    }
}

impl Policy {
    /// Reads a policy in YAML or JSON.
    ///
    /// # Errors
    /// It is no policy, or one with a level that does not exist.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let value = parse_yaml(text.as_bytes()).map_err(PolicyError::Unreadable)?.value;
        let file = File::deserialize(value).map_err(|error| PolicyError::Unreadable(error.to_string()))?;
        if file.kind != "Policy" || file.api_version != "audit.k8s.io/v1" {
            return Err(PolicyError::OtherKind(format!("{} {}", file.api_version, file.kind)));
        }
        match file.rules.iter().find(|rule| Level::parse(&rule.level).is_none()) {
            Some(rule) => Err(PolicyError::Level(rule.level.clone())),
            None => Ok(Self { rules: file.rules }),
        }
    }

    /// How much of the request is logged.
    pub(super) fn level(&self, user: &User, attributes: &Attributes<'_>) -> Level {
        let rule = self.rules.iter().find(|rule| rule.matches(user, attributes));
        rule.and_then(|rule| Level::parse(&rule.level)).unwrap_or_default()
    }

    /// Whether bodies are logged of some requests.
    pub(super) fn logs_bodies(&self) -> bool {
        self.rules.iter().any(|rule| Level::parse(&rule.level) >= Some(Level::Request))
    }
}

impl Rule {
    fn matches(&self, user: &User, attributes: &Attributes<'_>) -> bool {
        let known = |list: &[String], value: &str| list.is_empty() || list.iter().any(|item| item == value);
        let in_groups = self.user_groups.is_empty() || self.user_groups.iter().any(|group| user.in_group(group));
        if !known(&self.users, &user.name) || !in_groups || !known(&self.verbs, attributes.verb) {
            return false;
        }
        match attributes.target {
            _ if self.resources.is_empty() && self.namespaces.is_empty() && self.paths.is_empty() => true,
            Target::Path(path) => self.paths.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => path.starts_with(start),
                None => pattern == path,
            }),
            Target::Resource { namespace, .. } => {
                let resource =
                    self.resources.is_empty() || self.resources.iter().any(|one| one.has(&attributes.target));
                self.paths.is_empty() && known(&self.namespaces, namespace) && resource
            }
        }
    }
}

impl Resources {
    fn has(&self, target: &Target<'_>) -> bool {
        let Target::Resource { group, resource, subresource, name, .. } = *target else { return false };
        let full = if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") };
        let same = |item: &String| match item.as_str() {
            "*" => true,
            item if item == full => true,
            item => match item.split_once('/') {
                Some(("*", part)) => part == subresource,
                Some((of, "*")) => of == resource,
                _ => false,
            },
        };
        let named = self.resource_names.is_empty() || self.resource_names.iter().any(|known| known == name);
        self.group == group && named && (self.resources.is_empty() || self.resources.iter().any(same))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  nonResourceURLs: ["/healthz*", "/livez"]
- level: None
  verbs: [get, list, watch]
- level: Metadata
  resources: [{group: "", resources: [secrets, pods/*]}]
"#;

    fn resource<'a>(verb: &'a str, resource: &'a str, subresource: &'a str) -> Attributes<'a> {
        Attributes { verb, target: Target::Resource { group: "", resource, subresource, namespace: "a", name: "" } }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy = Policy::parse(POLICY).unwrap();
        let ann = User::new("ann", ["people"]);
        for (attributes, expected) in [
            (resource("get", "secrets", ""), Level::None),
            (resource("create", "secrets", ""), Level::Metadata),
            (resource("create", "pods", "exec"), Level::Metadata),
            (resource("create", "configmaps", ""), Level::None),
            (Attributes::path("post", "/healthz/x"), Level::None),
        ] {
            assert_eq!(policy.level(&ann, &attributes), expected, "{attributes:?}");
            assert_eq!(Policy::default().level(&ann, &attributes), Level::Metadata);
        }
        assert!(!policy.logs_bodies());
        assert!(Policy::parse(&POLICY.replace("Metadata", "RequestResponse")).unwrap().logs_bodies());
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let error = Policy::parse(&POLICY.replace("Metadata", "All")).unwrap_err();
        assert!(error.to_string().starts_with("there is no audit level \"All\""), "{error}");
        assert!(matches!(Policy::parse("kind: Pod"), Err(PolicyError::OtherKind(_))));
        assert!(matches!(Policy::parse("a: ["), Err(PolicyError::Unreadable(_))));
    }
}
