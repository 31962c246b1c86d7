//! What can be said of an expression before it runs: that its names, fields and types fit, and which functions it means.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators},
};

use super::{
    declaration::{Declaration, Shape},
    signature::{self, Overload},
    types::Type,
};

/// Names of types, which parse like variables.
const TYPE_NAMES: &[&str] =
    &["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type", "optional_type"];

/// Why an expression cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CheckError {
    #[error("undeclared reference to '{0}' (in container '')")]
    Undeclared(String),
    #[error("undefined field '{0}'")]
    UndefinedField(String),
    #[error("type '{0}' does not support field selection")]
    NoFields(String),
    #[error("messages cannot be made here")]
    Struct,
    #[error("found no matching overload for '{operator}' applied to '({types})'")]
    Overload { operator: String, types: String },
}

/// What an expression may name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared<'a> {
    /// The variables.
    pub(super) names: &'a [(&'a str, Type)],
    /// What sizes are told by: the declaration of `self`.
    pub(super) root: Option<&'a Arc<Declaration>>,
    /// Whether objects and patches may be made.
    pub(super) makes_objects: bool,
}

/// What is known of an expression.
#[derive(Clone, Debug, Default)]
pub(super) struct Checked {
    /// The types of its nodes.
    pub(super) types: HashMap<u64, Type>,
    /// The functions that its calls may mean.
    pub(super) overloads: HashMap<u64, Vec<Overload>>,
    /// Whether `oldSelf` is looked at.
    pub(super) uses_old_self: bool,
}

impl Checked {
    /// The type of a node.
    pub(super) fn of(&self, node: &IdedExpr) -> &Type {
        self.types.get(&node.id).unwrap_or(&Type::Dyn)
    }
}

/// Checks an expression.
pub(super) fn run(expression: &IdedExpr, declared: Declared<'_>) -> Result<Checked, CheckError> {
    let mut walk = Walk { declared, bound: Vec::new(), checked: Checked::default() };
    walk.visit(expression)?;
    Ok(walk.checked)
}

struct Walk<'a> {
    declared: Declared<'a>,
    bound: Vec<(&'a str, Type)>,
    checked: Checked,
}

type Outcome = Result<Type, CheckError>;

impl<'a> Walk<'a> {
    fn visit(&mut self, node: &'a IdedExpr) -> Outcome {
        let found = match &node.expr {
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => self.name(name)?,
            Expr::Select(select) => self.select(select)?,
            Expr::Call(call) => self.call(node.id, call)?,
            Expr::List(list) => Type::list(self.joined(list.elements.iter())?),
            Expr::Map(map) => {
                let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Some((&entry.key, &entry.value)),
                    EntryExpr::StructField(_) => None,
                });
                let keys = self.joined(entries.clone().map(|(key, _)| key))?;
                Type::Map(Arc::new(keys), Arc::new(self.joined(entries.map(|(_, value)| value))?))
            }
            Expr::Struct(message) if self.declared.makes_objects && is_message(&message.type_name) => {
                for entry in &message.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        self.visit(&field.value)?;
                    }
                }
                Type::Dyn
            }
            Expr::Struct(_) | Expr::Unspecified => return Err(CheckError::Struct),
            Expr::Comprehension(fold) => self.fold(fold)?,
        };
        self.checked.types.insert(node.id, found.clone());
        Ok(found)
    }

    /// The type that all of them have.
    fn joined(&mut self, nodes: impl Iterator<Item = &'a IdedExpr>) -> Outcome {
        let mut all: Option<Type> = None;
        for node in nodes {
            let found = self.visit(node)?;
            all = Some(match all {
                Some(all) => all.join(found),
                None => found,
            });
        }
        Ok(all.unwrap_or(Type::Dyn))
    }

    fn name(&mut self, name: &str) -> Outcome {
        if let Some((_, found)) = self.bound.iter().rev().find(|(known, _)| *known == name) {
            return Ok(found.clone());
        }
        self.checked.uses_old_self |= name == "oldSelf";
        match self.declared.names.iter().find(|(known, _)| *known == name) {
            Some((_, found)) => Ok(found.clone()),
            None if TYPE_NAMES.contains(&name) => Ok(Type::Kind),
            None => Err(CheckError::Undeclared(name.to_owned())),
        }
    }

    fn select(&mut self, select: &'a SelectExpr) -> Outcome {
        let operand = self.visit(&select.operand)?;
        let found = field(&operand, &select.field)?;
        Ok(if select.test { Type::Bool } else { found })
    }

    fn fold(&mut self, fold: &'a ComprehensionExpr) -> Outcome {
        let range = self.visit(&fold.iter_range)?;
        let start = self.visit(&fold.accu_init)?;
        let (keys, values) = range.members();
        let known = self.bound.len();
        self.bound.push((&fold.accu_var, start.clone()));
        let accumulator = self.bound.len() - 1;
        match &fold.iter_var2 {
            Some(second) => self.bound.extend([(fold.iter_var.as_str(), keys), (second, values)]),
            None => self.bound.push((&fold.iter_var, if matches!(range, Type::Map(..)) { keys } else { values })),
        }
        self.visit(&fold.loop_cond)?;
        let step = self.visit(&fold.loop_step)?;
        self.bound.truncate(accumulator + 1);
        self.bound[accumulator].1 = start.join(step);
        let result = self.visit(&fold.result);
        self.bound.truncate(known);
        result
    }

    fn call(&mut self, id: u64, call: &'a CallExpr) -> Outcome {
        let target = call.target.as_ref().map(|target| self.visit(target)).transpose()?;
        let args: Vec<Type> = call.args.iter().map(|argument| self.visit(argument)).collect::<Result<_, _>>()?;
        let overloads = signature::overloads(&call.func_name, target.as_ref(), &args);
        self.checked.overloads.insert(id, overloads);
        match (&target, &args[..]) {
            (None, [left, _]) if call.func_name == operators::OPT_SELECT => optional_field(left, &call.args[1]),
            (None, [left, right]) => binary(&call.func_name, left, right),
            (None, [only]) if call.func_name == operators::LOGICAL_NOT => {
                require_bools(&call.func_name, &[only]).map(|()| Type::Bool)
            }
            (None, [only]) if call.func_name == operators::NEGATE => Ok(only.clone()),
            (None, [_]) if call.func_name == operators::NOT_STRICTLY_FALSE => Ok(Type::Bool),
            (None, [condition, yes, no]) if call.func_name == operators::CONDITIONAL => {
                require_bools(&call.func_name, &[condition])?;
                Ok(yes.clone().join(no.clone()))
            }
            _ => Ok(signature::result(&call.func_name, target.as_ref(), &args)),
        }
    }
}

