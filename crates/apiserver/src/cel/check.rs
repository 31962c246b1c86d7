//! What can be said of an expression before it runs: names, fields, nesting.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, operators},
};
use serde_json::Value;

use super::value::unescape;

/// How deep comprehensions (`all`, `exists`, `map`, …) may nest.
const COMPREHENSION_DEPTH_MAX: usize = 5;

/// Names of types and of function libraries, which parse like variables.
const KNOWN_NAMES: &[&str] = &[
    "self",
    "oldSelf",
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
    "dyn",
    "timestamp",
    "duration",
    "google",
    "optional",
    "optional_type",
    "math",
    "sets",
    "base64",
    "strings",
    "cel",
    "format",
    "jsonpatch",
    "ip",
    "cidr",
    "quantity",
    "semver",
    "url",
    "net",
];

/// The facts from which the cost of an expression is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// The number of nodes of the syntax tree.
    pub(super) nodes: usize,
    /// How deep comprehensions nest.
    pub(super) depth: usize,
    /// Whether `oldSelf` is looked at.
    pub(super) uses_old_self: bool,
}

impl Shape {
    /// An upper bound of the steps where no collection has more than `largest` members.
    pub(super) fn steps(self, largest: usize) -> usize {
        let power = u32::try_from(self.depth).unwrap_or(u32::MAX);
        self.nodes.saturating_mul(largest.max(1).saturating_pow(power))
    }
}

/// Why an expression cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CheckError {
    #[error("undeclared reference to '{0}' (in container '')")]
    Undeclared(String),
    #[error("undefined field '{0}'")]
    UndefinedField(String),
    #[error("comprehensions nest deeper than {COMPREHENSION_DEPTH_MAX}")]
    TooDeep,
}

/// Writes `a.?b` as `a[?'b']`: the interpreter is right about absent members only there.
pub(super) fn normalize(node: &mut IdedExpr) {
    match &mut node.expr {
        Expr::Call(call) => {
            if call.func_name == operators::OPT_SELECT {
                operators::OPT_INDEX.clone_into(&mut call.func_name);
            }
            call.target.iter_mut().map(|target| &mut **target).chain(&mut call.args).for_each(normalize);
        }
        Expr::Select(select) => {
            normalize(&mut select.operand);
            // A member of what may be absent may be absent as well.
            if !select.test && yields_optional(&select.operand) {
                let name = LiteralValue::String(select.field.as_str().into());
                let name = IdedExpr { id: node.id, expr: Expr::Literal(name) };
                let args = vec![std::mem::take(&mut *select.operand), name];
                let func_name = operators::OPT_INDEX.to_owned();
                node.expr = Expr::Call(CallExpr { func_name, target: None, args });
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(normalize),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| normalize_entry(&mut entry.expr)),
        Expr::Struct(fields) => fields.entries.iter_mut().for_each(|entry| normalize_entry(&mut entry.expr)),
        Expr::Comprehension(loops) => {
            let loops = &mut **loops;
            let parts = [
                &mut loops.iter_range,
                &mut loops.accu_init,
                &mut loops.loop_cond,
                &mut loops.loop_step,
                &mut loops.result,
            ];
            parts.into_iter().for_each(normalize);
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn yields_optional(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Call(call) if call.func_name == operators::OPT_INDEX => true,
        Expr::Call(call) if call.func_name == operators::INDEX => call.args.first().is_some_and(yields_optional),
        _ => false,
    }
}

fn normalize_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => normalize(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            normalize(&mut entry.key);
            normalize(&mut entry.value);
        }
    }
}

/// Checks the names and the fields of an expression and measures it.
pub(super) fn run(expression: &IdedExpr, schema: &Value) -> Result<Shape, CheckError> {
    let mut walk = Walk { schema, bound: Vec::new(), shape: Shape::default() };
    walk.visit(expression, 0)?;
    Ok(walk.shape)
}

struct Walk<'a> {
    schema: &'a Value,
    bound: Vec<&'a str>,
    shape: Shape,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, node: &'a IdedExpr, depth: usize) -> Result<(), CheckError> {
        self.shape.nodes += 1;
        self.shape.depth = self.shape.depth.max(depth);
        if depth > COMPREHENSION_DEPTH_MAX {
            return Err(CheckError::TooDeep);
        }
        match &node.expr {
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => {
                self.visit(&select.operand, depth)?;
                self.field(node)
            }
            Expr::Call(call) => {
                let target = call.target.as_deref();
                target.into_iter().chain(&call.args).try_for_each(|part| self.visit(part, depth))
            }
            Expr::List(list) => list.elements.iter().try_for_each(|part| self.visit(part, depth)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| self.entry(&entry.expr, depth)),
            Expr::Struct(fields) => fields.entries.iter().try_for_each(|entry| self.entry(&entry.expr, depth)),
            Expr::Comprehension(loops) => {
                self.visit(&loops.iter_range, depth)?;
                self.visit(&loops.accu_init, depth)?;
                let known = self.bound.len();
                self.bound.extend([loops.iter_var.as_str(), loops.accu_var.as_str()]);
                self.bound.extend(loops.iter_var2.as_deref());
                let parts = [&loops.loop_cond, &loops.loop_step, &loops.result];
                let outcome = parts.into_iter().try_for_each(|part| self.visit(part, depth + 1));
                self.bound.truncate(known);
                outcome
            }
            Expr::Literal(_) | Expr::Unspecified => Ok(()),
        }
    }

    fn entry(&mut self, entry: &'a EntryExpr, depth: usize) -> Result<(), CheckError> {
        match entry {
            EntryExpr::StructField(field) => self.visit(&field.value, depth),
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key, depth)?;
                self.visit(&entry.value, depth)
            }
        }
    }

    fn name(&mut self, name: &str) -> Result<(), CheckError> {
        self.shape.uses_old_self |= name == "oldSelf";
        let known = name.starts_with('@') || self.bound.contains(&name) || KNOWN_NAMES.contains(&name);
        if known { Ok(()) } else { Err(CheckError::Undeclared(name.to_owned())) }
    }

    /// Checks a chain such as `self.spec.size` against the schema, as far as the schema says what is there.
    fn field(&self, node: &IdedExpr) -> Result<(), CheckError> {
        let Some(chain) = chain(node) else { return Ok(()) };
        if self.bound.contains(&"self") {
            return Ok(());
        }
        let mut schema = self.schema;
        for name in chain {
            let properties = schema.get("properties").and_then(Value::as_object);
            let open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
                || schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
            match properties.and_then(|known| known.get(&unescape(name))) {
                Some(next) => schema = next,
                None if open || properties.is_none() => return Ok(()),
                None => return Err(CheckError::UndefinedField(name.to_owned())),
            }
        }
        Ok(())
    }
}

/// The names of a chain that starts at `self`, outermost last.
fn chain(node: &IdedExpr) -> Option<Vec<&str>> {
    match &node.expr {
        Expr::Ident(name) if name == "self" => Some(Vec::new()),
        Expr::Select(select) => {
            let mut names = chain(&select.operand)?;
            names.push(&select.field);
            Some(names)
        }
        _ => None,
    }
}
