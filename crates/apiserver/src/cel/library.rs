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

use super::{
    authority, conversion, functions,
    operation::{self, Outcome},
    wording,
};

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
    LIBRARY
        .with(|library| {
            let mut scope = library.new_inner_scope();
            for (name, value) in NAMES.iter().zip(args) {
                scope.add_variable_from_value(*name, value.clone());
            }
            let node = |expr: Expr| IdedExpr { id: 0, expr };
            let name = |name: &str| node(Expr::Ident(name.to_owned()));
            let subject = target.map(|value| {
                scope.add_variable_from_value(TARGET, value.clone());
                Box::new(name(TARGET))
            });
            let names = NAMES[..args.len()].iter().map(|argument| name(argument)).collect();
            let call = CallExpr { func_name: function.to_owned(), target: subject, args: names };
            scope.resolve(&node(Expr::Call(call)))
        })
        .map_err(|error| {
            let all: Vec<CelValue> = target.into_iter().chain(args).cloned().collect();
            wording::reworded(function, &all, error)
        })
}

/// Functions that do not go through the library.
fn own(function: &str, target: Option<&CelValue>, args: &[CelValue]) -> Option<Outcome> {
    let simple = match (target, args) {
        (None, [value]) => conversion::converted(function, value),
        (Some(time), []) => conversion::part_of_time(function, time, None),
        (Some(time), [zone]) => conversion::part_of_time(function, time, Some(zone)),
        _ => None,
    };
    simple.or_else(|| of_texts(function, target, args)).or_else(|| of_patterns(function, target, args))
}

/// Functions that the library does not have, or in another form.
fn of_texts(function: &str, target: Option<&CelValue>, args: &[CelValue]) -> Option<Outcome> {
    Some(match (function, target, args) {
        ("optional.unwrap", None, [CelValue::List(items)]) | ("unwrapOpt", Some(CelValue::List(items)), []) => {
            let inner = items.iter().map(|item| operation::inside(item).ok_or(ExecutionError::NoSuchOverload));
            let inner = inner.collect::<Result<Vec<_>, _>>();
            inner.map(|inner| CelValue::List(Arc::new(inner.into_iter().flatten().collect())))
        }
        ("format", Some(CelValue::String(_)), [CelValue::List(items)]) if items.iter().any(conversion::is_worded) => {
            let items = items.iter().map(conversion::worded).collect();
            call(function, target, &[CelValue::List(Arc::new(items))])
        }
        ("lists.range", None, [CelValue::Int(..0)]) => Ok(CelValue::List(Arc::default())),
        ("split", Some(CelValue::String(_)), [CelValue::String(_), CelValue::Int(0)]) => {
            Ok(CelValue::List(Arc::default()))
        }
        ("split", Some(CelValue::String(given)), [CelValue::String(separator), limit @ ..]) if separator.is_empty() => {
            let most = match limit {
                [CelValue::Int(most @ 1..)] => usize::try_from(*most).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            let starts: Vec<usize> = given.char_indices().map(|(start, _)| start).take(most).collect();
            let ends = starts.iter().skip(1).copied().chain([given.len()]);
            let parts = starts.iter().zip(ends).map(|(start, end)| text(&given[*start..end]));
            Ok(CelValue::List(Arc::new(parts.collect())))
        }
        ("lastIndexOf", Some(CelValue::String(given)), [_, CelValue::Int(from)])
            if usize::try_from(*from).is_ok_and(|from| from > given.chars().count()) =>
        {
            Ok(CelValue::Int(-1))
        }
        ("format.named", None, [CelValue::String(name)]) => {
            let known = functions::of_name(&format!("format.{name}"), false).is_some() && name.as_str() != "named";
            let found = known.then(|| call(&format!("format.{name}"), None, &[]));
            found.transpose().map(operation::optional)
        }
        _ => return None,
    })
}

/// Functions of regular expressions, which are kept compiled.
fn of_patterns(function: &str, target: Option<&CelValue>, args: &[CelValue]) -> Option<Outcome> {
    Some(match (function, target, args) {
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

/// An argument of a call.
pub(super) fn argument(call: &Call<'_, '_>, index: usize) -> Outcome {
    let argument = call.args.get(index).ok_or(ExecutionError::NoSuchOverload)?;
    call.ptx.resolve(argument)
}
