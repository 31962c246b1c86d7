//! One rule: what it says, compiled.

use std::sync::Arc;

use serde_json::Value;

use super::{budget::Costs, check::Declared, declaration::Declaration, engine::Program, types::Type};

/// The reasons that a rule may give.
const REASONS: &[&str] = &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What the type of `self` is called if it has fields. Upstream adds a number, another one each time.
const SELF: &str = "selfType";

/// A compiled rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) text: String,
    pub(super) message: Option<String>,
    pub(super) program: Program,
    pub(super) message_program: Option<Program>,
    pub(super) reason: Option<String>,
    pub(super) field_path: Option<String>,
    pub(super) optional_old_self: bool,
}

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{path}: {detail}")]
pub(crate) struct CompileError {
    /// Where, from the root of the schema, such as `properties[spec].x-kubernetes-validations[0].rule`.
    pub(crate) path: String,
    /// What is wrong with what is there.
    pub(crate) fault: Fault,
    /// What is wrong.
    pub(crate) detail: String,
}

/// What is wrong with what is there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// It is missing.
    Missing,
    /// It cannot be this.
    Invalid(Value),
    /// It must not be.
    Forbidden,
}

impl CompileError {
    /// Something that must not be.
    pub(super) fn forbidden(path: String, detail: String) -> Self {
        Self { path, fault: Fault::Forbidden, detail }
    }
}

/// Where a rule stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    pub(super) schema: &'a Value,
    /// What the schema declares, if rules can see it.
    pub(super) declaration: Option<&'a Arc<Declaration>>,
    /// The list above in which items cannot be told apart.
    pub(super) uncorrelatable: Option<&'a str>,
    /// How many values the rule is for in one object; none if nothing bounds that.
    pub(super) cardinality: Option<u64>,
}

impl Site<'_> {
    /// What a rule costs for all of its values.
    fn total(&self, cost: u64) -> u64 {
        let fitting = || self.declaration.map_or(1, |declaration| declaration.cardinality_max());
        cost.saturating_mul(self.cardinality.unwrap_or_else(fitting))
    }
}

impl Rule {
    /// Reads and compiles one entry of `x-kubernetes-validations`.
    pub(super) fn compile(raw: &Value, site: Site<'_>, path: &str, costs: &mut Costs) -> Result<Self, CompileError> {
        let text = trimmed(raw, "rule");
        let message = trimmed(raw, "message");
        let message_expression = trimmed(raw, "messageExpression");
        let fail = |member: &str, value: Option<&Value>, detail: &str| {
            let fault = value.map_or(Fault::Missing, |value| Fault::Invalid(value.clone()));
            Err(CompileError { path: format!("{path}.{member}"), fault, detail: detail.to_owned() })
        };
        let given = |member: &str| raw.get(member);
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return fail("rule", None, "rule is not specified");
        };
        if let Some((member, value, detail)) = wording_problem(raw, &text) {
            return fail(member, value, &detail);
        }
        let reason = trimmed(raw, "reason");
        let field_path = match trimmed(raw, "fieldPath") {
            Some(path) => match normal_field_path(&path, site.schema) {
                Some(path) => Some(path),
                None => return fail("fieldPath", given("fieldPath"), "must be a valid path"),
            },
            None => None,
        };
        let optional_old_self = given("optionalOldSelf").and_then(Value::as_bool);
        let names = names(site, optional_old_self == Some(true));
        let program = match compiled(&text, site, &names, &Type::Bool) {
            Ok(program) => program,
            Err(detail) => return fail("rule", Some(raw), &detail),
        };
        if let Some(cost) = program.cost_max() {
            costs.add(format!("{path}.rule"), "rule", site.total(cost));
        }
        let message_program = message_expression.map(|text| compiled(&text, site, &names, &Type::Text)).transpose();
        let message_program = match message_program {
            Ok(program) => program,
            Err(detail) => return fail("messageExpression", Some(raw), &format!("messageExpression {detail}")),
        };
        if let Some(cost) = message_program.as_ref().and_then(Program::cost_max) {
            costs.add(format!("{path}.messageExpression"), "messageExpression", cost);
        }
        match (program.uses_old_self(), site.uncorrelatable, optional_old_self) {
            (true, Some(ancestor), _) => {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {ancestor}");
                return fail("rule", given("rule"), &detail);
            }
            (false, _, Some(_)) => {
                return fail(
                    "optionalOldSelf",
                    given("optionalOldSelf"),
                    "may not be set if oldSelf is not used in rule",
                );
            }
            _ => {}
        }
        let optional_old_self = optional_old_self.unwrap_or(false);
        Ok(Self { text, message, program, message_program, reason, field_path, optional_old_self })
    }

    /// What identifies the rule in an error.
    pub(super) fn label(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.text)
    }
}

