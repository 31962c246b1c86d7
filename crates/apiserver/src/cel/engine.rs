//! The one door to the CEL library: compile, evaluate, limit.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use kube_cel::{
    KubeCelExt,
    cel::{Context, ExecutionError, IdedExpr, Value as CelValue, objects::OptionalValue, parser::Parser},
};

use super::check;

/// The longest accepted expression.
const EXPRESSION_BYTES_MAX: usize = 64 * 1024;
/// Steps up to which an expression is evaluated on the caller's thread.
const STEPS_INLINE_MAX: usize = 1_000_000;
/// How long an expression may run that could take more steps than that.
const EVALUATION_TIME_MAX: Duration = Duration::from_millis(500);
/// How many expressions may be running beyond their time; more are refused at once.
const RUNAWAYS_MAX: usize = 2;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LIBRARY: Context<'static> = library();
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
    library
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
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// The value that the rule is about.
    pub(super) this: CelValue,
    /// The value before an update.
    pub(super) old: Old,
    /// The number of members of the largest list or map or string in it.
    pub(super) largest: usize,
}

/// What an expression sees as `oldSelf`.
#[derive(Clone, Debug)]
pub(super) enum Old {
    /// The name is not bound.
    Unbound,
    /// The value itself.
    Plain(CelValue),
    /// An optional value (`optionalOldSelf: true`).
    Optional(Option<CelValue>),
}

/// What an expression yields.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Bool(bool),
    Text(String),
    Other,
}

/// Why an expression yields nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum EvaluationError {
    #[error("no such overload")]
    Overload,
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    #[error("{0}")]
    Failed(String),
}

impl Program {
    /// Compiles an expression over `self` (and `oldSelf`) of the type that `schema` describes.
    pub(super) fn compile(text: &str, schema: &serde_json::Value) -> Result<Self, String> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(format!("compilation failed: expression is longer than {EXPRESSION_BYTES_MAX} bytes"));
        }
        let parser = Parser::new().enable_optional_syntax(true);
        let mut inner = parser.parse(text).map_err(|error| format!("compilation failed: {error}"))?;
        check::normalize(&mut inner);
        let shape = check::run(&inner, schema).map_err(|error| format!("compilation failed: {error}"))?;
        Ok(Self { inner: Arc::new(inner), shape })
    }

    /// Whether the expression looks at the value before an update.
    pub(super) fn uses_old_self(&self) -> bool {
        self.shape.uses_old_self
    }

    /// Evaluates the expression.
    pub(super) fn evaluate(&self, scope: &Scope) -> Result<Answer, EvaluationError> {
        if self.shape.steps(scope.largest) <= STEPS_INLINE_MAX {
            return run(&self.inner, scope);
        }
        self.evaluate_apart(scope.clone())
    }

    /// The interpreter cannot be interrupted, so what may take long runs on a thread that can be left behind.
    fn evaluate_apart(&self, scope: Scope) -> Result<Answer, EvaluationError> {
        if RUNNING.fetch_add(1, Ordering::SeqCst) >= RUNAWAYS_MAX {
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            return Err(EvaluationError::CostLimit);
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        let program = Arc::clone(&self.inner);
        let spawned = std::thread::Builder::new().name("cel".into()).spawn(move || {
            let answer = run(&program, &scope);
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            // The caller may have given up; nobody misses the answer then.
            let _ = sender.send(answer);
        });
        if spawned.is_err() {
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            return Err(EvaluationError::CostLimit);
        }
        receiver.recv_timeout(EVALUATION_TIME_MAX).unwrap_or(Err(EvaluationError::CostLimit))
    }
}

fn run(program: &IdedExpr, scope: &Scope) -> Result<Answer, EvaluationError> {
    LIBRARY.with(|library| {
        let mut context = library.new_inner_scope();
        context.add_variable_from_value("self", scope.this.clone());
        match &scope.old {
            Old::Unbound => {}
            Old::Plain(value) => context.add_variable_from_value("oldSelf", value.clone()),
            Old::Optional(value) => {
                let value = value.clone().map_or_else(OptionalValue::none, OptionalValue::of);
                context.add_variable_from_value("oldSelf", CelValue::Opaque(Arc::new(value)));
            }
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
