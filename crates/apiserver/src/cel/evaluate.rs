//! Evaluating an expression: what cel-go does, at what cel-go's tracker says it costs.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    ExecutionError, IdedExpr, Value as CelValue,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, operators},
};

use super::{
    check::Checked,
    constants::{is_constant, is_constant_conversion, literal_value},
    conversion,
    engine::Scope,
    expression::REQUEST_RESOURCE,
    library, macros,
    meter::{self, Meter},
    operation::{self, Outcome},
    range::{LIST, MAP, OBJECT},
    signature::Overload,
};

/// The names of types that expressions compare with `type(x)`.
const TYPES: [&str; 15] = [
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "optional_type",
    "google.protobuf.Timestamp",
    "google.protobuf.Duration",
    "net.IP",
    "net.CIDR",
];

/// An expression on its way to its value.
pub(super) struct Evaluation<'a> {
    scope: &'a Scope,
    checked: &'a Checked,
    slots: Vec<Slot<'a>>,
    meter: Meter,
    /// What the variables cost that were computed on the way; they have meters of their own.
    variables: u64,
}

/// A name that a loop or a binding gives.
struct Slot<'a> {
    name: &'a str,
    /// The value; it may be an error that something else makes good.
    value: Option<Outcome>,
    /// What the value is before it is asked for.
    start: Option<&'a IdedExpr>,
}

impl<'a> Evaluation<'a> {
    /// Nothing done yet.
    pub(super) fn new(scope: &'a Scope, checked: &'a Checked, limit: u64) -> Self {
        Self { scope, checked, slots: Vec::new(), meter: Meter::new(limit), variables: 0 }
    }

    /// What was spent, and whether that was too much.
    pub(super) fn account(&self) -> (u64, bool) {
        (self.meter.spent().saturating_add(self.variables), self.meter.is_over())
    }

    /// The value of an expression.
    pub(super) fn visit(&mut self, node: &'a IdedExpr) -> Outcome {
        match &node.expr {
            Expr::Literal(literal) => Ok(literal_value(literal)),
            Expr::Ident(name) if self.is_type(name) => Ok(conversion::type_value(name)),
            Expr::Select(select) if select.test => {
                let operand = self.resolve(&select.operand)?;
                self.charge(1)?;
                operation::has(&operand, &select.field)
            }
            expr if is_attribute(expr) => {
                let value = self.resolve(node);
                self.charge(u64::from(!begins_with_choice(node)))?;
                value
            }
            Expr::Call(call) => self.call(node.id, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(&map.entries, MAP),
            Expr::Struct(message) => self.map(&message.entries, OBJECT),
            Expr::Comprehension(fold) => self.fold(fold),
            _ => Err(ExecutionError::NoSuchOverload),
        }
    }

    fn charge(&mut self, cost: u64) -> Result<(), ExecutionError> {
        // The error is never seen: whoever asked for the evaluation looks at the account first.
        if self.meter.charge(cost) { Ok(()) } else { Err(ExecutionError::NoSuchOverload) }
    }

    fn is_type(&self, name: &str) -> bool {
        TYPES.contains(&name) && !self.slots.iter().any(|slot| slot.name == name)
    }

    /// The value of what other attributes are taken of, without what looking at it as a whole costs.
    fn resolve(&mut self, node: &'a IdedExpr) -> Outcome {
        match &node.expr {
            Expr::Ident(name) if !self.is_type(name) => self.name(name),
            Expr::Select(select) if !select.test => {
                if let Expr::Ident(name) = &select.operand.expr
                    && let Some(value) = self.special(name, &select.field)
                {
                    self.charge(1)?;
                    return value;
                }
                let operand = self.resolve(&select.operand)?;
                self.charge(1)?;
                self.member(&operand, CelValue::String(Arc::new(select.field.clone())), false)
            }
            Expr::Call(call) => match (call.func_name.as_str(), &call.args[..]) {
                (operators::INDEX, [container, name]) => self.index(container, name, false),
                (operators::OPT_INDEX | operators::OPT_SELECT, [container, name]) => self.index(container, name, true),
                (operators::CONDITIONAL, [condition, yes, no]) => match self.visit(condition)? {
                    CelValue::Bool(true) => self.resolve(yes),
                    CelValue::Bool(false) => self.resolve(no),
                    _ => Err(ExecutionError::NoSuchOverload),
                },
                _ => self.visit(node),
            },
            _ => self.visit(node),
        }
    }

    /// A member of what no value stands for.
    fn special(&mut self, name: &str, field: &str) -> Option<Outcome> {
        if self.slots.iter().any(|slot| slot.name == name) {
            return None;
        }
        match (name, field) {
            ("variables", _) => {
                let (value, cost) = self.scope.variable(field);
                self.variables = self.variables.saturating_add(cost);
                Some(value)
            }
            _ => None,
        }
    }

    fn name(&mut self, name: &str) -> Outcome {
        if name == REQUEST_RESOURCE {
            return library::call(library::REQUEST_RESOURCE, None, &[]);
        }
        let Some(index) = self.slots.iter().rposition(|slot| slot.name == name) else {
            let unknown = || ExecutionError::UndeclaredReference(Arc::new(name.to_owned()));
            let bound = self.scope.bound.iter().find(|(known, _)| *known == name);
            return bound.map(|(_, value)| value.clone()).ok_or_else(unknown);
        };
        if let Some(value) = &self.slots[index].value {
            return value.clone();
        }
        // What a name stands for at first does not see the name itself.
        let hidden = self.slots.split_off(index);
        let value = match hidden[0].start {
            Some(start) => self.visit(start),
            None => Err(ExecutionError::NoSuchOverload),
        };
        self.slots.extend(hidden);
        self.slots[index].value = Some(value.clone());
        value
    }

    fn index(&mut self, container: &'a IdedExpr, name: &'a IdedExpr, optional: bool) -> Outcome {
        let container = self.resolve(container)?;
        let name = self.resolve(name)?;
        let value = self.member(&container, name, optional)?;
        let absent = optional && matches!(operation::inside(&value), Some(None));
        self.charge(u64::from(!absent))?;
        Ok(value)
    }

    /// A member; one of an optional value is optional too.
    fn member(&self, container: &CelValue, name: CelValue, wanted_optional: bool) -> Outcome {
        let (inner, optional) = match operation::inside(container) {
            Some(Some(inner)) => (inner, true),
            Some(None) => return Ok(operation::optional(None)),
            None => (container.clone(), wanted_optional),
        };
        match operation::member(&inner, name) {
            found if !optional => found,
            Ok(value) => Ok(operation::optional(Some(value))),
            Err(ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_)) => Ok(operation::optional(None)),
            Err(error) => Err(error),
        }
    }

