//! Expressions of admission: conditions of webhooks, and everything that policies say.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::{
    authority::{self, Authority},
    check::Declared,
    engine::{Answer, EvaluationError, Program, Scope, Variable},
    value,
};

/// What all expressions of admission may name.
const NAMES: [&str; 5] = ["object", "oldObject", "request", "namespaceObject", "authorizer"];

/// What an expression may name beyond what all may.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Names<'a> {
    /// Whether there are parameters.
    pub(crate) params: bool,
    /// The variables that come before it.
    pub(crate) variables: Option<&'a [&'a str]>,
    /// Whether it may make objects and patches.
    pub(crate) makes_objects: bool,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    text: String,
    program: Program,
}

/// Why an expression yields nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("expression '{text}' resulted in error: {source}")]
pub(crate) struct ExpressionError {
    text: String,
    source: EvaluationError,
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn compile(text: &str, names: Names<'_>) -> Result<Self, String> {
        let mut known = NAMES.to_vec();
        known.extend(names.params.then_some("params"));
        known.extend(names.variables.map(|_| "variables"));
        let declared = Declared {
            names: &known,
            schema: &Value::Null,
            variables: names.variables.unwrap_or_default(),
            makes_objects: names.makes_objects,
        };
        let program = Program::compile(text, declared)?;
        Ok(Self { text: text.trim().to_owned(), program })
    }

    /// What the expression yields.
    pub(crate) fn evaluate(&self, facts: &Facts) -> Result<Answer, ExpressionError> {
        self.program.evaluate(&facts.0).map_err(|source| ExpressionError { text: self.text.clone(), source })
    }

    /// What the expression yields, which must be a bool.
    pub(crate) fn holds(&self, facts: &Facts) -> Result<bool, ExpressionError> {
        match self.evaluate(facts)? {
            Answer::Bool(holds) => Ok(holds),
            _ => {
                let source = EvaluationError::Failed("must evaluate to bool".to_owned());
                Err(ExpressionError { text: self.text.clone(), source })
            }
        }
    }

    /// The expression as it is written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// What an expression knows of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(Scope);

impl Facts {
    /// The facts of a request, as `AdmissionReview` has it.
    pub(crate) fn new(request: &Value, authority: Authority) -> Self {
        let mut facts = Self::default();
        for name in ["object", "oldObject"] {
            facts.set(name, request.get(name).unwrap_or(&Value::Null));
        }
        facts.set("request", request);
        facts.set("namespaceObject", &Value::Null);
        facts.0.bound.push(("authorizer", authority::value(&authority)));
        facts.0.authority = Some(authority);
        facts
    }

    /// With the namespace of the request.
    #[must_use]
    pub(crate) fn in_namespace(mut self, namespace: &Value) -> Self {
        self.set("namespaceObject", namespace);
        self
    }

    /// With parameters.
    #[must_use]
    pub(crate) fn with_params(mut self, params: &Value) -> Self {
        self.set("params", params);
        self
    }

    /// With variables that are computed when they are asked for.
    #[must_use]
    pub(crate) fn with_variables(mut self, variables: &[(String, Expression)]) -> Self {
        let variables = variables.iter().map(|(name, expression)| Variable {
            name: name.clone(),
            program: expression.program.clone(),
            value: OnceLock::new(),
        });
        self.0.variables = variables.collect::<Vec<_>>().into();
        self
    }

    /// With another object in place of the one of the request.
    pub(crate) fn replace_object(&mut self, object: &Value) {
        self.set("object", object);
        let again = self.0.variables.iter().map(|variable| Variable {
            name: variable.name.clone(),
            program: variable.program.clone(),
            value: OnceLock::new(),
        });
        self.0.variables = again.collect::<Arc<[_]>>();
    }

    fn set(&mut self, name: &'static str, new: &Value) {
        self.0.largest = self.0.largest.max(value::largest(new));
        self.0.bound.retain(|(known, _)| *known != name);
        self.0.bound.push((name, value::plain(new)));
    }
}
