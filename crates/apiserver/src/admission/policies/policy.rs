//! A policy, compiled.

use serde::Deserialize;
use serde_json::Value;

use super::super::criteria::Criteria;
use crate::{
    cel::{Expression, Names, Purpose},
    object::Object,
};

/// A policy, compiled.
#[derive(Debug)]
pub(in crate::admission) struct Policy {
    pub(super) name: String,
    pub(super) ignores_failures: bool,
    pub(super) parameter_kind: Option<ParameterKind>,
    pub(super) criteria: Criteria,
    /// What it says; an error stands for what cannot be compiled.
    pub(super) body: Result<Body, String>,
}

/// The kind of a policy's parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ParameterKind {
    pub(super) api_version: String,
    pub(super) kind: String,
}

/// What a policy says.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) conditions: Vec<Expression>,
    pub(super) variables: Vec<(String, Expression)>,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<(String, Expression)>,
    pub(super) mutations: Vec<Mutation>,
    /// Whether the policy wants to see what others change after it.
    pub(super) is_reinvoked: bool,
}

/// One thing that must hold.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: Expression,
    pub(super) message: Option<String>,
    pub(super) message_expression: Option<Expression>,
    pub(super) reason: Option<String>,
}

/// One change.
#[derive(Debug)]
pub(super) enum Mutation {
    /// An object whose fields are merged into the one of the request.
    Apply(Expression),
    /// The operations of a JSON patch.
    Patch(Expression),
}

/// An expression that is somewhere in a policy.
#[derive(Clone, Copy, Debug)]
pub(in crate::admission) struct Place<'a> {
    /// The path of the expression, such as `spec.validations[0].expression`.
    pub(in crate::admission) path: &'a str,
    pub(in crate::admission) text: &'a str,
}

impl Policy {
    /// Reads and compiles a policy of either kind.
    pub(in crate::admission) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        Self {
            name: object.name().to_owned(),
            ignores_failures: spec["failurePolicy"] == "Ignore",
            parameter_kind: ParameterKind::deserialize(&spec["paramKind"]).ok(),
            criteria: Criteria::read(&spec["matchConstraints"]),
            body: compile(spec, &mut |place, result| result.map_err(|error| (place.path.to_owned(), error)))
                .map_err(|(_, error)| error),
        }
    }

    /// Compiles every expression of a policy and tells `sink` what is wrong with it.
    pub(in crate::admission) fn check(object: &Value, mut sink: impl FnMut(Place<'_>, String)) {
        let mut tell = |place: Place<'_>, result: Result<Expression, String>| -> Result<Expression, ()> {
            match result {
                Ok(expression) => Ok(expression),
                Err(error) => {
                    sink(place, error);
                    // What follows is compiled as if this were fine.
                    Expression::compile("dyn(true)", Names { purpose: Purpose::Variable, ..Names::default() })
                        .map_err(drop)
                }
            }
        };
        let _ = compile(&object["spec"], &mut tell);
    }
}

type Sink<'a, E> = dyn FnMut(Place<'_>, Result<Expression, String>) -> Result<Expression, E> + 'a;

fn compile<E>(spec: &Value, sink: &mut Sink<'_, E>) -> Result<Body, E> {
    let params = !spec["paramKind"].is_null();
    let mut take = |path: String, text: &str, names: Names<'_>| {
        sink(Place { path: &path, text }, Expression::compile(text, names))
    };
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let list = |field: &str| spec[field].as_array().cloned().unwrap_or_default().into_iter().enumerate();
    let mut body = Body { is_reinvoked: spec["reinvocationPolicy"] == "IfNeeded", ..Body::default() };
    for (index, raw) in list("matchConditions") {
        let path = format!("spec.matchConditions[{index}].expression");
        body.conditions.push(take(path, &text(&raw, "expression"), Names { params, ..Names::default() })?);
    }
    for (index, raw) in list("variables") {
        let path = format!("spec.variables[{index}].expression");
        let names = Names { params, variables: Some(&body.variables), purpose: Purpose::Variable, known: None };
        let compiled = take(path, &text(&raw, "expression"), names)?;
        body.variables.push((text(&raw, "name"), compiled));
    }
    let variables = body.variables.clone();
    let variables = (!variables.is_empty()).then_some(&variables[..]);
    let names = |purpose| Names { params, variables, purpose, known: None };
    for (index, raw) in list("validations") {
        let path = |field: &str| format!("spec.validations[{index}].{field}");
        let filled = |field: &str| Some(text(&raw, field).trim().to_owned()).filter(|text| !text.is_empty());
        let expression = take(path("expression"), &text(&raw, "expression"), names(Purpose::Condition))?;
        let message = text(&raw, "messageExpression");
        let message_expression = match message.trim().is_empty() {
            true => None,
            false => Some(take(path("messageExpression"), &message, names(Purpose::Message))?),
        };
        let (message, reason) = (filled("message"), filled("reason"));
        body.validations.push(Validation { expression, message, message_expression, reason });
    }
    for (index, raw) in list("auditAnnotations") {
        let path = format!("spec.auditAnnotations[{index}].valueExpression");
        let expression = take(path, &text(&raw, "valueExpression"), names(Purpose::Annotation))?;
        body.annotations.push((text(&raw, "key"), expression));
    }
    for (index, raw) in list("mutations") {
        let path = |field: &str| format!("spec.mutations[{index}].{field}.expression");
        body.mutations.push(match raw["patchType"] == "JSONPatch" {
            true => {
                let text = text(&raw["jsonPatch"], "expression");
                Mutation::Patch(take(path("jsonPatch"), &text, names(Purpose::Patch))?)
            }
            false => {
                let text = text(&raw["applyConfiguration"], "expression");
                Mutation::Apply(take(path("applyConfiguration"), &text, names(Purpose::Configuration))?)
            }
        });
    }
    Ok(body)
}
