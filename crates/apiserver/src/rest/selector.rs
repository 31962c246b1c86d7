//! Label selectors.

use serde_json::Value;

use crate::{ApiError, object::Object};

/// What the labels of an object must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Reads `a=b,c in (d,e),!f`.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        if is_blank(text) {
            return Ok(Self::default());
        }
        let parts = split(text);
        if let Some(empty) = parts.iter().position(|part| is_blank(part)) {
            let message = match (empty, parts.get(empty + 1)) {
                (0, _) => "found ',', expected: !, identifier, or 'end of string'",
                (_, Some(_)) => "found ',', expected: identifier after ','",
                (_, None) => "found '', expected: identifier after ','",
            };
            return Err(ApiError::bad_request(message.to_owned()));
        }
        Ok(Self(parts.into_iter().map(requirement).collect::<Result<_, _>>()?))
    }

    /// Reads a `metav1.LabelSelector`.
    pub(crate) fn of_value(selector: &Value) -> Self {
        let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let equal = labels.map(|(key, value)| Requirement {
            key: key.clone(),
            test: Test::In(vec![value.as_str().unwrap_or_default().to_owned()]),
        });
        let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
        Self(equal.chain(expressions.map(expression)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.test.accepts(object.label(&requirement.key)))
    }
}

fn expression(expression: &Value) -> Requirement {
    let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
    let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
    let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
    let test = match text("operator") {
        "In" => Test::In(values),
        "NotIn" => Test::NotIn(values),
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::Absent,
        // What cannot be understood selects nothing.
        _ => Test::In(Vec::new()),
    };
    Requirement { key: text("key").to_owned(), test }
}

impl Test {
    fn accepts(&self, label: Option<&str>) -> bool {
        let number = || label.and_then(|label| label.parse::<i64>().ok());
        match self {
            Self::Exists => label.is_some(),
            Self::Absent => label.is_none(),
            Self::In(values) => label.is_some_and(|label| values.iter().any(|value| value == label)),
            Self::NotIn(values) => !label.is_some_and(|label| values.iter().any(|value| value == label)),
            Self::Greater(than) => number().is_some_and(|number| number > *than),
            Self::Less(than) => number().is_some_and(|number| number < *than),
        }
    }
}

/// Whether there is nothing but what selectors count as white space.
fn is_blank(text: &str) -> bool {
    text.chars().all(|letter| matches!(letter, ' ' | '\t' | '\r' | '\n'))
}

/// Splits at the commas that are not in brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (position, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn requirement(text: &str) -> Result<Requirement, ApiError> {
    let text = text.trim();
    let refused = || ApiError::bad_request(format!("unable to parse requirement: {text:?} is not a label requirement"));
    if let Some(key) = text.strip_prefix('!') {
        return Ok(Requirement { key: key_of(key).ok_or_else(refused)?, test: Test::Absent });
    }
    for (operator, make) in OPERATORS {
        if let Some((key, value)) = text.split_once(operator) {
            let test = make(value.trim()).ok_or_else(refused)?;
            return Ok(Requirement { key: key_of(key).ok_or_else(refused)?, test });
        }
    }
    let mut words = text.splitn(2, char::is_whitespace);
    let (key, rest) = (words.next().unwrap_or_default(), words.next().map(str::trim));
    let test = match rest {
        None => Test::Exists,
        Some(rest) => set(rest).ok_or_else(refused)?,
    };
    Ok(Requirement { key: key_of(key).ok_or_else(refused)?, test })
}

type Make = fn(&str) -> Option<Test>;

/// The longer operators stand first, so that `==` is not read as `=`.
const OPERATORS: [(&str, Make); 5] = [
    ("!=", |value| is_value(value).then(|| Test::NotIn(vec![value.to_owned()]))),
    ("==", |value| is_value(value).then(|| Test::In(vec![value.to_owned()]))),
    ("=", |value| is_value(value).then(|| Test::In(vec![value.to_owned()]))),
    (">", |value| value.parse().ok().map(Test::Greater)),
    ("<", |value| value.parse().ok().map(Test::Less)),
];

fn set(text: &str) -> Option<Test> {
    let (operator, values) = text.split_once('(')?;
    let values: Vec<String> =
        values.trim_end().strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
    values.iter().all(|value| is_value(value)).then_some(())?;
    match operator.trim() {
        "in" => Some(Test::In(values)),
        "notin" => Some(Test::NotIn(values)),
        _ => None,
    }
}

fn key_of(text: &str) -> Option<String> {
    let key = text.trim();
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
    (!key.is_empty() && key.chars().all(allowed)).then(|| key.to_owned())
}

fn is_value(text: &str) -> bool {
    text.len() <= 63 && text.chars().all(|character| character.is_ascii_alphanumeric() || "-_.".contains(character))
}

impl std::fmt::Display for LabelSelector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, Requirement { key, test }) in self.0.iter().enumerate() {
            formatter.write_str(if index == 0 { "" } else { "," })?;
            match test {
                Test::Exists => write!(formatter, "{key}")?,
                Test::Absent => write!(formatter, "!{key}")?,
                Test::In(values) => write!(formatter, "{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(formatter, "{key} notin ({})", values.join(","))?,
                Test::Greater(than) => write!(formatter, "{key}>{than}")?,
                Test::Less(than) => write!(formatter, "{key}<{than}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(text: &str) -> bool {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front", "n": "5", "empty": ""}}});
        LabelSelector::parse(text).unwrap().matches(&object)
    }

    #[test]
    fn label_selectors() {
        for text in [
            "",
            "app=web",
            "app==web",
            "app = web",
            "app!=db",
            "other!=x",
            "app",
            "!other",
            "app in (web,db)",
            "app in (db, web),tier=front",
            "app notin (db)",
            "other notin (x)",
            "n>4",
            "n<6",
            "empty=",
            "empty in ()",
        ] {
            assert!(labels(text), "{text}");
        }
        for text in ["app=db", "!app", "other", "app notin (web)", "app in (db)", "n>5", "n<5", "other=", "app>1"] {
            assert!(!labels(text), "{text}");
        }
        for text in ["app in web", "=x", "a b c", "app in (a,b", "a=b=c", "n>x"] {
            assert_eq!(LabelSelector::parse(text).unwrap_err().code, 400, "{text}");
        }
    }

    #[test]
    fn selectors_of_objects() {
        let selector = json!({"matchLabels": {"app": "web"}, "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["front"]}, {"key": "x", "operator": "DoesNotExist"}]});
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        assert!(LabelSelector::of_value(&selector).matches(&object));
        assert!(!LabelSelector::of_value(&selector).matches(&json!({"metadata": {"labels": {"app": "web"}}})));
    }
}
