//! Checking an object by the rules: transitions, ratcheting, messages.

use serde_json::Value;

use super::{
    engine::{Answer, EvaluationError, Program, Scope},
    operation::optional,
    rule::Rule,
    tree::{Node, Rules},
    value,
};

/// What all rules together may cost for one object.
const OBJECT_COST_MAX: u64 = 10_000_000;
/// The longest message that an expression may yield.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
/// The most violations that are reported.
const VIOLATIONS_MAX: usize = 100;

/// A rule that does not hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Violation {
    /// The path of the field; empty for the whole object.
    pub(crate) path: String,
    /// Which kind of field error it is.
    pub(crate) kind: ViolationKind,
    /// The value to show; none where upstream leaves it out.
    pub(crate) value: Option<Value>,
    /// What is wrong.
    pub(crate) detail: String,
}

/// Which kind of field error a violation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViolationKind {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

/// What checking an object found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Findings {
    /// What makes the object invalid.
    pub(crate) violations: Vec<Violation>,
    /// What does not hold but did not hold before either, in a part that did not change.
    pub(crate) ratcheted: Vec<Violation>,
}

impl Rules {
    /// Checks an object; `old` is what it was before an update.
    pub(crate) fn check(&self, object: &Value, old: Option<&Value>) -> Findings {
        let mut walk = Walk { findings: Findings::default(), left: OBJECT_COST_MAX, over: false };
        if let Some(root) = &self.root {
            let link = Link { old, current: old, ancestor: None };
            walk.node(root, object, link, "");
        }
        walk.findings
    }
}

/// How a value is tied to what it was before the update.
#[derive(Clone, Copy)]
struct Link<'a> {
    /// What transition rules see.
    old: Option<&'a Value>,
    /// What an unchanged value is told by.
    current: Option<&'a Value>,
    /// The nearest value above that can be compared: new and old.
    ancestor: Option<(&'a Value, &'a Value)>,
}

impl<'a> Link<'a> {
    fn unchanged(&self, new: &Value) -> bool {
        match (self.current, self.ancestor) {
            (Some(old), _) => old == new,
            (None, Some((new, old))) => new == old,
            (None, None) => false,
        }
    }

    fn child(&self, new: &'a Value, old: Option<&'a Value>) -> Link<'a> {
        let ancestor = self.current.map(|old| (new, old)).or(self.ancestor);
        Link { old, current: old.filter(|_| self.current.is_some()), ancestor }
    }
}

/// A value, its rules and its path.
#[derive(Clone, Copy)]
struct Place<'a> {
    node: &'a Node,
    new: &'a Value,
    path: &'a str,
}

struct Walk {
    findings: Findings,
    /// What rules may still cost.
    left: u64,
    over: bool,
}

