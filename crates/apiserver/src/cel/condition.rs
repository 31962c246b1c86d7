//! Conditions of admission: whether a webhook or a policy is about a request.

use serde_json::Value;

use super::{
    check::Declared,
    engine::{Answer, EvaluationError, Program, Scope},
    value,
};

/// What conditions may name.
const NAMES: [&str; 4] = ["object", "oldObject", "request", "authorizer"];

/// What an expression knows of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(Scope);

impl Facts {
    /// The facts of a request, as `AdmissionReview` has it.
    pub(crate) fn new(request: &Value) -> Self {
        let mut facts = Self::default();
        for name in ["object", "oldObject"] {
            facts.set(name, request.get(name).unwrap_or(&Value::Null));
        }
        facts.set("request", request);
        facts
    }

    fn set(&mut self, name: &'static str, value: &Value) {
        self.0.largest = self.0.largest.max(value::largest(value));
        self.0.bound.push((name, value::plain(value)));
    }
}

/// A condition by its name.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    name: String,
    program: Program,
}

/// Why it is not known whether a condition holds.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("expression '{name}' resulted in error: {source}")]
pub(crate) struct ConditionError {
    name: String,
    source: EvaluationError,
}

impl Condition {
    /// Compiles an expression that yields a bool.
    ///
    /// # Errors
    /// What is wrong with the expression.
    pub(crate) fn compile(name: &str, expression: &str) -> Result<Self, String> {
        let program = Program::compile(expression, Declared { names: &NAMES, schema: &Value::Null })?;
        Ok(Self { name: name.to_owned(), program })
    }

    /// Whether the condition holds.
    pub(crate) fn holds(&self, facts: &Facts) -> Result<bool, ConditionError> {
        let failed = |source| ConditionError { name: self.name.clone(), source };
        match self.program.evaluate(&facts.0).map_err(failed)? {
            Answer::Bool(holds) => Ok(holds),
            _ => Err(failed(EvaluationError::Failed("cel expression must evaluate to a bool".to_owned()))),
        }
    }
}
