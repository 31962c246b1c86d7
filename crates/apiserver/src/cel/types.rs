//! The types of expressions, as far as they are certain: what is not certain is not judged.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
};
use serde_json::Value;

use super::{macros, value::unescape};

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Type<'a> {
    /// Anything.
    Unknown,
    /// A scalar, by the name of its type.
    Scalar(&'static str),
    /// A list or a map of this schema.
    Of(&'a Value),
}

/// An operator that does not take what it is given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found no matching overload for '{operator}' applied to '({types})'")]
pub(super) struct TypeError {
    operator: String,
    types: String,
}

/// The type of `expression` where `self` is of the type that `schema` describes.
pub(super) fn of<'a>(expression: &'a IdedExpr, schema: &'a Value) -> Result<Type<'a>, TypeError> {
    Inference { schema, bound: Vec::new() }.visit(expression)
}

const NUMBERS: [&str; 3] = ["int", "uint", "double"];

/// The functions whose result has one type, whatever they are given.
const RESULTS: [(&str, &[&str]); 3] = [
    (
        "bool",
        &[
            "startsWith",
            "endsWith",
            "contains",
            "matches",
            "isIP",
            "isCIDR",
            "isURL",
            "isQuantity",
            "isSemver",
            "isSorted",
            "hasValue",
            "isGreaterThan",
            "isLessThan",
            "allowed",
            "errored",
            "sets.contains",
        ],
    ),
    ("string", &["string", "lowerAscii", "upperAscii", "trim", "substring", "join", "format", "replace", "charAt"]),
    ("int", &["size", "int", "indexOf", "lastIndexOf"]),
];

struct Inference<'a> {
    schema: &'a Value,
    bound: Vec<(&'a str, Type<'a>)>,
}

type Outcome<'a> = Result<Type<'a>, TypeError>;

impl<'a> Inference<'a> {
    fn visit(&mut self, node: &'a IdedExpr) -> Outcome<'a> {
        match &node.expr {
            Expr::Literal(literal) => Ok(of_literal(literal)),
            Expr::Ident(name) => Ok(self.of_name(name)),
            Expr::Select(select) => {
                let operand = self.visit(&select.operand)?;
                Ok(if select.test { Type::Scalar("bool") } else { member(operand, &select.field) })
            }
            Expr::Call(call) => match macros::binding(&call.func_name) {
                Some(names) => self.binding(call, names),
                None => self.call(call),
            },
            Expr::List(list) => {
                list.elements.iter().try_for_each(|part| self.visit(part).map(drop))?;
                Ok(Type::Unknown)
            }
            Expr::Map(map) => {
                map.entries.iter().try_for_each(|entry| self.entry(&entry.expr))?;
                Ok(Type::Unknown)
            }
            Expr::Struct(message) => {
                message.entries.iter().try_for_each(|entry| self.entry(&entry.expr))?;
                Ok(Type::Unknown)
            }
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::Unspecified => Ok(Type::Unknown),
        }
    }

    fn entry(&mut self, entry: &'a EntryExpr) -> Result<(), TypeError> {
        match entry {
            EntryExpr::StructField(field) => self.visit(&field.value).map(drop),
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key)?;
                self.visit(&entry.value).map(drop)
            }
        }
    }

    fn of_name(&self, name: &str) -> Type<'a> {
        match self.bound.iter().rev().find(|(known, _)| *known == name) {
            Some((_, found)) => *found,
            None if name == "self" => of_schema(self.schema),
            None => Type::Unknown,
        }
    }

    fn binding(&mut self, call: &'a CallExpr, names: usize) -> Outcome<'a> {
        let (Some(subject), Some(bodies)) = (call.args.first(), call.args.get(names + 1..)) else {
            return Ok(Type::Unknown);
        };
        let subject = self.visit(subject)?;
        let (keys, values) = members(subject);
        let types = match (call.func_name.as_str(), names) {
            (macros::BIND, _) => [subject, Type::Unknown],
            (_, 2) => [keys, values],
            // An optional value says nothing of what is in it.
            _ => [values, Type::Unknown],
        };
        let known = self.bound.len();
        for (name, found) in call.args[1..=names].iter().zip(types) {
            if let Expr::Literal(LiteralValue::String(name)) = &name.expr {
                self.bound.push((name.inner(), found));
            }
        }
        let mut last = Type::Unknown;
        for body in bodies {
            last = self.visit(body)?;
        }
        self.bound.truncate(known);
        Ok(if call.func_name == macros::BIND { last } else { Type::Unknown })
    }

    fn comprehension(&mut self, loops: &'a ComprehensionExpr) -> Outcome<'a> {
        let range = self.visit(&loops.iter_range)?;
        let result = match self.visit(&loops.accu_init)? {
            scalar @ Type::Scalar("bool" | "int") => scalar,
            _ => Type::Unknown,
        };
        let (keys, values) = members(range);
        let is_list = matches!(range, Type::Of(schema) if schema.get("items").is_some());
        let known = self.bound.len();
        self.bound.push((&loops.iter_var, if is_list { values } else { keys }));
        self.bound.push((&loops.accu_var, result));
        self.visit(&loops.loop_step)?;
        let result = self.visit(&loops.result)?;
        self.bound.truncate(known);
        Ok(result)
    }

    fn call(&mut self, call: &'a CallExpr) -> Outcome<'a> {
        if let Some(target) = &call.target {
            self.visit(target)?;
        }
        let mut types = Vec::with_capacity(call.args.len());
        for argument in &call.args {
            types.push(self.visit(argument)?);
        }
        match &types[..] {
            [left, right] if call.target.is_none() => binary(&call.func_name, *left, *right),
            [only] if call.func_name == operators::LOGICAL_NOT => {
                require_bools(&call.func_name, &[*only]).map(|()| Type::Scalar("bool"))
            }
            [condition, yes, no] if call.func_name == operators::CONDITIONAL => {
                require_bools(&call.func_name, &[*condition])?;
                Ok(if yes == no { *yes } else { Type::Unknown })
            }
            _ => Ok(result_of(&call.func_name)),
        }
    }
}

fn of_literal<'a>(literal: &LiteralValue) -> Type<'a> {
    Type::Scalar(match literal {
        LiteralValue::Boolean(_) => "bool",
        LiteralValue::Bytes(_) => "bytes",
        LiteralValue::Double(_) => "double",
        LiteralValue::Int(_) => "int",
        LiteralValue::String(_) => "string",
        LiteralValue::UInt(_) => "uint",
        LiteralValue::Null => return Type::Unknown,
    })
}

fn of_schema(schema: &Value) -> Type<'_> {
    let is = |member: &str| schema.get(member) == Some(&Value::Bool(true));
    if is("x-kubernetes-int-or-string") || is("nullable") {
        return Type::Unknown;
    }
    let text = |member: &str| schema.get(member).and_then(Value::as_str).unwrap_or_default();
    Type::Scalar(match (text("type"), text("format")) {
        ("integer", _) => "int",
        ("number", _) => "double",
        ("boolean", _) => "bool",
        ("string", "date-time" | "date") => "timestamp",
        ("string", "duration") => "duration",
        ("string", "byte") => "bytes",
        ("string", _) => "string",
        ("object" | "array", _) => return Type::Of(schema),
        _ => return Type::Unknown,
    })
}

fn member<'a>(operand: Type<'a>, name: &str) -> Type<'a> {
    let Type::Of(schema) = operand else { return Type::Unknown };
    match schema.get("properties").and_then(|properties| properties.get(unescape(name))) {
        Some(child) => of_schema(child),
        None => schema.get("additionalProperties").filter(|child| child.is_object()).map_or(Type::Unknown, of_schema),
    }
}

