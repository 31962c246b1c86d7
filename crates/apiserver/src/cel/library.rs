//! The functions that expressions may call: those of Kubernetes, and what stands behind macros.

use std::{cell::Cell, cmp::Ordering, collections::HashMap, sync::Arc};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, FunctionContext, IdedExpr, Value as CelValue,
        objects::{Key, Map, OptionalValue},
    },
};

use super::{authority, engine, macros, rewrite};

/// What an expression may spend: a turn of a loop costs [`STEP_COST`] and the bytes of text that it may make.
const BUDGET: usize = 256 << 20;
/// What a turn of a loop costs.
const STEP_COST: usize = 1 << 10;
/// What an item of a list costs that is being made: the interpreter copies the list at every turn.
const ITEM_COST: usize = 16;

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

/// Lets `use_it` see the functions.
pub(super) fn with<T>(use_it: impl FnOnce(&Context<'static>) -> T) -> T {
    LIBRARY.with(use_it)
}

/// Opens the account of an expression whose loops may make `turn_bytes` of text per turn.
pub(super) fn open_account(turn_bytes: usize) {
    ACCOUNT.set(Account { left: BUDGET, turn_bytes, collected: 0 });
}

/// Whether the account is empty: an error in a loop may have been swallowed by an alternative.
pub(super) fn is_spent() -> bool {
    ACCOUNT.get().left == 0
}

/// The names of types that rules compare with `type(x)`.
const TYPES: &[&str] = &["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type"];

type Outcome = Result<CelValue, ExecutionError>;
type Call<'a, 'b> = FunctionContext<'a, 'b>;

fn library() -> Context<'static> {
    let mut library = Context::default().with_all();
    for name in TYPES {
        library.add_variable_from_value(*name, (*name).to_owned());
    }
    library.add_function("dyn", |call: &Call<'_, '_>| argument(call, 0));
    library.add_function("type", |value: CelValue| type_name(&value).to_owned());
    library.add_function(rewrite::STEP, |call: &Call<'_, '_>| turn(call, 0));
    library.add_function(rewrite::COLLECT, |call: &Call<'_, '_>| turn(call, 1));
    library.add_function(macros::BIND, |call: &Call<'_, '_>| {
        let value = argument(call, 0)?;
        bound(call, &[value])
    });
    library.add_function(macros::VARIABLE, |call: &Call<'_, '_>| {
        let name = argument(call, 0)?;
        let CelValue::String(name) = name else { return Err(ExecutionError::NoSuchOverload) };
        engine::variable(&name)
    });
    for name in macros::names() {
        library.add_function(&macros::function(name), move |call: &Call<'_, '_>| expanded(call, name));
    }
    authority::register(&mut library);
    library
}

