//! Field selectors.

use serde_json::Value;
use windlass_schema::Kind;

use crate::ApiError;

/// What fields of an object must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<FieldTerm>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTerm {
    path: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Reads `metadata.name=a,status.phase!=Running`.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let terms = terms(text).into_iter().filter(|term| !term.is_empty()).map(|term| {
            let unclear = || ApiError::bad_request(format!("invalid selector: '{text}'; can't understand '{term}'"));
            let (path, value, equal) = parts(term).ok_or_else(unclear)?;
            Ok(FieldTerm { path: path.to_owned(), value: unescaped(value)?, equal })
        });
        Ok(Self(terms.collect::<Result<_, _>>()?))
    }

    /// The name that every selected object has, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.iter().find(|term| term.equal && term.path == "metadata.name").map(|term| term.value.as_str())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Selects one object by its name.
    pub(crate) fn require_name(&mut self, name: &str) {
        self.0.push(FieldTerm { path: "metadata.name".to_owned(), value: name.to_owned(), equal: true });
    }

    /// Refuses fields that `kind` cannot be selected by.
    pub(crate) fn check(&self, kind: &Kind) -> Result<(), ApiError> {
        let known = |path: &str| {
            matches!(path, "metadata.name" | "metadata.namespace")
                || kind.selectable_fields.iter().any(|own| own == path)
        };
        match self.0.iter().find(|term| !known(&term.path)) {
            None => Ok(()),
            Some(term) if kind.selectable_fields.is_empty() && kind.is_builtin() => {
                Err(ApiError::bad_request(format!(
                    "{:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                    term.path
                )))
            }
            Some(term) => Err(ApiError::bad_request(format!("field label not supported: {}", term.path))),
        }
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|term| (field(object, &term.path) == term.value) == term.equal)
    }
}

impl std::fmt::Display for FieldSelector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, FieldTerm { path, value, equal }) in self.0.iter().enumerate() {
            let (separator, operator) = (if index == 0 { "" } else { "," }, if *equal { "=" } else { "!=" });
            let value = value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
            write!(formatter, "{separator}{path}{operator}{value}")?;
        }
        Ok(())
    }
}

/// Splits at the commas that no backslash precedes.
fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (position, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// The path, the value, and whether the one must have the other, told by the first operator.
fn parts(term: &str) -> Option<(&str, &str, bool)> {
    let start = term.char_indices().map(|(start, _)| start).find(|start| {
        let rest = &term[*start..];
        rest.starts_with("!=") || rest.starts_with('=')
    })?;
    let (path, rest) = term.split_at(start);
    let equal = ["==", "="].into_iter().find_map(|operator| rest.strip_prefix(operator));
    Some(equal.map_or((path, rest.strip_prefix("!=").unwrap_or(rest), false), |value| (path, value, true)))
}

/// The value without its backslashes, each of which must stand before a comma, an equals sign or another one.
fn unescaped(value: &str) -> Result<String, ApiError> {
    let refused = |why: String| ApiError::bad_request(format!("invalid field selector: {why}"));
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(next @ ('\\' | ',' | '=')) => plain.push(next),
                next => {
                    let sequence: String = std::iter::once('\\').chain(next).collect();
                    return Err(refused(format!("invalid escape sequence: {sequence}")));
                }
            },
            // Kubernetes shows the number of the character.
            ',' | '=' => return Err(refused(format!("unescaped character in value: {}", u32::from(character)))),
            other => plain.push(other),
        }
    }
    Ok(plain)
}

/// The field as a selector compares it.
fn field(object: &Value, path: &str) -> String {
    let value = path.split('.').try_fold(object, |value, name| value.get(name));
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        _ => match path {
            "spec.unschedulable" | "spec.hostNetwork" => "false".to_owned(),
            "status.replicas" | "status.successful" => "0".to_owned(),
            "source" => event_source(object).to_owned(),
            _ => String::new(),
        },
    }
}

/// Who reports an event, by its old name for it or its new one.
fn event_source(event: &Value) -> &str {
    let text = |pointer| event.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    text("/source/component").or_else(|| text("/reportingComponent")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_selectors() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n"}, "status": {}});
        let matches = |text| FieldSelector::parse(text).unwrap().matches(&object);
        assert!(matches("metadata.name=a,spec.nodeName==n,status.phase!=Running,spec.unschedulable=false"));
        assert!(!matches("metadata.name!=a"));
        assert!(matches("status.phase="));
        assert!(FieldSelector::parse("metadata.name").is_err());
        let by_source = FieldSelector::parse("source=kubelet").unwrap();
        assert!(by_source.matches(&json!({"source": {"component": "kubelet"}})));
        assert!(by_source.matches(&json!({"source": {}, "reportingComponent": "kubelet"})));
        assert!(!by_source.matches(&json!({"source": {"component": "scheduler"}, "reportingComponent": "kubelet"})));
    }

    #[test]
    fn values_may_have_signs_that_are_escaped() {
        let value = |text| FieldSelector::parse(text).map(|selector| selector.0[0].value.clone());
        assert_eq!(value(r"a=b\,c\=\\,d=e").unwrap(), r"b,c=\");
        let refused = |text| FieldSelector::parse(text).unwrap_err().message;
        assert_eq!(refused("a=b=c"), "invalid field selector: unescaped character in value: 61");
        assert_eq!(refused(r"a=\b"), r"invalid field selector: invalid escape sequence: \b");
        assert_eq!(refused(r"a=b\"), r"invalid field selector: invalid escape sequence: \");
        assert_eq!(refused("a,b=c"), "invalid selector: 'a,b=c'; can't understand 'a'");
        // The first operator counts.
        assert_eq!(FieldSelector::parse("a!=b").unwrap().0[0].path, "a");
        assert!(FieldSelector::parse("a=b!=c").is_err());
    }
}
