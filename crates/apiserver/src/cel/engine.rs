//! The one door to the CEL library: compile, evaluate, limit.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
};

use kube_cel::cel::{ExecutionError, IdedExpr, Value as CelValue, objects::OptionalValue, parser::Parser};

use super::{
    authority::Authority,
    check::{self, Declared},
    depth, library, macros, rewrite,
    types::{self, Type},
    value,
};

/// The longest accepted expression.
const EXPRESSION_BYTES_MAX: usize = 64 * 1024;
/// The longest text that an expression may make.
const TEXT_BYTES_MAX: usize = 64 << 20;

thread_local! {
    /// What the expression that runs on this thread sees.
    static CURRENT: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(super) struct Program {
    inner: Arc<IdedExpr>,
    shape: check::Shape,
    /// The type of what it yields, if that is certain and a scalar.
    result: Option<&'static str>,
}

/// What an expression sees.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// The variables.
    pub(super) bound: Vec<(&'static str, CelValue)>,
    /// The number of members of the largest list or map or string in them.
    pub(super) largest: usize,
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
    pub(super) value: OnceLock<Result<CelValue, ExecutionError>>,
}

/// The variable `name` of the expression that runs.
pub(super) fn variable(name: &str) -> Result<CelValue, ExecutionError> {
    let scope = CURRENT.with_borrow(Clone::clone).unwrap_or_default();
    let unknown = || ExecutionError::NoSuchKey(Arc::new(name.to_owned()));
    let variable = scope.variables.iter().find(|variable| variable.name == name).ok_or_else(unknown)?;
    variable.value.get_or_init(|| resolve(&variable.program.inner, &scope)).clone()
}

/// Who answers for `authorizer` in the expression that runs.
pub(super) fn authority() -> Option<Authority> {
    CURRENT.with_borrow(|scope| scope.as_ref().and_then(|scope| scope.authority.clone()))
}

/// A value that may be absent, as expressions see it.
pub(super) fn optional(value: Option<CelValue>) -> CelValue {
    CelValue::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
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
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(format!("compilation failed: expression is longer than {EXPRESSION_BYTES_MAX} bytes"));
        }
        depth::check(text).map_err(|error| format!("compilation failed: {error}"))?;
        let parser = Parser::new().enable_optional_syntax(true);
        let mut inner = parser.parse(text).map_err(|error| format!("compilation failed: {error}"))?;
        macros::expand(&mut inner);
        let shape = check::run(&inner, declared).map_err(|error| format!("compilation failed: {error}"))?;
        let found = types::of(&inner, declared.schema).map_err(|error| format!("compilation failed: {error}"))?;
        let result = match found {
            Type::Scalar(name) => Some(name),
            Type::Unknown | Type::Of(_) => None,
        };
        macros::flatten_messages(&mut inner);
        rewrite::run(&mut inner);
        Ok(Self { inner: Arc::new(inner), shape, result })
    }

    /// Whether the expression surely yields something other than a `wanted`.
    pub(super) fn surely_yields_other_than(&self, wanted: &str) -> bool {
        self.result.is_some_and(|found| found != wanted)
    }

    /// Whether the expression looks at the value before an update.
    pub(super) fn uses_old_self(&self) -> bool {
        self.shape.uses_old_self
    }

    /// Evaluates the expression.
    pub(super) fn evaluate(&self, scope: &Scope) -> Result<Answer, EvaluationError> {
        let text_bytes = self.shape.text_bytes(scope.largest);
        if text_bytes > TEXT_BYTES_MAX {
            return Err(EvaluationError::CostLimit);
        }
        let turn_bytes = self.shape.turn_bytes(scope.largest);
        library::open_account(turn_bytes);
        CURRENT.set(Some(scope.clone()));
        // A rule must not take the server down, whatever the interpreter makes of it.
        let answer = catch_unwind(AssertUnwindSafe(|| run(&self.inner, scope)));
        CURRENT.set(None);
        if library::is_spent() {
            return Err(EvaluationError::CostLimit);
        }
        answer.unwrap_or_else(|_| Err(EvaluationError::Failed("the interpreter failed".to_owned())))
    }
}

fn run(program: &IdedExpr, scope: &Scope) -> Result<Answer, EvaluationError> {
    match resolve(program, scope) {
        Ok(CelValue::Null) => Ok(Answer::Null),
        Ok(CelValue::Bool(value)) => Ok(Answer::Bool(value)),
        Ok(CelValue::String(text)) => Ok(Answer::Text(text.to_string())),
        Ok(other) => Ok(Answer::Other(value::json(&other))),
        Err(error) => Err(failure(&error)),
    }
}

fn resolve(program: &IdedExpr, scope: &Scope) -> Result<CelValue, ExecutionError> {
    library::with(|library| {
        let mut context = library.new_inner_scope();
        for (name, value) in &scope.bound {
            context.add_variable_from_value(*name, value.clone());
        }
        context.resolve(program)
    })
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
        ExecutionError::FunctionError { function, message } => format!("{function}: {message}"),
        _ => "evaluation failed".to_owned(),
    };
    EvaluationError::Failed(text)
}
