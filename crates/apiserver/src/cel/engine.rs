//! The one door to the CEL library: compile, evaluate, limit.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, FunctionContext, IdedExpr, Value as CelValue, objects::OptionalValue, parser::Parser,
    },
};

use super::{
    check::{self, Declared},
    rewrite,
};

/// The longest accepted expression.
const EXPRESSION_BYTES_MAX: usize = 64 * 1024;
/// What an expression may spend: a turn of a loop costs [`STEP_COST`] and the bytes of text that it may make.
const BUDGET: usize = 256 << 20;
/// What a turn of a loop costs.
const STEP_COST: usize = 1 << 10;
/// What an item of a list costs that is being made: the interpreter copies the list at every turn.
const ITEM_COST: usize = 16;
/// The longest text that an expression may make.
const TEXT_BYTES_MAX: usize = 64 << 20;

thread_local! {
    static LIBRARY: Context<'static> = library();
    static ACCOUNT: Cell<Account> = const { Cell::new(Account { left: 0, turn_bytes: 0, collected: 0 }) };
}

/// What the expression that runs on this thread may still spend.
#[derive(Clone, Copy)]
struct Account {
    left: usize,
    /// The bytes of text that a turn of a loop may make.
    turn_bytes: usize,
    /// The items that loops have put into lists.
    collected: usize,
}

/// The names of types that rules compare with `type(x)`.
const TYPES: &[&str] = &["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type"];

/// All functions of Kubernetes, and `type`, which the interpreter lacks.
fn library() -> Context<'static> {
    let mut library = Context::default().with_all();
    for name in TYPES {
        library.add_variable_from_value(*name, (*name).to_owned());
    }
    library.add_function("type", |value: CelValue| type_name(&value).to_owned());
    library.add_function(rewrite::STEP, |context: &FunctionContext<'_, '_>| turn(context, 0));
    library.add_function(rewrite::COLLECT, |context: &FunctionContext<'_, '_>| turn(context, 1));
    library
}

/// Pays for a turn of a loop. The interpreter cannot be stopped from outside, so loops stop themselves.
fn turn(context: &FunctionContext<'_, '_>, items: usize) -> Result<CelValue, ExecutionError> {
    let mut account = ACCOUNT.get();
    account.collected += items;
    let copied = account.collected.saturating_mul(items).saturating_mul(ITEM_COST + account.turn_bytes);
    account.left = account.left.saturating_sub(STEP_COST + account.turn_bytes).saturating_sub(copied);
    ACCOUNT.set(account);
    if account.left == 0 { Err(context.error("the budget is spent")) } else { Ok(CelValue::Bool(true)) }
}

fn type_name(value: &CelValue) -> &'static str {
    match value {
        CelValue::Int(_) => "int",
        CelValue::UInt(_) => "uint",
        CelValue::Float(_) => "double",
        CelValue::Bool(_) => "bool",
        CelValue::String(_) => "string",
        CelValue::Bytes(_) => "bytes",
        CelValue::List(_) => "list",
        CelValue::Map(_) => "map",
        CelValue::Null => "null_type",
        _ => "dyn",
    }
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(super) struct Program {
    inner: Arc<IdedExpr>,
    shape: check::Shape,
}

/// What an expression sees.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// The variables.
    pub(super) bound: Vec<(&'static str, CelValue)>,
    /// The number of members of the largest list or map or string in them.
    pub(super) largest: usize,
}

/// A value that may be absent, as expressions see it.
pub(super) fn optional(value: Option<CelValue>) -> CelValue {
    CelValue::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// What an expression yields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Bool(bool),
    Text(String),
    Other,
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
        let parser = Parser::new().enable_optional_syntax(true);
        let mut inner = parser.parse(text).map_err(|error| format!("compilation failed: {error}"))?;
        let shape = check::run(&inner, declared).map_err(|error| format!("compilation failed: {error}"))?;
        rewrite::run(&mut inner);
        Ok(Self { inner: Arc::new(inner), shape })
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
        ACCOUNT.set(Account { left: BUDGET, turn_bytes, collected: 0 });
        // A rule must not take the server down, whatever the interpreter makes of it.
        let answer = catch_unwind(AssertUnwindSafe(|| run(&self.inner, scope)));
        // An error in a loop may have been swallowed by an alternative.
        if ACCOUNT.get().left == 0 {
            return Err(EvaluationError::CostLimit);
        }
        answer.unwrap_or_else(|_| Err(EvaluationError::Failed("the interpreter failed".to_owned())))
    }
}

fn run(program: &IdedExpr, scope: &Scope) -> Result<Answer, EvaluationError> {
    LIBRARY.with(|library| {
        let mut context = library.new_inner_scope();
        for (name, value) in &scope.bound {
            context.add_variable_from_value(*name, value.clone());
        }
        match context.resolve(program) {
            Ok(CelValue::Bool(value)) => Ok(Answer::Bool(value)),
            Ok(CelValue::String(text)) => Ok(Answer::Text(text.to_string())),
            Ok(_) => Ok(Answer::Other),
            Err(error) => Err(failure(&error)),
        }
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
