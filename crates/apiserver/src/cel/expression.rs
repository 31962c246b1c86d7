//! Expressions of admission: conditions of webhooks, and everything that policies say.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use serde_json::Value;

use super::{
    authority::{self, Authority},
    check::Declared,
    engine::{Answer, EvaluationError, Program, Scope, Variable},
    kind_type::KindType,
    surroundings,
    types::Type,
    value,
};

/// The variable by which expressions ask who may do what with the resource of the request.
pub(super) const REQUEST_RESOURCE: &str = "authorizer.requestResource";

/// What all expressions that see the same facts may cost together.
const COST_MAX: u64 = 10_000_000;
/// What all conditions of a webhook or of a policy may cost together.
const CONDITIONS_COST_MAX: u64 = 2_500_000;

/// What an expression may name beyond what all may, and what it is for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Names<'a> {
    /// Whether there are parameters.
    pub(crate) params: bool,
    /// The variables that come before it.
    pub(crate) variables: Option<&'a [(String, Expression)]>,
    pub(crate) purpose: Purpose,
    /// The types of what is seen; anything if nothing is said.
    pub(crate) known: Option<&'a Known>,
}

/// The types of objects and parameters.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) object: KindType,
    pub(crate) params: Option<KindType>,
}

/// What an expression is for, which says what it must yield.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It says whether something holds.
    #[default]
    Condition,
    /// It says what to tell whoever is refused.
    Message,
    /// It says what to note for the audit log.
    Annotation,
    /// Others use it.
    Variable,
    /// It makes fields that are applied.
    Configuration,
    /// It makes the operations of a patch.
    Patch,
    /// It is only looked at, whatever it yields.
    TypeCheck,
}

impl Purpose {
    /// What an expression may yield; anything if nothing is said.
    fn results(self) -> Vec<Type> {
        match self {
            Self::Condition => vec![Type::Bool],
            Self::Message => vec![Type::Text],
            Self::Annotation => vec![Type::Text, Type::Null],
            Self::Variable | Self::TypeCheck => Vec::new(),
            Self::Configuration => vec![Type::structure("Object", [])],
            Self::Patch => vec![Type::list(Type::structure("JSONPatch", []))],
        }
    }
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    text: String,
    program: Program,
}

/// Why an expression yields nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum ExpressionError {
    #[error("expression '{text}' resulted in error: {source}")]
    Failed { text: String, source: EvaluationError },
    #[error("validation failed due to running out of cost budget, no further validation rules will be run")]
    Budget,
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn compile(text: &str, names: Names<'_>) -> Result<Self, String> {
        let Names { params, variables, purpose, known: types } = names;
        let object = types.map_or(Type::Dyn, |types| types.object.0.clone());
        let params_type = types.and_then(|types| types.params.clone()).map_or(Type::Dyn, |params| params.0);
        let mut known = vec![("object", object.clone()), ("oldObject", object)];
        known.extend([("request", surroundings::request()), ("namespaceObject", surroundings::namespace())]);
        known.extend(params.then_some(("params", params_type)));
        if purpose != Purpose::Message {
            known.push(("authorizer", Type::Named("kubernetes.authorization.Authorizer")));
        }
        if !matches!(purpose, Purpose::Message | Purpose::TypeCheck) {
            known.push((REQUEST_RESOURCE, Type::Named("kubernetes.authorization.ResourceCheck")));
        }
        known.extend(variables.map(|variables| {
            let types =
                variables.iter().map(|(name, variable)| (name.clone(), variable.program.result().of_variable()));
            ("variables", Type::structure("kubernetes.variables", types))
        }));
        let makes_objects = matches!(purpose, Purpose::Configuration | Purpose::Patch);
        let program = Program::compile(text, Declared { names: &known, root: None, makes_objects })?;
        fitting(program.result(), &purpose.results())?;
        Ok(Self { text: text.trim().to_owned(), program })
    }

    /// What the expression yields.
    pub(crate) fn evaluate(&self, facts: &Facts) -> Result<Answer, ExpressionError> {
        let (answer, cost) = self.program.evaluate(&facts.scope);
        facts.pay(cost)?;
        answer.map_err(|source| self.failed(source))
    }

    /// What the expression yields, which must be a bool.
    pub(crate) fn holds(&self, facts: &Facts) -> Result<bool, ExpressionError> {
        match self.evaluate(facts)? {
            Answer::Bool(holds) => Ok(holds),
            _ => Err(self.failed(EvaluationError::Failed("must evaluate to bool".to_owned()))),
        }
    }

    fn failed(&self, source: EvaluationError) -> ExpressionError {
        ExpressionError::Failed { text: self.text.clone(), source }
    }

    /// The expression as it is written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Refuses what yields something else than is wanted.
fn fitting(found: &Type, wanted: &[Type]) -> Result<(), String> {
    if wanted.is_empty() || wanted.contains(found) {
        return Ok(());
    }
    let names: Vec<String> = wanted.iter().map(Type::result_name).collect();
    let found = found.result_name();
    match &names[..] {
        [only] => Err(format!("must evaluate to {only} but got {found}")),
        _ => Err(format!("must evaluate to one of [{}] but got {found}", names.join(" "))),
    }
}

/// What an expression knows of a request.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    scope: Scope,
    /// What expressions may still cost.
    budget: Arc<AtomicU64>,
}

impl Facts {
    /// The facts of a request, as `AdmissionReview` has it.
    pub(crate) fn new(request: &Value, authority: Authority) -> Self {
        let mut facts = Self { scope: Scope::default(), budget: Arc::new(COST_MAX.into()) };
        for name in ["object", "oldObject"] {
            facts.set(name, request.get(name).unwrap_or(&Value::Null));
        }
        facts.set("request", request);
        facts.set("namespaceObject", &Value::Null);
        facts.scope.bound.push(("authorizer", authority::value(&authority)));
        facts.scope.authority = Some(authority);
        facts
    }

    /// The same facts for conditions, which have a budget of their own.
    #[must_use]
    pub(crate) fn for_conditions(&self) -> Self {
        Self { scope: self.scope.clone(), budget: Arc::new(CONDITIONS_COST_MAX.into()) }
    }

    fn pay(&self, cost: u64) -> Result<(), ExpressionError> {
        let paid = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(cost));
        if paid.is_err() {
            self.budget.store(0, Ordering::Relaxed);
        }
        paid.map(drop).map_err(|_| ExpressionError::Budget)
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
        self.scope.variables = variables.collect::<Vec<_>>().into();
        self
    }

    /// With another object in place of the one of the request.
    pub(crate) fn replace_object(&mut self, object: &Value) {
        self.set("object", object);
        let again = self.scope.variables.iter().map(|variable| Variable {
            name: variable.name.clone(),
            program: variable.program.clone(),
            value: OnceLock::new(),
        });
        self.scope.variables = again.collect::<Arc<[_]>>();
    }

    fn set(&mut self, name: &'static str, new: &Value) {
        self.scope.bound.retain(|(known, _)| *known != name);
        self.scope.bound.push((name, value::plain(new)));
    }
}
