//! A value with its path, and the checks that every rule is made of.

use serde_json::Value;

use crate::FieldError;
use crate::field::{child, item, key};

static NULL: Value = Value::Null;

/// A value and where it stands.
#[derive(Clone)]
pub(super) struct At<'a> {
    pub(super) path: String,
    pub(super) value: &'a Value,
}

impl<'a> At<'a> {
    pub(super) fn root(value: &'a Value) -> At<'a> {
        At { path: String::new(), value }
    }

    /// The member `name`; null where there is none.
    pub(super) fn member(&self, name: &str) -> At<'a> {
        At { path: child(&self.path, name), value: self.value.get(name).unwrap_or(&NULL) }
    }

    /// The member at the end of the dotted `path`.
    pub(super) fn at(&self, path: &str) -> At<'a> {
        path.split('.').fold(self.clone(), |at, name| at.member(name))
    }

    /// The items of a list.
    pub(super) fn items(&self) -> impl Iterator<Item = At<'a>> + use<'a> {
        let path = self.path.clone();
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().enumerate().map(move |(index, value)| At { path: item(&path, index), value })
    }

    /// The entries of a map, with their keys.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, At<'a>)> + use<'a> {
        let path = self.path.clone();
        self.value
            .as_object()
            .into_iter()
            .flatten()
            .map(move |(name, value)| (name.as_str(), At { path: key(&path, name), value }))
    }

    /// The text; empty where there is none.
    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub(super) fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Whether the value is missing, null or empty.
    pub(super) fn is_absent(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        self.value.as_bool().unwrap_or_default()
    }

    /// Whether the value is there, empty or not.
    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// The same value under another path, where errors name one.
    pub(super) fn renamed(&self, path: impl Into<String>) -> At<'a> {
        At { path: path.into(), value: self.value }
    }

    /// The error of a text, which is shown empty where there is none.
    pub(super) fn wrong_text(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self.path.clone(), self.text(), detail)
    }

    /// The error of a number, which is shown as zero where there is none.
    pub(super) fn wrong_number(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self.path.clone(), self.int().unwrap_or_default(), detail)
    }

    /// The error of a text that must be one of `supported`.
    pub(super) fn unsupported(&self, supported: &[&str]) -> FieldError {
        FieldError::not_supported(self.path.clone(), self.text(), supported)
    }

    /// The error of a text that is there already.
    pub(super) fn again(&self) -> FieldError {
        FieldError::duplicate(self.path.clone(), self.text())
    }

    pub(super) fn invalid(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self.path.clone(), self.value.clone(), detail)
    }

    pub(super) fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::forbidden(self.path.clone(), detail)
    }

    pub(super) fn missing(&self, detail: &str) -> FieldError {
        FieldError::required(self.path.clone(), detail)
    }
}

/// The value must be there.
pub(super) fn required(at: &At<'_>, errors: &mut Vec<FieldError>) {
    if at.is_absent() {
        errors.push(at.missing(""));
    }
}

/// The text, where there is one, must be one of `supported`.
pub(super) fn one_of(at: &At<'_>, supported: &[&str], errors: &mut Vec<FieldError>) {
    if !at.is_absent() && !supported.contains(&at.text()) {
        errors.push(FieldError::not_supported(at.path.clone(), at.value.clone(), supported));
    }
}

/// The text, if the field is there at all, must be one of `supported`.
pub(super) fn set_one_of(at: &At<'_>, supported: &[&str], errors: &mut Vec<FieldError>) {
    if at.is_set() && !supported.contains(&at.text()) {
        errors.push(at.unsupported(supported));
    }
}

/// The text must be there and follow `rule`.
pub(super) fn required_name(at: &At<'_>, rule: fn(&str) -> Vec<String>, errors: &mut Vec<FieldError>) {
    required(at, errors);
    named(at, rule, errors);
}

/// The text, empty or not, must follow `rule`.
pub(super) fn follows(at: &At<'_>, rule: fn(&str) -> Vec<String>, errors: &mut Vec<FieldError>) {
    errors.extend(rule(at.text()).into_iter().map(|detail| at.wrong_text(detail)));
}

/// The text, where there is one, must follow `rule`, which names what is wrong.
pub(super) fn named(at: &At<'_>, rule: fn(&str) -> Vec<String>, errors: &mut Vec<FieldError>) {
    if !at.is_absent() {
        errors.extend(rule(at.text()).into_iter().map(|detail| at.invalid(detail)));
    }
}

/// The numbers at these dotted paths must not be negative.
pub(super) fn not_negative(at: &At<'_>, paths: &[&str], errors: &mut Vec<FieldError>) {
    let members = paths.iter().map(|path| at.at(path));
    let negative = members.filter(|member| member.int().is_some_and(|value| value < 0));
    errors.extend(negative.map(|member| member.invalid("must be greater than or equal to 0")));
}

/// The number, where there is one, must be that of a port.
pub(super) fn port(at: &At<'_>, errors: &mut Vec<FieldError>) {
    if at.int().is_some_and(|port| !(1..=65535).contains(&port)) {
        errors.push(at.invalid("must be between 1 and 65535, inclusive"));
    }
}

/// A port by number or by name.
pub(super) fn port_or_name(at: &At<'_>, errors: &mut Vec<FieldError>) {
    match at.value {
        Value::String(_) => follows(at, crate::names::port_name, errors),
        _ => port(at, errors),
    }
}

/// The values under the dotted `paths` must be as they were.
pub(super) fn immutable(new: &At<'_>, old: &At<'_>, paths: &[&str], errors: &mut Vec<FieldError>) {
    for path in paths {
        let (new, old) = (new.at(path), old.at(path));
        let is_same = new.value == old.value || (new.is_absent() && old.is_absent());
        if !is_same {
            errors.push(new.invalid("field is immutable"));
        }
    }
}

/// The members `name` of the items must all differ.
pub(super) fn unique(list: &At<'_>, name: &str, errors: &mut Vec<FieldError>) {
    let mut seen = std::collections::HashSet::new();
    for item in list.items() {
        let member = item.member(name);
        if !member.is_absent() && !seen.insert(member.text()) {
            errors.push(FieldError::duplicate(member.path, member.value.clone()));
        }
    }
}

/// A count that is not negative, or a percentage up to 100.
pub(super) fn count_or_percent(at: &At<'_>, errors: &mut Vec<FieldError>) {
    match at.value {
        Value::Number(_) if at.int().is_some_and(|count| count < 0) => {
            errors.push(at.invalid("must be greater than or equal to 0"));
        }
        Value::String(text) => match text.strip_suffix('%').map(str::parse::<u32>) {
            Some(Ok(percent)) if percent > 100 => errors.push(at.invalid("must not be greater than 100%")),
            Some(Ok(_)) => {}
            _ => errors.push(at.invalid(
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            )),
        },
        _ => {}
    }
}