/// Pays for a turn of a loop. The interpreter cannot be stopped from outside, so loops stop themselves.
fn turn(call: &Call<'_, '_>, items: usize) -> Outcome {
    let mut account = ACCOUNT.get();
    account.collected += items;
    let copied = account.collected.saturating_mul(items).saturating_mul(ITEM_COST + account.turn_bytes);
    account.left = account.left.saturating_sub(STEP_COST + account.turn_bytes).saturating_sub(copied);
    ACCOUNT.set(account);
    if account.left == 0 { Err(call.error("the budget is spent")) } else { Ok(CelValue::Bool(true)) }
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

/// The last argument, which sees `values` under the names that the arguments before it tell.
fn bound(call: &Call<'_, '_>, values: &[CelValue]) -> Outcome {
    let body = call.args.last().ok_or(ExecutionError::NoSuchOverload)?;
    bound_to(call, values, body)
}

fn bound_to(call: &Call<'_, '_>, values: &[CelValue], body: &IdedExpr) -> Outcome {
    let mut scope = call.ptx.new_inner_scope();
    for (index, value) in values.iter().enumerate() {
        let CelValue::String(name) = argument(call, index + 1)? else { return Err(ExecutionError::NoSuchOverload) };
        scope.add_variable_from_value(name.as_str(), value.clone());
    }
    scope.resolve(body)
}

/// What the macro `name` yields.
fn expanded(call: &Call<'_, '_>, name: &str) -> Outcome {
    let subject = argument(call, 0)?;
    match name {
        "all" => Ok(CelValue::Bool(count(call, &subject, |holds| !holds)? == 0)),
        "exists" => Ok(CelValue::Bool(count(call, &subject, |holds| holds)? > 0)),
        "existsOne" => Ok(CelValue::Bool(count(call, &subject, |holds| holds)? == 1)),
        "transformList" => {
            let items = transformed(call, &subject)?.into_iter().map(|(_, value)| value);
            Ok(CelValue::List(Arc::new(items.collect())))
        }
        "transformMap" => {
            let members = transformed(call, &subject)?.into_iter();
            let members = members.map(|(key, value)| Ok((key_of(key)?, value)));
            map(members.collect::<Result<_, ExecutionError>>()?)
        }
        "transformMapEntry" => {
            let mut members = HashMap::new();
            for (_, entry) in transformed(call, &subject)? {
                let CelValue::Map(entry) = entry else { return Err(ExecutionError::NoSuchOverload) };
                members.extend(entry.map.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            map(members)
        }
        "sortBy" => sorted(call, &subject),
        "optMap" | "optFlatMap" => {
            let CelValue::Opaque(opaque) = &subject else { return Err(ExecutionError::NoSuchOverload) };
            let optional = opaque.downcast_ref::<OptionalValue>().ok_or(ExecutionError::NoSuchOverload)?;
            let Some(value) = optional.value() else { return Ok(subject) };
            let result = bound(call, std::slice::from_ref(value))?;
            Ok(if name == "optMap" { engine::optional(Some(result)) } else { result })
        }
        _ => Err(ExecutionError::UndeclaredReference(Arc::new(name.to_owned()))),
    }
}

fn key_of(value: CelValue) -> Result<Key, ExecutionError> {
    match value {
        CelValue::Int(number) => Ok(Key::Int(number)),
        CelValue::UInt(number) => Ok(Key::Uint(number)),
        CelValue::Bool(value) => Ok(Key::Bool(value)),
        CelValue::String(text) => Ok(Key::String(text)),
        other => Err(ExecutionError::UnsupportedKeyType(other)),
    }
}

fn value_of(key: &Key) -> CelValue {
    match key {
        Key::Int(number) => CelValue::Int(*number),
        Key::Uint(number) => CelValue::UInt(*number),
        Key::Bool(value) => CelValue::Bool(*value),
        Key::String(text) => CelValue::String(Arc::clone(text)),
    }
}

fn map(members: HashMap<Key, CelValue>) -> Outcome {
    Ok(CelValue::Map(Map { map: Arc::new(members) }))
}

/// The indices and items of a list, or the keys and values of a map.
fn pairs(subject: &CelValue) -> Result<Vec<[CelValue; 2]>, ExecutionError> {
    match subject {
        CelValue::List(items) => {
            let index = |index: usize| CelValue::Int(i64::try_from(index).unwrap_or(i64::MAX));
            Ok(items.iter().enumerate().map(|(number, item)| [index(number), item.clone()]).collect())
        }
        CelValue::Map(members) => Ok(members.map.iter().map(|(key, value)| [value_of(key), value.clone()]).collect()),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// Of how many members the predicate is as `wanted`; an error counts only if nothing else decides.
fn count(call: &Call<'_, '_>, subject: &CelValue, wanted: fn(bool) -> bool) -> Result<usize, ExecutionError> {
    let (mut number, mut failure) = (0, None);
    for pair in pairs(subject)? {
        turn(call, 0)?;
        match bound(call, &pair) {
            Ok(CelValue::Bool(holds)) => number += usize::from(wanted(holds)),
            Ok(_) => failure = Some(ExecutionError::NoSuchOverload),
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(failure) if number == 0 => Err(failure),
        _ => Ok(number),
    }
}

/// The keys and what the last argument makes of each member; with two expressions the first one filters.
fn transformed(call: &Call<'_, '_>, subject: &CelValue) -> Result<Vec<(CelValue, CelValue)>, ExecutionError> {
    let mut results = Vec::new();
    for pair in pairs(subject)? {
        turn(call, 0)?;
        if call.args.len() == 5 {
            match bound_to(call, &pair, &call.args[3])? {
                CelValue::Bool(true) => {}
                CelValue::Bool(false) => continue,
                _ => return Err(ExecutionError::NoSuchOverload),
            }
        }
        let value = bound(call, &pair)?;
        let [key, _] = pair;
        results.push((key, value));
    }
    Ok(results)
}

fn sorted(call: &Call<'_, '_>, subject: &CelValue) -> Outcome {
    let CelValue::List(items) = subject else { return Err(ExecutionError::NoSuchOverload) };
    let mut keyed = Vec::with_capacity(items.len());
    for item in items.iter() {
        turn(call, 0)?;
        keyed.push((bound(call, std::slice::from_ref(item))?, item.clone()));
    }
    let mut comparable = true;
    keyed.sort_by(|(left, _), (right, _)| {
        left.partial_cmp(right).unwrap_or_else(|| {
            comparable = false;
            Ordering::Equal
        })
    });
    if !comparable {
        return Err(ExecutionError::NoSuchOverload);
    }
    Ok(CelValue::List(Arc::new(keyed.into_iter().map(|(_, item)| item).collect())))
}
