//! What can be said of an expression before it runs: names, fields, how much text it may make.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, operators},
};
use serde_json::Value;

use super::{macros, value::unescape};

/// Names of types and of function libraries, which parse like variables.
const KNOWN_NAMES: &[&str] = &[
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Whether `oldSelf` is looked at.
    pub(super) uses_old_self: bool,
    /// Where texts are put together, if they are.
    text: Option<Place>,
    /// By how much constants can multiply the length of a text.
    factor: usize,
    /// How often a text can be multiplied by another one.
    products: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Outside,
    InLoops,
}

impl Shape {
    const NEW: Self = Self { uses_old_self: false, text: None, factor: 1, products: 0 };

    /// An upper bound of the bytes of a text that the expression makes of texts and lists up to `largest`.
    pub(super) fn text_bytes(self, largest: usize) -> usize {
        let largest = largest.max(1);
        let bytes = largest.saturating_mul(self.factor).saturating_mul(largest.saturating_pow(self.products));
        self.text.map_or(0, |_| bytes)
    }

    /// The same for each turn of a loop.
    pub(super) fn turn_bytes(self, largest: usize) -> usize {
        if self.text == Some(Place::InLoops) { self.text_bytes(largest) } else { 0 }
    }

    fn call(&mut self, call: &CallExpr, in_loop: bool) {
        let factor = match (call.func_name.as_str(), &call.args[..]) {
            ("replace", [from, to, ..]) => {
                literal_bytes(to).map(|to| to.div_ceil(literal_bytes(from).unwrap_or(1).max(1)).max(1))
            }
            ("join", [separator]) => literal_bytes(separator).map(|separator| separator + 1),
            // `map` and `filter` add to their result, which is no text.
            (operators::ADD, [IdedExpr { expr: Expr::Ident(name), .. }, _]) if name.starts_with('@') => return,
            ("format" | operators::ADD, _) => Some(1),
            _ => return,
        };
        if in_loop {
            self.text = Some(Place::InLoops);
        } else {
            self.text = self.text.or(Some(Place::Outside));
        }
        match factor {
            Some(factor) => self.factor = self.factor.saturating_mul(factor),
            None => self.products += 1,
        }
    }
}

fn literal_bytes(node: &IdedExpr) -> Option<usize> {
    match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner().len()),
        _ => None,
    }
}

/// Why an expression cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CheckError {
    #[error("undeclared reference to '{0}' (in container '')")]
    Undeclared(String),
    #[error("undefined field '{0}'")]
    UndefinedField(String),
    #[error("messages cannot be made here")]
    Struct,
}

/// What an expression may name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared<'a> {
    /// The variables.
    pub(super) names: &'a [&'a str],
    /// The type of `self`, if it has one.
    pub(super) schema: &'a Value,
    /// What `variables` has.
    pub(super) variables: &'a [&'a str],
    /// Whether objects and patches may be made.
    pub(super) makes_objects: bool,
}

impl<'a> Declared<'a> {
    /// What a rule of a schema may name.
    pub(super) fn in_rule(schema: &'a Value) -> Self {
        Self { names: &["self", "oldSelf"], schema, variables: &[], makes_objects: false }
    }
}

/// Checks the names and the fields of an expression and measures it.
pub(super) fn run(expression: &IdedExpr, declared: Declared<'_>) -> Result<Shape, CheckError> {
    let mut walk = Walk { declared, bound: Vec::new(), shape: Shape::NEW, loops: 0 };
    walk.visit(expression)?;
    Ok(walk.shape)
}