/// What a rule may name.
fn names(site: Site<'_>, optional_old_self: bool) -> [(&'static str, Type); 2] {
    let this = site.declaration.map_or(Type::Dyn, |declaration| Type::of(declaration, SELF));
    let old = if optional_old_self { Type::optional(this.clone()) } else { this.clone() };
    [("self", this), ("oldSelf", old)]
}

/// A program that may yield a `wanted`.
fn compiled(text: &str, site: Site<'_>, names: &[(&str, Type)], wanted: &Type) -> Result<Program, String> {
    let declared = Declared { names, root: site.declaration, makes_objects: false };
    let program = Program::compile(text, declared)?;
    if program.result() == wanted { Ok(program) } else { Err(format!("must evaluate to a {wanted}")) }
}

/// What is wrong with what a rule says beside its expressions: the member, its value if it is there, and why.
fn wording_problem<'a>(raw: &'a Value, rule: &str) -> Option<(&'static str, Option<&'a Value>, String)> {
    if let Some((is_there, problem)) = message_problem(trimmed(raw, "message").as_deref(), rule) {
        return Some(("message", is_there.then(|| raw.get("message")).flatten(), problem.to_owned()));
    }
    if trimmed(raw, "messageExpression").as_deref() == Some("") {
        return Some(("messageExpression", None, "messageExpression must be non-empty if specified".to_owned()));
    }
    let reason = trimmed(raw, "reason")?;
    let supported = || REASONS.iter().map(|reason| format!("{reason:?}")).collect::<Vec<_>>().join(", ");
    let unknown = !REASONS.contains(&reason.as_str());
    unknown.then(|| ("reason", raw.get("reason"), format!("supported values: {}", supported())))
}

/// What is wrong with a message, and whether it is the message that was given or that none was.
fn message_problem(message: Option<&str>, rule: &str) -> Option<(bool, &'static str)> {
    match message {
        Some("") => Some((true, "must be non-empty if specified")),
        Some(message) if message.contains(['\n', '\r']) => Some((true, "must not contain line breaks")),
        None if rule.contains(['\n', '\r']) => Some((false, "message must be specified if rule contains line breaks")),
        _ => None,
    }
}

fn trimmed(raw: &Value, member: &str) -> Option<String> {
    raw.get(member).and_then(Value::as_str).filter(|text| !text.is_empty()).map(|text| text.trim().to_owned())
}

/// A `fieldPath` such as `.a['b'].c` as it stands in errors: `a[b].c`; `None` if the schema has no such field.
fn normal_field_path(path: &str, schema: &Value) -> Option<String> {
    let parsed = crate::jsonpath::JsonPath::parse(path).ok()?;
    let mut schema = schema;
    let mut normal = String::new();
    for name in parsed.fields()? {
        if let Some(properties) = schema.get("properties") {
            schema = properties.get(name)?;
            if !normal.is_empty() {
                normal.push('.');
            }
            normal.push_str(name);
        } else {
            schema = schema.get("additionalProperties").filter(|schema| schema.is_object())?;
            normal.push_str(&format!("[{name}]"));
        }
    }
    (!normal.is_empty()).then_some(normal)
}
