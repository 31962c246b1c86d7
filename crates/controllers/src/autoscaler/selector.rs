//! Label selectors as the text in which a scale carries them: `app=web,tier in (a,b),!old`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::Selector;

/// Reads a selector.
///
/// # Errors
/// The sentence says which part is not understood.
pub(super) fn parse(text: &str) -> Result<Selector, String> {
    let parts = terms(text).into_iter().map(requirement).collect::<Result<Vec<_>, _>>()?;
    let selector = LabelSelector { match_expressions: Some(parts), ..LabelSelector::default() };
    Selector::try_from(selector).map_err(|error| error.to_string())
}

/// Splits at the commas outside of brackets.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let is_border = |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    };
    text.split(is_border).map(str::trim).filter(|term| !term.is_empty()).collect()
}

fn requirement(term: &str) -> Result<LabelSelectorRequirement, String> {
    let made = |key: &str, operator: &str, values: Option<Vec<String>>| LabelSelectorRequirement {
        key: key.trim().to_owned(),
        operator: operator.to_owned(),
        values,
    };
    if let Some((head, list)) = term.split_once('(') {
        let list = list.strip_suffix(')').ok_or_else(|| format!("{term:?} has no closing bracket"))?;
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        let (key, word) = head.trim().rsplit_once(char::is_whitespace).ok_or_else(|| unclear(term))?;
        return match word {
            "in" => Ok(made(key, "In", Some(values))),
            "notin" => Ok(made(key, "NotIn", Some(values))),
            _ => Err(unclear(term)),
        };
    }
    if let Some((key, value)) = term.split_once("!=") {
        return Ok(made(key, "NotIn", Some(vec![value.trim().to_owned()])));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Ok(made(key, "In", Some(vec![value.trim().to_owned()])));
    }
    if term.contains(['<', '>', ' ']) {
        return Err(unclear(term));
    }
    Ok(match term.strip_prefix('!') {
        Some(key) => made(key, "DoesNotExist", None),
        None => made(term, "Exists", None),
    })
}

fn unclear(term: &str) -> String {
    format!("{term:?} is not understood")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::core::SelectorExt;

    use super::*;

    #[test]
    fn every_form_selects_what_it_says() {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned()), ("tier".to_owned(), "a".to_owned())]);
        let check = |text: &str, expect: bool| assert_eq!(parse(text).unwrap().matches(&labels), expect, "{text}");
        check("app=web", true);
        check("app==web,tier in (a, b)", true);
        check("app = other", false);
        check("tier notin (a,b)", false);
        check("tier!=b,missing!=x", true);
        check("app,!missing", true);
        check("missing", false);
        for wrong in ["a>1", "a in (b", "a of (b)", "a b"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
