//! One rule: what it says, compiled.

use serde_json::Value;

use super::{check::Declared, engine::Program};

/// The reasons that a rule may give.
const REASONS: &[&str] = &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

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
    /// The value at fault; none where it is missing.
    pub(crate) value: Option<Value>,
    /// What is wrong.
    pub(crate) detail: String,
}

impl Rule {
    /// Reads and compiles one entry of `x-kubernetes-validations`.
    pub(super) fn compile(
        raw: &Value,
        schema: &Value,
        path: &str,
        uncorrelatable: Option<&str>,
    ) -> Result<Self, CompileError> {
        let text = trimmed(raw, "rule");
        let message = trimmed(raw, "message");
        let message_expression = trimmed(raw, "messageExpression");
        let fail = |member: &str, value: Option<&Value>, detail: &str| {
            Err(CompileError { path: format!("{path}.{member}"), value: value.cloned(), detail: detail.to_owned() })
        };
        let given = |member: &str| raw.get(member);
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return fail("rule", None, "rule is not specified");
        };
        if let Some((value, problem)) = message_problem(message.as_deref(), &text) {
            return fail("message", value.then(|| given("message")).flatten(), problem);
        }
        if message_expression.as_deref() == Some("") {
            return fail("messageExpression", None, "messageExpression must be non-empty if specified");
        }
        let reason = trimmed(raw, "reason");
        if reason.as_deref().is_some_and(|reason| !REASONS.contains(&reason)) {
            let supported = REASONS.iter().map(|reason| format!("{reason:?}")).collect::<Vec<_>>().join(", ");
            return fail("reason", given("reason"), &format!("supported values: {supported}"));
        }
        let field_path = match trimmed(raw, "fieldPath") {
            Some(path) => match normal_field_path(&path, schema) {
                Some(path) => Some(path),
                None => return fail("fieldPath", given("fieldPath"), "must be a valid path"),
            },
            None => None,
        };
        let program = match compiled(&text, schema, "bool") {
            Ok(program) => program,
            Err(detail) => return fail("rule", Some(raw), &detail),
        };
        let message_program = match message_expression.map(|text| compiled(&text, schema, "string")).transpose() {
            Ok(program) => program,
            Err(detail) => return fail("messageExpression", Some(raw), &format!("messageExpression {detail}")),
        };
        let optional_old_self = given("optionalOldSelf").and_then(Value::as_bool);
        match (program.uses_old_self(), uncorrelatable, optional_old_self) {
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

/// A program that may yield a `wanted`.
fn compiled(text: &str, schema: &Value, wanted: &str) -> Result<Program, String> {
    let program = Program::compile(text, Declared::in_rule(schema))?;
    match program.surely_yields_other_than(wanted) {
        true => Err(format!("must evaluate to a {wanted}")),
        false => Ok(program),
    }
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
