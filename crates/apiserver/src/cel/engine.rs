//! The one door to expressions: compile, evaluate, limit.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
};

use kube_cel::cel::{ExecutionError, IdedExpr, Value as CelValue};

use super::{
    authority::Authority,
    check::{self, Checked, Declared},
    constants, estimate,
    evaluate::Evaluation,
    operation::Outcome,
    parser, source,
    types::Type,
    value,
};

/// What one expression may cost when it runs.
pub(super) const CALL_COST_MAX: u64 = 1_000_000;

thread_local! {
    /// Who answers for `authorizer` in the expression that runs on this thread.
    static AUTHORITY: RefCell<Option<Authority>> = const { RefCell::new(None) };
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(super) struct Program {
    inner: Arc<IdedExpr>,
    checked: Arc<Checked>,
    /// The most that it can cost; none where nothing is known of sizes.
    cost_max: Option<u64>,
}

/// What an expression sees.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// The variables.
    pub(super) bound: Vec<(&'static str, CelValue)>,
    /// What `variables` has.
    pub(super) variables: Arc<[Variable]>,
    /// Who answers for `authorizer`.
    pub(super) authority: Option<Authority>,
}

/// A variable that is computed when it is first asked for.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) program: Program,
    pub(super) value: OnceLock<Outcome>,
}

impl Scope {
    /// A variable, and what computing it cost now.
    pub(super) fn variable(&self, name: &str) -> (Outcome, u64) {
        let Some(variable) = self.variables.iter().find(|variable| variable.name == name) else {
            return (Err(ExecutionError::NoSuchKey(Arc::new(name.to_owned()))), 0);
        };
        let mut cost = 0;
        let value = variable.value.get_or_init(|| {
            let mut evaluation = Evaluation::new(self, &variable.program.checked, CALL_COST_MAX);
            let value = evaluation.visit(&variable.program.inner);
            let (spent, over) = evaluation.account();
            cost = spent;
            if over { Err(too_expensive()) } else { value }
        });
        (value.clone(), cost)
    }
}

fn too_expensive() -> ExecutionError {
    ExecutionError::FunctionError {
        function: "operation cancelled".to_owned(),
        message: "actual cost limit exceeded".to_owned(),
    }
}

/// Who answers for `authorizer` in the expression that runs.
pub(super) fn authority() -> Option<Authority> {
    AUTHORITY.with_borrow(Clone::clone)
}

/// What an expression yields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Null,
    Bool(bool),
    Text(String),
    /// Something else; none if JSON has nothing like it.
    Other(Option<serde_json::Value>),
}

/// Why an expression yields nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum EvaluationError {
    #[error("no such overload")]
    Overload,
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    #[error("{0}")]
    Failed(String),
}

impl Program {
    /// Compiles an expression over what is `declared`.
    pub(super) fn compile(text: &str, declared: Declared<'_>) -> Result<Self, String> {
        let failed = |issues| format!("compilation failed: {}", source::describe(text, issues));
        let mut parsed = parser::parse(text).map_err(failed)?;
        let mut checked = check::run(&mut parsed, declared).map_err(failed)?;
        constants::check(&parsed, &mut checked).map_err(failed)?;
        constants::fold(&parsed.root).map_err(|error| format!("program instantiation failed: {}", failure(&error)))?;
        let inner = parsed.root;
        let cost_max = declared.root.map(|root| estimate::cost_max(&inner, &checked, root));
        Ok(Self { inner: Arc::new(inner), checked: Arc::new(checked), cost_max })
    }

    /// The type of what it yields.
    pub(super) fn result(&self) -> &Type {
        self.checked.of(&self.inner)
    }

    /// Whether the expression looks at the value before an update.
    pub(super) fn uses_old_self(&self) -> bool {
        self.checked.uses_old_self
    }

    /// The most that it can cost.
    pub(super) fn cost_max(&self) -> Option<u64> {
        self.cost_max
    }

    /// Evaluates the expression; the number is what that cost.
    pub(super) fn evaluate(&self, scope: &Scope) -> (Result<Answer, EvaluationError>, u64) {
        AUTHORITY.set(scope.authority.clone());
        let mut evaluation = Evaluation::new(scope, &self.checked, CALL_COST_MAX);
        // A rule must not take the server down, whatever a library makes of it.
        let value = catch_unwind(AssertUnwindSafe(|| evaluation.visit(&self.inner)));
        AUTHORITY.set(None);
        let (cost, over) = evaluation.account();
        let answer = match value {
            _ if over => Err(EvaluationError::CostLimit),
            Ok(value) => value.map(answer).map_err(|error| failure(&error)),
            Err(_) => Err(EvaluationError::Failed("the interpreter failed".to_owned())),
        };
        (answer, cost)
    }
}

fn answer(value: CelValue) -> Answer {
    match value {
        CelValue::Null => Answer::Null,
        CelValue::Bool(value) => Answer::Bool(value),
        CelValue::String(text) => Answer::Text(text.to_string()),
        other => Answer::Other(value::json(&other)),
    }
}

/// Says what went wrong as upstream says it, without the values (they may be secret).
fn failure(error: &ExecutionError) -> EvaluationError {
    let text = match error {
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnexpectedType { .. } => return EvaluationError::Overload,
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(CelValue::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::IndexOutOfBounds(_) => "index out of bounds".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("undeclared reference to '{name}'"),
        ExecutionError::FunctionError { function, message } if function.is_empty() => message.clone(),
        ExecutionError::FunctionError { function, message } => format!("{function}: {message}"),
        _ => "evaluation failed".to_owned(),
    };
    EvaluationError::Failed(text)
}