/// Whether a message of this type can be made: an object or a part of one, or an operation of a patch.
fn is_message(type_name: &str) -> bool {
    type_name == "JSONPatch" || type_name == "Object" || type_name.starts_with("Object.")
}

fn of_literal(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::String(_) => Type::Text,
        LiteralValue::UInt(_) => Type::Uint,
        LiteralValue::Null => Type::Null,
    }
}

/// The type of a field.
fn field(operand: &Type, name: &str) -> Outcome {
    let undefined = || CheckError::UndefinedField(name.to_owned());
    match operand {
        Type::Object(declaration) => match &declaration.shape {
            Shape::Object(fields) => fields.get(name).map(Type::of).ok_or_else(undefined),
            _ => Ok(Type::Dyn),
        },
        Type::Members(members) => members.get(name).cloned().ok_or_else(undefined),
        Type::Map(_, values) => Ok((**values).clone()),
        Type::Optional(inner) => Ok(Type::optional(field(inner, name)?)),
        Type::Dyn | Type::Null | Type::Named(_) | Type::Kind => Ok(Type::Dyn),
        other => Err(CheckError::NoFields(other.to_string())),
    }
}

/// The type of a field that may be absent.
fn optional_field(operand: &Type, name: &IdedExpr) -> Outcome {
    let Expr::Literal(LiteralValue::String(name)) = &name.expr else { return Ok(Type::optional(Type::Dyn)) };
    match field(operand, name.inner())? {
        found @ Type::Optional(_) => Ok(found),
        found => Ok(Type::optional(found)),
    }
}

fn binary(operator: &str, left: &Type, right: &Type) -> Outcome {
    let refused = || Err(CheckError::Overload { operator: operator.to_owned(), types: format!("{left}, {right}") });
    let certain = left.is_certain() && right.is_certain();
    match operator {
        operators::INDEX => Ok(left.members().1),
        operators::OPT_INDEX => Ok(Type::optional(left.members().1)),
        operators::IN => Ok(Type::Bool),
        operators::LOGICAL_AND | operators::LOGICAL_OR => {
            require_bools(operator, &[left, right])?;
            Ok(Type::Bool)
        }
        operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::EQUALS
        | operators::NOT_EQUALS => {
            let fits =
                std::mem::discriminant(left) == std::mem::discriminant(right) || left.is_number() && right.is_number();
            if fits || !certain { Ok(Type::Bool) } else { refused() }
        }
        operators::ADD => match (left, right) {
            (Type::Timestamp, _) | (_, Type::Timestamp) => Ok(Type::Timestamp),
            (Type::List(_), Type::List(_)) => Ok(left.clone().join(right.clone())),
            _ if left == right && !matches!(left, Type::Bool | Type::Map(..)) => Ok(left.clone()),
            _ if certain => refused(),
            _ => Ok(Type::Dyn),
        },
        operators::SUBSTRACT if matches!(left, Type::Timestamp | Type::Duration) => Ok(Type::Dyn),
        operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO => {
            match left == right && left.is_number() {
                true => Ok(left.clone()),
                false if certain => refused(),
                false => Ok(Type::Dyn),
            }
        }
        function => Ok(signature::result(function, None, &[left.clone(), right.clone()])),
    }
}

fn require_bools(operator: &str, types: &[&Type]) -> Result<(), CheckError> {
    if !types.iter().any(|found| found.is_certain() && **found != Type::Bool) {
        return Ok(());
    }
    let types = types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Err(CheckError::Overload { operator: operator.to_owned(), types })
}