impl Walk {
    fn node(&mut self, node: &Node, new: &Value, link: Link<'_>, path: &str) {
        if new.is_null() || self.over {
            return;
        }
        self.rules(node, new, link, path);
        for branch in &node.all_of {
            // Branches are not ratcheted by their own value, as upstream.
            self.node(branch, new, Link { current: None, ..link }, path);
        }
        match new {
            Value::Object(members) => {
                for (name, value) in members {
                    let old = link.old.and_then(|old| old.get(name));
                    let next = link.child(new, old);
                    if let Some(child) = node.properties.get(name) {
                        self.node(child, value, next, &join(path, name));
                    } else if let Some(child) = &node.additional {
                        self.node(child, value, next, &format!("{path}[{name}]"));
                    }
                }
            }
            Value::Array(items) => {
                let Some(child) = &node.items else { return };
                for (index, value) in items.iter().enumerate() {
                    let old = correlated(node, value, link.old);
                    self.node(child, value, link.child(new, old), &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, node: &Node, new: &Value, link: Link<'_>, path: &str) {
        if node.rules.is_empty() {
            return;
        }
        let this = value::convert(new, &node.schema);
        let old = link.old.filter(|old| !old.is_null()).map(|old| value::convert(old, &node.schema));
        for rule in &node.rules {
            if self.over || (rule.program.uses_old_self() && old.is_none() && !rule.optional_old_self) {
                continue;
            }
            let mut scope = Scope { bound: vec![("self", this.clone())], ..Scope::default() };
            match (rule.optional_old_self, &old) {
                (true, old) => scope.bound.push(("oldSelf", optional(old.clone()))),
                (false, Some(old)) => scope.bound.push(("oldSelf", old.clone())),
                (false, None) => {}
            }
            if let Some(violation) = self.rule(rule, &scope, Place { node, new, path }) {
                let ratchet = !rule.program.uses_old_self() && link.unchanged(new);
                self.report(violation, ratchet);
            }
        }
    }

    /// Evaluates one rule; what comes back is a rule that yields false.
    fn rule(&mut self, rule: &Rule, scope: &Scope, place: Place<'_>) -> Option<Violation> {
        let Place { node, new, path } = place;
        let type_name = node.schema.get("type").and_then(Value::as_str).unwrap_or_default();
        let invalid = |detail: String| Violation {
            path: path.to_owned(),
            kind: ViolationKind::Invalid,
            value: Some(Value::from(type_name)),
            detail,
        };
        let (answer, cost) = rule.program.evaluate(scope);
        if !self.pay(cost) {
            let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
            self.report(invalid(detail.into()), false);
            return None;
        }
        let label = rule.label();
        let failure = match answer {
            Ok(Answer::Bool(true)) => return None,
            Ok(Answer::Bool(false)) => {
                let detail = self.message(rule, scope);
                let shown = (!matches!(type_name, "object" | "array")).then(|| new.clone());
                return Some(violation(rule, path, shown, detail));
            }
            Ok(_) => format!("cel expression must evaluate to a bool evaluating rule: {label}"),
            Err(error @ EvaluationError::Overload) => format!(
                "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {label}"
            ),
            Err(error @ EvaluationError::CostLimit) => {
                self.over = true;
                format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {label}"
                )
            }
            Err(EvaluationError::Failed(text)) => format!("{text} evaluating rule: {label}"),
        };
        self.report(invalid(failure), false);
        None
    }

    /// Counts a cost; false if that is too much, which ends all.
    fn pay(&mut self, cost: u64) -> bool {
        match self.left.checked_sub(cost) {
            Some(left) => self.left = left,
            None => self.over = true,
        }
        !self.over
    }

    fn message(&mut self, rule: &Rule, scope: &Scope) -> String {
        let evaluated = rule.message_program.as_ref().and_then(|program| self.evaluated_message(program, scope));
        evaluated.or_else(|| rule.message.clone()).unwrap_or_else(|| format!("failed rule: {}", rule.text))
    }

    fn evaluated_message(&mut self, program: &Program, scope: &Scope) -> Option<String> {
        let (answer, cost) = program.evaluate(scope);
        let (true, Ok(Answer::Text(text))) = (self.pay(cost), answer) else { return None };
        let text = text.trim();
        let fits = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
        fits.then(|| text.to_owned())
    }

    fn report(&mut self, violation: Violation, ratchet: bool) {
        let list = if ratchet { &mut self.findings.ratcheted } else { &mut self.findings.violations };
        if list.len() < VIOLATIONS_MAX {
            list.push(violation);
        }
    }
}

fn violation(rule: &Rule, path: &str, shown: Option<Value>, detail: String) -> Violation {
    let path = rule.field_path.as_deref().map_or_else(|| path.to_owned(), |below| join(path, below));
    let kind = match rule.reason.as_deref() {
        Some("FieldValueForbidden") => ViolationKind::Forbidden,
        Some("FieldValueRequired") => ViolationKind::Required,
        Some("FieldValueDuplicate") => ViolationKind::Duplicate,
        _ => ViolationKind::Invalid,
    };
    let detail = if kind == ViolationKind::Duplicate { String::new() } else { detail };
    Violation { path, kind, value: shown, detail }
}

/// The old item of an associative list that has the same keys.
fn correlated<'a>(node: &Node, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
    let keys = node.list_keys.as_ref()?;
    let key_of = |item: &'_ Value| -> Vec<Option<Value>> {
        keys.iter().map(|(name, default)| item.get(name).cloned().or_else(|| default.clone())).collect()
    };
    let wanted = key_of(item);
    old?.as_array()?.iter().find(|candidate| key_of(candidate) == wanted)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() || name.starts_with('[') { format!("{path}{name}") } else { format!("{path}.{name}") }
}
