//! Which objects a list asks for.

use kube::core::{Expression, Selector, SelectorExt};
use serde_json::Value;

/// The selectors of a request.
pub(super) struct Selection {
    labels: Selector,
    fields: Vec<(String, bool, String)>,
}

impl Selection {
    /// Reads the query of a request; what is not a selector is left to the API, which refuses it.
    pub(super) fn of(query: Option<&str>) -> Self {
        let parameter = |name: &str| {
            let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
            pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
        };
        Self { labels: labels(&parameter("labelSelector")), fields: fields(&parameter("fieldSelector")) }
    }

    /// Whether an object is asked for.
    pub(super) fn has(&self, object: &Value) -> bool {
        let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
        let labels = labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect();
        self.labels.matches(&labels)
            && self.fields.iter().all(|(path, equal, value)| (text(object, path) == *value) == *equal)
    }
}

fn text(object: &Value, path: &str) -> String {
    match object.pointer(&format!("/{}", path.replace('.', "/"))) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn fields(selector: &str) -> Vec<(String, bool, String)> {
    let terms = selector.split(',').filter_map(|term| {
        let (path, value) = term.split_once("!=").map(|(path, value)| (path, (false, value))).or_else(|| {
            let (path, value) = term.split_once('=')?;
            Some((path, (true, value.trim_start_matches('='))))
        })?;
        Some((path.trim().to_owned(), value.0, value.1.trim().to_owned()))
    });
    terms.collect()
}

fn labels(selector: &str) -> Selector {
    terms(selector).into_iter().filter_map(|term| expression(&term)).collect()
}

/// The terms of a selector: commas inside of brackets are not between terms.
fn terms(selector: &str) -> Vec<String> {
    let (mut terms, mut inside) = (vec![String::new()], false);
    for character in selector.chars() {
        inside = (inside || character == '(') && character != ')';
        match terms.last_mut() {
            Some(term) if inside || character != ',' => term.push(character),
            _ => terms.push(String::new()),
        }
    }
    terms
}

fn expression(term: &str) -> Option<Expression> {
    let term = term.trim();
    let word = |text: &str| text.trim().to_owned();
    let list = |text: &str| {
        let text = text.trim().trim_start_matches('(').trim_end_matches(')');
        text.split(',').map(word).collect()
    };
    if let Some((key, values)) = term.split_once(" notin ") {
        return Some(Expression::NotIn(word(key), list(values)));
    }
    if let Some((key, values)) = term.split_once(" in ") {
        return Some(Expression::In(word(key), list(values)));
    }
    if let Some((key, value)) = term.split_once("!=") {
        return Some(Expression::NotEqual(word(key), word(value)));
    }
    if let Some((key, value)) = term.split_once('=') {
        return Some(Expression::Equal(word(key), word(value.trim_start_matches('='))));
    }
    match term.strip_prefix('!') {
        Some(key) => Some(Expression::DoesNotExist(word(key))),
        None => (!term.is_empty()).then(|| Expression::Exists(word(term))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(query: &str, expected: bool) {
        let object = json!({
            "metadata": {"name": "n", "labels": {"app": "web", "tier": "front"}},
            "spec": {"nodeName": "a"}, "status": {"phase": "Running"},
        });
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(query.split('&').filter_map(|pair| pair.split_once('=')))
            .finish();
        assert_eq!(Selection::of(Some(&query)).has(&object), expected, "{query}");
    }

    #[test]
    fn objects_are_selected_by_labels_and_fields() {
        check("", true);
        check("labelSelector=app=web,tier==front", true);
        check("labelSelector=app!=web", false);
        check("labelSelector=app in (api,web),tier notin (back, middle)", true);
        check("labelSelector=app in (api)", false);
        check("labelSelector=app,!canary", true);
        check("labelSelector=!app", false);
        check("fieldSelector=metadata.name=n,spec.nodeName!=b", true);
        check("fieldSelector=status.phase=Pending", false);
        check("fieldSelector=spec.missing=", true);
    }
}
