//! The functions that expressions may call: those of Kubernetes, and ours where they have to be quicker.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, FunctionContext, IdedExpr, Value as CelValue,
        common::ast::{CallExpr, Expr},
    },
};
use regex::Regex;

use super::{authority, operation::Outcome};

/// The function behind `authorizer.requestResource`; no expression can name it.
pub(super) const REQUEST_RESOURCE: &str = "@requestResource";
/// How many regular expressions a thread keeps compiled.
const PATTERNS_MAX: usize = 64;
/// What a call sees its arguments as.
const NAMES: [&str; 8] = ["@0", "@1", "@2", "@3", "@4", "@5", "@6", "@7"];
const TARGET: &str = "@target";

thread_local! {
    static LIBRARY: Context<'static> = library();
    static PATTERNS: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// Calls a function, on `target` if it is a method.
pub(super) fn call(function: &str, target: Option<&CelValue>, args: &[CelValue]) -> Outcome {
    if args.len() > NAMES.len() {
        return Err(ExecutionError::NoSuchOverload);
    }
    if let Some(result) = own(function, target, args) {
        return result;
    }
    LIBRARY.with(|library| {
        let mut scope = library.new_inner_scope();
        for (name, value) in NAMES.iter().zip(args) {
            scope.add_variable_from_value(*name, value.clone());
        }
        let node = |expr: Expr| IdedExpr { id: 0, expr };
        let name = |name: &str| node(Expr::Ident(name.to_owned()));
        let target = target.map(|value| {
            scope.add_variable_from_value(TARGET, value.clone());
            Box::new(name(TARGET))
        });
        let args = NAMES[..args.len()].iter().map(|argument| name(argument)).collect();
        scope.resolve(&node(Expr::Call(CallExpr { func_name: function.to_owned(), target, args })))
    })
}

/// Functions that do not go through the library.
fn own(function: &str, target: Option<&CelValue>, args: &[CelValue]) -> Option<Outcome> {
    Some(match (function, target, args) {
        ("dyn", None, [value]) => Ok(value.clone()),
        ("type", None, [value]) => Ok(text(type_name(value))),
        ("matches", Some(CelValue::String(given)), [CelValue::String(pattern)])
        | ("matches", None, [CelValue::String(given), CelValue::String(pattern)]) => {
            with_pattern(pattern, |pattern| CelValue::Bool(pattern.is_match(given)))
        }
        ("find", Some(CelValue::String(given)), [CelValue::String(pattern)]) => {
            with_pattern(pattern, |pattern| text(pattern.find(given).map_or("", |found| found.as_str())))
        }
        ("findAll", Some(CelValue::String(given)), [CelValue::String(pattern)]) => {
            with_pattern(pattern, |pattern| all(pattern, given, usize::MAX))
        }
        ("findAll", Some(CelValue::String(given)), [CelValue::String(pattern), CelValue::Int(most)]) => {
            with_pattern(pattern, |pattern| all(pattern, given, usize::try_from(*most).unwrap_or(usize::MAX)))
        }
        _ => return None,
    })
}

fn text(value: &str) -> CelValue {
    CelValue::String(Arc::new(value.to_owned()))
}

fn all(pattern: &Regex, given: &str, most: usize) -> CelValue {
    CelValue::List(Arc::new(pattern.find_iter(given).take(most).map(|found| text(found.as_str())).collect()))
}

/// Lets `use_it` see a compiled regular expression.
fn with_pattern(pattern: &str, use_it: impl FnOnce(&Regex) -> CelValue) -> Outcome {
    PATTERNS.with_borrow_mut(|patterns| {
        if let Some(compiled) = patterns.get(pattern) {
            return Ok(use_it(compiled));
        }
        let compiled = Regex::new(pattern).map_err(|error| ExecutionError::FunctionError {
            function: "matches".to_owned(),
            message: format!("error parsing regexp: {error}"),
        })?;
        if patterns.len() >= PATTERNS_MAX {
            patterns.clear();
        }
        Ok(use_it(patterns.entry(pattern.to_owned()).or_insert(compiled)))
    })
}

type Call<'a, 'b> = FunctionContext<'a, 'b>;

fn library() -> Context<'static> {
    let mut library = Context::default().with_all();
    authority::register(&mut library);
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

/// An argument of a call.
pub(super) fn argument(call: &Call<'_, '_>, index: usize) -> Outcome {
    let argument = call.args.get(index).ok_or(ExecutionError::NoSuchOverload)?;
    call.ptx.resolve(argument)
}