struct Walk<'a> {
    declared: Declared<'a>,
    bound: Vec<&'a str>,
    shape: Shape,
    /// How many loops there are around.
    loops: usize,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, node: &'a IdedExpr) -> Result<(), CheckError> {
        match &node.expr {
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => {
                self.visit(&select.operand)?;
                self.field(node)
            }
            Expr::Call(call) if macros::binding(&call.func_name).is_some() => self.binding(call),
            Expr::Call(call) => {
                self.known_call(call)?;
                self.shape.call(call, self.loops > 0);
                let target = call.target.as_deref();
                target.into_iter().chain(&call.args).try_for_each(|part| self.visit(part))
            }
            Expr::List(list) => list.elements.iter().try_for_each(|part| self.visit(part)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| self.entry(&entry.expr)),
            Expr::Struct(message) if self.declared.makes_objects && is_message(&message.type_name) => {
                message.entries.iter().try_for_each(|entry| self.entry(&entry.expr))
            }
            Expr::Struct(_) | Expr::Unspecified => Err(CheckError::Struct),
            Expr::Comprehension(loops) => {
                self.visit(&loops.iter_range)?;
                self.visit(&loops.accu_init)?;
                let known = self.bound.len();
                self.bound.extend([loops.iter_var.as_str(), loops.accu_var.as_str()]);
                self.bound.extend(loops.iter_var2.as_deref());
                let parts = [&loops.loop_cond, &loops.loop_step, &loops.result];
                self.loops += 1;
                let outcome = parts.into_iter().try_for_each(|part| self.visit(part));
                self.loops -= 1;
                self.bound.truncate(known);
                outcome
            }
            Expr::Literal(_) => Ok(()),
        }
    }

    /// A call of a macro's function: what it is about, the names as texts, and what sees them.
    fn binding(&mut self, call: &'a CallExpr) -> Result<(), CheckError> {
        let names = macros::binding(&call.func_name).unwrap_or_default();
        let (Some(subject), Some(bodies)) = (call.args.first(), call.args.get(names + 1..)) else { return Ok(()) };
        self.visit(subject)?;
        let known = self.bound.len();
        let texts = call.args[1..=names].iter().filter_map(|node| match &node.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
            _ => None,
        });
        self.bound.extend(texts);
        let loops = usize::from(call.func_name != macros::BIND);
        self.loops += loops;
        let outcome = bodies.iter().try_for_each(|part| self.visit(part));
        self.loops -= loops;
        self.bound.truncate(known);
        outcome
    }

    /// Refuses variables that nobody declares, and the authorizer where there is none.
    fn known_call(&self, call: &CallExpr) -> Result<(), CheckError> {
        let has = |name: &str| self.declared.names.contains(&name);
        match (call.func_name.as_str(), &call.args[..]) {
            (macros::VARIABLE, _) if !has("variables") => Err(CheckError::Undeclared("variables".to_owned())),
            (macros::VARIABLE, [IdedExpr { expr: Expr::Literal(LiteralValue::String(name)), .. }])
                if !self.declared.variables.contains(&name.inner()) =>
            {
                Err(CheckError::UndefinedField(name.inner().to_owned()))
            }
            (macros::REQUEST_RESOURCE, _) if !has("authorizer") => Err(CheckError::Undeclared("authorizer".to_owned())),
            _ => Ok(()),
        }
    }

    fn entry(&mut self, entry: &'a EntryExpr) -> Result<(), CheckError> {
        match entry {
            EntryExpr::StructField(field) => self.visit(&field.value),
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key)?;
                self.visit(&entry.value)
            }
        }
    }

    fn name(&mut self, name: &str) -> Result<(), CheckError> {
        self.shape.uses_old_self |= name == "oldSelf";
        let known = name.starts_with('@')
            || self.bound.contains(&name)
            || self.declared.names.contains(&name)
            || KNOWN_NAMES.contains(&name);
        if known { Ok(()) } else { Err(CheckError::Undeclared(name.to_owned())) }
    }

    /// Checks a chain such as `self.spec.size` against the schema, as far as the schema says what is there.
    fn field(&self, node: &IdedExpr) -> Result<(), CheckError> {
        let Some(chain) = chain(node) else { return Ok(()) };
        if self.bound.contains(&"self") {
            return Ok(());
        }
        let mut schema = self.declared.schema;
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

/// Whether a message of this type can be made: an object or a part of one, or an operation of a patch.
fn is_message(type_name: &str) -> bool {
    type_name == "JSONPatch" || type_name == "Object" || type_name.starts_with("Object.")
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