    fn list(&mut self, list: &'a ListExpr) -> Outcome {
        let mut items = Vec::with_capacity(list.elements.len());
        for (index, element) in list.elements.iter().enumerate() {
            let value = self.visit(element)?;
            match operation::inside(&value).filter(|_| list.optional_indices.contains(&index)) {
                Some(inner) => items.extend(inner),
                None => items.push(value),
            }
        }
        if !list.elements.iter().all(is_constant) {
            self.charge(LIST)?;
        }
        Ok(CelValue::List(Arc::new(items)))
    }

    fn map(&mut self, entries: &'a [IdedEntryExpr], cost: u64) -> Outcome {
        let mut members = HashMap::with_capacity(entries.len());
        let mut constant = true;
        for entry in entries {
            let (name, value, optional) = match &entry.expr {
                EntryExpr::StructField(field) => {
                    constant = false;
                    let name = CelValue::String(Arc::new(field.field.clone()));
                    (name, self.visit(&field.value)?, field.optional)
                }
                EntryExpr::MapEntry(entry) => {
                    constant &= is_constant(&entry.key) && is_constant(&entry.value);
                    (self.visit(&entry.key)?, self.visit(&entry.value)?, entry.optional)
                }
            };
            match operation::inside(&value).filter(|_| optional) {
                Some(Some(inner)) => drop(members.insert(operation::key(name)?, inner)),
                Some(None) => {}
                None => drop(members.insert(operation::key(name)?, value)),
            }
        }
        self.charge(if constant { 0 } else { cost })?;
        Ok(operation::map(members))
    }

    fn fold(&mut self, fold: &'a ComprehensionExpr) -> Outcome {
        let range = self.visit(&fold.iter_range)?;
        let known = self.slots.len();
        self.slots.push(Slot { name: &fold.accu_var, value: None, start: Some(&fold.accu_init) });
        let is_map = matches!(range, CelValue::Map(_));
        for (key, value) in operation::pairs(&range)? {
            self.slots.truncate(known + 1);
            let bind = |name: &'a str, value| Slot { name, value: Some(Ok(value)), start: None };
            match &fold.iter_var2 {
                Some(second) => self.slots.extend([bind(&fold.iter_var, key), bind(second, value)]),
                None => self.slots.push(bind(&fold.iter_var, if is_map { key } else { value })),
            }
            if !self.meter.turn() || matches!(self.visit(&fold.loop_cond), Ok(CelValue::Bool(false))) {
                break;
            }
            let next = self.visit(&fold.loop_step);
            self.slots[known].value = Some(next);
        }
        self.slots.truncate(known + 1);
        let result = self.visit(&fold.result);
        self.slots.truncate(known);
        result
    }