/// The types of keys and values.
fn members(subject: Type<'_>) -> (Type<'_>, Type<'_>) {
    let Type::Of(schema) = subject else { return (Type::Unknown, Type::Unknown) };
    match (schema.get("items"), schema.get("additionalProperties")) {
        (Some(items), _) => (Type::Scalar("int"), of_schema(items)),
        (None, Some(values)) if values.is_object() => (Type::Scalar("string"), of_schema(values)),
        _ => (Type::Unknown, Type::Unknown),
    }
}

fn binary<'a>(operator: &str, left: Type<'a>, right: Type<'a>) -> Outcome<'a> {
    let truth = Ok(Type::Scalar("bool"));
    match operator {
        operators::INDEX => return Ok(members(left).1),
        operators::IN => return truth,
        operators::LOGICAL_AND | operators::LOGICAL_OR => {
            require_bools(operator, &[left, right])?;
            return truth;
        }
        _ => {}
    }
    let compares = matches!(
        operator,
        operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS
            | operators::EQUALS
            | operators::NOT_EQUALS
    );
    let (Type::Scalar(left), Type::Scalar(right)) = (left, right) else {
        return if compares { truth } else { Ok(Type::Unknown) };
    };
    let numbers = NUMBERS.contains(&left) && NUMBERS.contains(&right);
    let refused = || Err(TypeError { operator: operator.to_owned(), types: format!("{left}, {right}") });
    match operator {
        _ if compares => {
            if left == right || numbers {
                truth
            } else {
                refused()
            }
        }
        operators::ADD | operators::SUBSTRACT if "timestamp" == left || "timestamp" == right || left == "duration" => {
            Ok(Type::Unknown)
        }
        operators::ADD if left == right && left != "bool" => Ok(Type::Scalar(left)),
        operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO
            if left == right && numbers =>
        {
            Ok(Type::Scalar(left))
        }
        operators::ADD | operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO => {
            refused()
        }
        function => Ok(result_of(function)),
    }
}

fn require_bools(operator: &str, types: &[Type<'_>]) -> Result<(), TypeError> {
    let wrong = |found: &Type<'_>| matches!(found, Type::Scalar(name) if *name != "bool");
    if !types.iter().any(wrong) {
        return Ok(());
    }
    let names = types.iter().map(|found| match found {
        Type::Scalar(name) => *name,
        _ => "dyn",
    });
    Err(TypeError { operator: operator.to_owned(), types: names.collect::<Vec<_>>().join(", ") })
}

fn result_of<'a>(function: &str) -> Type<'a> {
    let found = RESULTS.iter().find(|(_, functions)| functions.contains(&function));
    found.map_or(Type::Unknown, |(name, _)| Type::Scalar(name))
}
