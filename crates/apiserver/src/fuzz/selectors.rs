//! Label and field selectors.

use serde_json::json;

use super::line;
use crate::rest::{FieldSelector, LabelSelector};

/// A selector and a label, on a line each: a selector that is written is the same when it is read again.
pub(super) fn selectors(bytes: &[u8]) {
    let (selector, label) = line(bytes);
    let (Ok(selector), Ok(label)) = (std::str::from_utf8(selector), std::str::from_utf8(label)) else { return };
    let (key, value) = label.split_once('=').unwrap_or((label, ""));
    let object = json!({"metadata": {"name": value, "labels": {key: value}}, "spec": {key: value}});
    if let Ok(labels) = LabelSelector::parse(selector) {
        let again = LabelSelector::parse(&labels.to_string()).unwrap_or_else(|error| panic!("{labels}: {error:?}"));
        assert_eq!(again, labels);
        // Of commas alone kube-apiserver says that they are no selector; fields are selected by them all the same.
        let is_blank = selector.chars().all(|letter| " \t\r\n".contains(letter));
        assert_eq!(labels.is_empty(), is_blank, "{selector:?}");
        let _ = labels.matches(&object);
    }
    if let Ok(fields) = FieldSelector::parse(selector) {
        let again = FieldSelector::parse(&fields.to_string()).unwrap_or_else(|error| panic!("{fields}: {error:?}"));
        assert_eq!(again, fields);
        let _ = fields.matches(&object);
    }
}