    fn call(&mut self, id: u64, call: &'a CallExpr) -> Outcome {
        match (call.func_name.as_str(), &call.args[..]) {
            (operators::LOGICAL_AND, [left, right]) => return self.logical(left, right, false),
            (operators::LOGICAL_OR, [left, right]) => return self.logical(left, right, true),
            (operators::NOT_STRICTLY_FALSE, [value]) => {
                let value = self.visit(value);
                self.charge(1)?;
                return Ok(CelValue::Bool(!matches!(value, Ok(CelValue::Bool(false)))));
            }
            (operators::ADD | macros::INSERT, [accumulator, rest @ ..]) if self.is_accumulator(accumulator) => {
                return self.accumulate(call, rest);
            }
            (operators::IN, [value, list]) if is_constant(list) && matches!(&list.expr, Expr::List(_)) => {
                let (value, list) = (self.visit(value)?, self.visit(list)?);
                return operation::binary(operators::IN, value, list).unwrap_or(Err(ExecutionError::NoSuchOverload));
            }
            _ => {}
        }
        let parts = call.target.as_deref().into_iter().chain(&call.args);
        let args: Vec<Outcome> = parts.map(|part| self.visit(part)).collect();
        let args: Vec<CelValue> = args.into_iter().collect::<Result<_, _>>()?;
        let overload = match self.checked.overloads.get(&id).map(Vec::as_slice) {
            Some([only]) => *only,
            _ => Overload::Plain,
        };
        if !self.meter.allows_text(&call.func_name, &args) {
            return Err(ExecutionError::NoSuchOverload);
        }
        let result = applied(call, &args);
        if !is_constant_conversion(call) {
            self.charge(meter::of_call(&call.func_name, overload, &args, result.as_ref().ok()))?;
        }
        result
    }

    /// `&&` or `||`: the side that `decides` does so whatever becomes of the other.
    fn logical(&mut self, left: &'a IdedExpr, right: &'a IdedExpr, decides: bool) -> Outcome {
        let left = self.visit(left);
        if left == Ok(CelValue::Bool(decides)) {
            return left;
        }
        match (left, self.visit(right)) {
            (_, Ok(CelValue::Bool(right))) if right == decides => Ok(CelValue::Bool(decides)),
            (Ok(CelValue::Bool(_)), right @ Ok(CelValue::Bool(_))) => right,
            (Err(error), _) | (Ok(CelValue::Bool(_)), Err(error)) => Err(error),
            _ => Err(ExecutionError::NoSuchOverload),
        }
    }

    /// Whether it is the name of what the innermost loop makes.
    fn is_accumulator(&self, node: &IdedExpr) -> bool {
        matches!(&node.expr, Expr::Ident(name) if name == macros::RESULT)
    }

    /// Adds to what a loop makes without copying it at every turn.
    fn accumulate(&mut self, call: &'a CallExpr, rest: &'a [IdedExpr]) -> Outcome {
        self.name(macros::RESULT)?;
        self.charge(1)?;
        let args: Vec<CelValue> = rest.iter().map(|part| self.visit(part)).collect::<Result<_, _>>()?;
        let slot = self.slots.iter_mut().rev().find(|slot| slot.name == macros::RESULT);
        let made = slot.and_then(|slot| slot.value.take()).unwrap_or(Err(ExecutionError::NoSuchOverload))?;
        self.charge(1)?;
        match (call.func_name.as_str(), args) {
            (macros::INSERT, args) => operation::insert(made, &args),
            (operator, args) => {
                let other = args.into_iter().next().ok_or(ExecutionError::NoSuchOverload)?;
                operation::binary(operator, made, other).unwrap_or(Err(ExecutionError::NoSuchOverload))
            }
        }
    }
}

/// What a function or an operator makes of values, of which the first is what a method is called on.
fn applied(call: &CallExpr, args: &[CelValue]) -> Outcome {
    match (call.func_name.as_str(), args) {
        (operators::LOGICAL_NOT, [CelValue::Bool(value)]) => Ok(CelValue::Bool(!value)),
        (operators::NEGATE, [CelValue::Int(number)]) => number
            .checked_neg()
            .map(CelValue::Int)
            .ok_or_else(|| ExecutionError::Overflow("neg", CelValue::Int(*number), CelValue::Null)),
        (operators::NEGATE, [CelValue::Float(number)]) => Ok(CelValue::Float(-number)),
        (operators::LOGICAL_NOT | operators::NEGATE, [_]) => Err(ExecutionError::NoSuchOverload),
        (macros::SORT_BY_KEYS, [list, keys]) => operation::sorted_by(list, keys),
        ("size", [CelValue::String(text)]) => {
            Ok(CelValue::Int(i64::try_from(text.chars().count()).unwrap_or(i64::MAX)))
        }
        (operator, [left, right]) if call.target.is_none() => {
            match operation::binary(operator, left.clone(), right.clone()) {
                Some(result) => result,
                None => library::call(operator, None, args),
            }
        }
        (function, [target, rest @ ..]) if call.target.is_some() => library::call(function, Some(target), rest),
        (function, args) => library::call(function, None, args),
    }
}

/// Whether the node is a chain of members, of which the tracker counts the links.
fn is_attribute(expr: &Expr) -> bool {
    match expr {
        Expr::Ident(_) => true,
        Expr::Select(select) => !select.test,
        Expr::Call(call) => matches!(
            call.func_name.as_str(),
            operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT | operators::CONDITIONAL
        ),
        _ => false,
    }
}

/// Whether a chain of members is of the one or the other: that has no cost of its own.
fn begins_with_choice(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Select(select) => begins_with_choice(&select.operand),
        Expr::Call(call) if call.func_name == operators::CONDITIONAL => true,
        Expr::Call(call) if is_attribute(&node.expr) => call.args.first().is_some_and(begins_with_choice),
        _ => false,
    }
}
