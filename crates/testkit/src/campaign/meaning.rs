//! What a property means, by its name and its shape, and the values that follow from that.

use serde_json::{Value, json};

use super::properties::Property;

/// The namespace that references out of a resource's own point to.
pub(crate) const ELSEWHERE: &str = "campaign-elsewhere";
/// The Secret that is there for references.
pub(crate) const SECRET: &str = "campaign-secret";
/// More than this many of something are not asked for.
pub(crate) const MANY: i64 = 8;

/// What a property means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// How many there are to be of something that costs.
    Count,
    Port,
    Image,
    Quantity,
    Schedule,
    Secret,
    Namespace,
    Url,
}

/// The endings of names, with what they mean and the shape that it has.
const NAMES: [(&str, &str, Meaning); 21] = [
    ("replicas", "integer", Meaning::Count),
    ("size", "integer", Meaning::Count),
    ("members", "integer", Meaning::Count),
    ("instances", "integer", Meaning::Count),
    ("nodes", "integer", Meaning::Count),
    ("workers", "integer", Meaning::Count),
    ("shards", "integer", Meaning::Count),
    ("count", "integer", Meaning::Count),
    ("port", "integer", Meaning::Port),
    ("image", "string", Meaning::Image),
    ("cpu", "", Meaning::Quantity),
    ("memory", "", Meaning::Quantity),
    ("storage", "", Meaning::Quantity),
    ("schedule", "string", Meaning::Schedule),
    ("cron", "string", Meaning::Schedule),
    ("secret", "string", Meaning::Secret),
    ("secretname", "string", Meaning::Secret),
    ("namespace", "string", Meaning::Namespace),
    ("url", "string", Meaning::Url),
    ("uri", "string", Meaning::Url),
    ("endpoint", "string", Meaning::Url),
];

impl Meaning {
    /// What a property means, if its name and shape say so.
    pub(crate) fn of(property: &Property) -> Option<Self> {
        let shape = property.schema["type"].as_str().unwrap_or_default();
        // The name of a reference says of what it is.
        let name = match property.name() {
            "name" => property.parent().trim_end_matches("Ref").trim_end_matches("Reference").to_lowercase(),
            name => name.to_lowercase(),
        };
        let is_it = |(ending, of, _): &&(&str, &str, Self)| {
            let fits = *of == shape || (of.is_empty() && matches!(shape, "string" | ""));
            fits && name.ends_with(ending)
        };
        NAMES.iter().find(is_it).map(|(_, _, meaning)| *meaning)
    }

    /// Values with this meaning, each with a name.
    pub(crate) fn values(self) -> Vec<(&'static str, Value)> {
        let texts = |texts: &[(&'static str, &str)]| texts.iter().map(|(name, text)| (*name, json!(text))).collect();
        match self {
            Self::Count => vec![("none", json!(0)), ("two", json!(2)), ("three", json!(3)), ("many", json!(MANY))],
            Self::Port => vec![
                ("port-8443", json!(8443)),
                ("last-port", json!(65535)),
                ("no-port", json!(0)),
                ("beyond-ports", json!(65536)),
            ],
            Self::Image => texts(&[
                ("other-image", "registry.example.com:5000/campaign/other:2.0"),
                ("image-without-tag", "campaign"),
                ("image-by-digest", "campaign@sha256:0000000000000000000000000000000000000000000000000000000000000000"),
                ("unpullable-image", "registry.example.com/does-not-exist:1"),
            ]),
            Self::Quantity => {
                texts(&[("little", "100m"), ("much", "64Gi"), ("negative", "-1"), ("no-quantity", "much")])
            }
            Self::Schedule => texts(&[("hourly", "0 * * * *"), ("daily", "@daily"), ("no-schedule", "61 * * * *")]),
            Self::Secret => texts(&[("other-secret", SECRET), ("missing-secret", "campaign-missing")]),
            Self::Namespace => texts(&[("elsewhere", ELSEWHERE), ("missing-namespace", "campaign-missing")]),
            Self::Url => texts(&[
                ("other-url", "https://example.com:8443/x?y=z"),
                ("no-url", "::"),
                ("local-url", "http://127.0.0.1/"),
            ]),
        }
    }

    /// The objects that the values speak of.
    pub(crate) fn given(self) -> Vec<Value> {
        let secret = |namespace: &str, password: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": namespace},
                   "stringData": {"username": "campaign", "password": password, "token": format!("{password}-token")}})
        };
        match self {
            Self::Secret => vec![secret("default", "canary-of-the-campaign")],
            Self::Namespace => vec![
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}}),
                secret(ELSEWHERE, "canary-from-elsewhere"),
            ],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_shapes_tell_what_is_meant() {
        let check = |path: &str, shape: &str, expected: Option<Meaning>| {
            let path = path.split('/').map(str::to_owned).collect();
            let property = Property { path, schema: json!({"type": shape}), can_go: true, is_leaf: true };
            assert_eq!(Meaning::of(&property), expected, "{property:?}");
        };
        check("spec/size", "integer", Some(Meaning::Count));
        check("spec/size", "string", None);
        check("spec/sidecarImage", "string", Some(Meaning::Image));
        check("spec/passwordSecret/name", "string", Some(Meaning::Secret));
        check("spec/secretRef/name", "string", Some(Meaning::Secret));
        check("spec/secretRef/namespace", "string", Some(Meaning::Namespace));
        check("spec/limits/memory", "string", Some(Meaning::Quantity));
        check("spec/name", "string", None);
    }
}
