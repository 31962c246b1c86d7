//! What can be said of the constants in an expression before it runs: that they can be read, and are of one type where
//! they stand beside each other. On the way, the functions are noted that calls may mean.

use std::sync::Arc;

use kube_cel::cel::{
    ExecutionError, IdedExpr, Value as CelValue,
    common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue},
};
use regex::Regex;

use super::{
    check::Checked,
    format, library,
    parser::{Parsed, Places},
    signature,
    source::Issue,
    types::Type,
};

/// The conversions that are done once if they are of constants.
const CONVERSIONS: [&str; 9] = ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint"];

/// Looks at all constants and calls of an expression whose types fit.
///
/// # Errors
/// Every constant that cannot be right.
pub(super) fn check(parsed: &Parsed, checked: &mut Checked) -> Result<(), Vec<Issue>> {
    let mut walk = Walk { places: &parsed.places, checked, issues: Vec::new(), formats: 0 };
    walk.visit(&parsed.root);
    if walk.issues.is_empty() { Ok(()) } else { Err(walk.issues) }
}

/// Converts the constants that are converted, so that it is known before it runs whether they can be.
///
/// # Errors
/// The first conversion that fails.
pub(super) fn fold(node: &IdedExpr) -> Result<(), ExecutionError> {
    if let Expr::Call(call) = &node.expr
        && let ([IdedExpr { expr: Expr::Literal(literal), .. }], true) = (&call.args[..], is_constant_conversion(call))
    {
        library::call(&call.func_name, None, &[literal_value(literal)])?;
    }
    parts(&node.expr).into_iter().try_for_each(fold)
}

/// The parts of an expression.
fn parts(expression: &Expr) -> Vec<&IdedExpr> {
    match expression {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(entry_parts).collect(),
        Expr::Struct(message) => message.entries.iter().flat_map(entry_parts).collect(),
        Expr::Comprehension(fold) => {
            vec![&fold.iter_range, &fold.accu_init, &fold.loop_cond, &fold.loop_step, &fold.result]
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn entry_parts(entry: &IdedEntryExpr) -> Vec<&IdedExpr> {
    match &entry.expr {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

struct Walk<'a> {
    places: &'a Places,
    checked: &'a mut Checked,
    issues: Vec<Issue>,
    /// How many calls of `format` are around, in which lists may be mixed.
    formats: usize,
}

impl Walk<'_> {
    fn visit(&mut self, node: &IdedExpr) {
        let is_format = matches!(&node.expr, Expr::Call(call) if call.func_name == "format");
        self.formats += usize::from(is_format);
        parts(&node.expr).into_iter().for_each(|part| self.visit(part));
        self.formats -= usize::from(is_format);
        match &node.expr {
            Expr::Call(call) => self.call(node.id, call),
            Expr::List(list) if self.formats == 0 => self.list(list),
            Expr::Map(map) if self.formats == 0 => self.map(&map.entries),
            _ => {}
        }
    }

    fn report(&mut self, node: &IdedExpr, message: String) {
        self.issues.push(Issue { offset: self.places.of(node.id), message });
    }

    fn call(&mut self, id: u64, call: &CallExpr) {
        let target = call.target.as_deref().map(|target| self.checked.of(target).clone());
        let args: Vec<Type> = call.args.iter().map(|argument| self.checked.of(argument).clone()).collect();
        let overloads = signature::overloads(&call.func_name, target.as_ref(), &args);
        self.checked.overloads.insert(id, overloads);
        let Some(first) = call.args.first() else { return };
        if let ("format", Some(target), Expr::List(list)) = (call.func_name.as_str(), &call.target, &first.expr)
            && let Expr::Literal(LiteralValue::String(text)) = &target.expr
            && let Some((blamed, message)) = format::problem(text.inner(), &list.elements, id, self.checked)
        {
            self.issues.push(Issue { offset: self.places.of(blamed), message });
        }
        let Expr::Literal(literal) = &first.expr else { return };
        let is_wrong = match call.func_name.as_str() {
            "duration" | "timestamp" => library::call(&call.func_name, None, &[literal_value(literal)]).is_err(),
            "matches" => matches!(literal, LiteralValue::String(text) if Regex::new(text.inner()).is_err()),
            _ => false,
        };
        if is_wrong {
            self.report(first, format!("invalid {} argument", call.func_name));
        }
    }

    fn list(&mut self, list: &ListExpr) {
        let of = |index: usize, element: &IdedExpr| match self.checked.of(element) {
            Type::Optional(inner) if list.optional_indices.contains(&index) => (**inner).clone(),
            other => other.clone(),
        };
        let types: Vec<Type> = list.elements.iter().enumerate().map(|(index, element)| of(index, element)).collect();
        let Some(first) = types.first() else { return };
        if let Some(other) = types.iter().position(|found| found != first) {
            let message = format!("expected type '{first}' but found '{}'", types[other]);
            self.report(&list.elements[other], message);
        }
    }

    fn map(&mut self, entries: &[IdedEntryExpr]) {
        let mut first: Option<(Type, Type)> = None;
        for entry in entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let key = self.checked.of(&entry.key).clone();
            let value = match self.checked.of(&entry.value) {
                Type::Optional(inner) if entry.optional => (**inner).clone(),
                other => other.clone(),
            };
            let Some((keys, values)) = &first else {
                first = Some((key, value));
                continue;
            };
            for (all, found, node) in [(keys, key, &entry.key), (values, value, &entry.value)] {
                if *all != found {
                    self.issues.push(Issue {
                        offset: self.places.of(node.id),
                        message: format!("expected type '{all}' but found '{found}'"),
                    });
                }
            }
        }
    }
}

/// Whether the value is in the text of the expression, so that it costs nothing.
pub(super) fn is_constant(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Literal(_) => true,
        Expr::List(list) => list.elements.iter().all(is_constant),
        Expr::Call(call) => is_constant_conversion(call),
        _ => false,
    }
}

/// Whether a call converts a constant, which is done once.
pub(super) fn is_constant_conversion(call: &CallExpr) -> bool {
    let known = CONVERSIONS.contains(&call.func_name.as_str());
    known && call.target.is_none() && matches!(&call.args[..], [only] if matches!(only.expr, Expr::Literal(_)))
}

/// The value of a literal.
pub(super) fn literal_value(literal: &LiteralValue) -> CelValue {
    match literal {
        LiteralValue::Boolean(value) => CelValue::Bool(*value.inner()),
        LiteralValue::Bytes(bytes) => CelValue::Bytes(Arc::new(bytes.inner().to_vec())),
        LiteralValue::Double(number) => CelValue::Float(*number.inner()),
        LiteralValue::Int(number) => CelValue::Int(*number.inner()),
        LiteralValue::String(text) => CelValue::String(Arc::new(text.inner().to_owned())),
        LiteralValue::UInt(number) => CelValue::UInt(*number.inner()),
        LiteralValue::Null => CelValue::Null,
    }
}
