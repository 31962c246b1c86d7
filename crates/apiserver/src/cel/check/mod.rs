//! What can be said of an expression before it runs: that its names, fields and types fit, and which functions it means.

mod calls;
mod names;

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators},
};

use super::{
    declaration::Declaration,
    parser::{Parsed, Places},
    signature::Overload,
    source::Issue,
    types::Type,
    unification::{Unification, more_general},
};

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

/// Checks an expression, and gives its names and functions their full names.
///
/// # Errors
/// Everything that does not fit.
pub(super) fn run(parsed: &mut Parsed, declared: Declared<'_>) -> Result<Checked, Vec<Issue>> {
    let Parsed { root, places } = parsed;
    let mut walk = Walk {
        declared,
        places,
        bound: Vec::new(),
        types: HashMap::new(),
        unification: Unification::default(),
        issues: Vec::new(),
        uses_old_self: false,
    };
    walk.visit(root);
    if !walk.issues.is_empty() {
        return Err(walk.issues);
    }
    let Walk { types, unification, uses_old_self, .. } = walk;
    let types = types.into_iter().map(|(id, found)| (id, unification.substituted(&found, true))).collect();
    Ok(Checked { types, overloads: HashMap::new(), uses_old_self })
}

struct Walk<'a> {
    declared: Declared<'a>,
    places: &'a Places,
    bound: Vec<(String, Type)>,
    types: HashMap<u64, Type>,
    unification: Unification,
    issues: Vec<Issue>,
    uses_old_self: bool,
}

impl Walk<'_> {
    fn visit(&mut self, node: &mut IdedExpr) -> Type {
        let id = node.id;
        let found = match &mut node.expr {
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => self.ident(id, name),
            Expr::Select(_) => self.select(node),
            Expr::Call(call) if call.func_name == operators::OPT_SELECT => self.optional_select(id, call),
            Expr::Call(call) => self.call(id, call),
            Expr::List(list) => {
                let optional = std::mem::take(&mut list.optional_indices);
                let mut all = None;
                for (index, element) in list.elements.iter_mut().enumerate() {
                    let found = self.entry(element, optional.contains(&index));
                    all = Some(self.joined(all, found));
                }
                list.optional_indices = optional;
                Type::list(all.unwrap_or_else(|| self.new_parameter()))
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (None, None);
                for entry in &mut map.entries {
                    let EntryExpr::MapEntry(entry) = &mut entry.expr else { continue };
                    let key = self.visit(&mut entry.key);
                    keys = Some(self.joined(keys, key));
                    let value = self.entry(&mut entry.value, entry.optional);
                    values = Some(self.joined(values, value));
                }
                let keys = keys.unwrap_or_else(|| self.new_parameter());
                Type::map(keys, values.unwrap_or_else(|| self.new_parameter()))
            }
            Expr::Struct(message) => self.message(id, message),
            Expr::Comprehension(fold) => self.fold(fold),
            Expr::Unspecified => Type::Fault,
        };
        let found = self.unification.substituted(&found, false);
        self.types.insert(id, found.clone());
        found
    }

    fn report(&mut self, id: u64, message: String) {
        self.issues.push(Issue { offset: self.places.of(id), message });
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Type {
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
        Type::Fault
    }

    fn mismatch(&mut self, id: u64, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn new_parameter(&mut self) -> Type {
        Type::Parameter(self.unification.parameters(1))
    }

    fn ident(&mut self, id: u64, name: &mut String) -> Type {
        let plain = name.trim_start_matches('.').to_owned();
        match self.lookup(&plain) {
            Some(found) => {
                *name = plain;
                found
            }
            None => self.undeclared(id, name),
        }
    }

    fn select(&mut self, node: &mut IdedExpr) -> Type {
        if let Some(name) = qualified(node)
            && let Some(found) = self.lookup(name.trim_start_matches('.'))
        {
            node.expr = Expr::Ident(name.trim_start_matches('.').to_owned());
            return found;
        }
        let id = node.id;
        let Expr::Select(SelectExpr { operand, field, test }) = &mut node.expr else { return Type::Fault };
        let operand = self.visit(operand);
        let found = self.field(id, &operand, field, false);
        if *test { Type::Bool } else { found }
    }

    fn optional_select(&mut self, id: u64, call: &mut CallExpr) -> Type {
        let [operand, name] = &mut call.args[..] else { return Type::Fault };
        let operand = self.visit(operand);
        self.visit(name);
        let Expr::Literal(LiteralValue::String(name)) = &name.expr else { return Type::Fault };
        self.field(id, &operand, name.inner(), true)
    }

    /// The type of a field.
    fn field(&mut self, id: u64, operand: &Type, name: &str, optional: bool) -> Type {
        let (target, is_optional) = match operand {
            Type::Optional(inner) => (&**inner, true),
            other => (other, false),
        };
        let found = match target {
            Type::Map(_, values) => (**values).clone(),
            Type::Object(structure) => structure.field(name).unwrap_or_else(|| {
                self.report(id, format!("undefined field '{name}'"));
                Type::Fault
            }),
            Type::Named(known) if known.starts_with("kubernetes.") => {
                self.report(id, format!("unexpected failed resolution of '{known}'"));
                Type::Fault
            }
            Type::Parameter(_) => {
                self.unification.fit(&Type::Dyn, target);
                Type::Dyn
            }
            other => {
                if !other.is_open() {
                    self.report(id, format!("type '{other}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional(found) } else { found }
    }

    /// The type of an element or a value, which may be optional.
    fn entry(&mut self, node: &mut IdedExpr, optional: bool) -> Type {
        let found = self.visit(node);
        match found {
            Type::Optional(inner) if optional => (*inner).clone(),
            found if optional && found != Type::Dyn => {
                self.mismatch(node.id, &Type::optional(found.clone()), &found);
                found
            }
            found => found,
        }
    }

    /// The type that all of them have.
    fn joined(&mut self, all: Option<Type>, found: Type) -> Type {
        match all {
            None => found,
            Some(all) if self.unification.fit(&all, &found) => more_general(&all, &found),
            // Most mixtures are refused when everything else fits.
            Some(_) => Type::Dyn,
        }
    }

    fn fold(&mut self, fold: &mut ComprehensionExpr) -> Type {
        let range = self.visit(&mut fold.iter_range);
        let start = self.visit(&mut fold.accu_init);
        let range = self.unification.substituted(&range, false);
        let (first, second) = match &range {
            Type::List(_) if fold.iter_var2.is_none() => (range.members().1, Type::Fault),
            Type::List(_) | Type::Map(..) => range.members(),
            Type::Dyn | Type::Fault | Type::Parameter(_) => {
                self.unification.fit(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(fold.iter_range.id, message);
                (Type::Fault, Type::Fault)
            }
        };
        let known = self.bound.len();
        self.bound.push((fold.accu_var.clone(), start.clone()));
        self.bound.push((fold.iter_var.clone(), first));
        self.bound.extend(fold.iter_var2.clone().map(|name| (name, second)));
        self.expected(&mut fold.loop_cond, &Type::Bool);
        self.expected(&mut fold.loop_step, &start);
        self.bound.truncate(known + 1);
        let result = self.visit(&mut fold.result);
        self.bound.truncate(known);
        result
    }

    fn expected(&mut self, node: &mut IdedExpr, wanted: &Type) {
        let found = self.visit(node);
        if !self.unification.fit(wanted, &found) {
            self.mismatch(node.id, wanted, &found);
        }
    }
}

/// A chain of names, such as `a.b.c`.
fn qualified(node: &IdedExpr) -> Option<String> {
    match &node.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => Some(format!("{}.{}", qualified(&select.operand)?, select.field)),
        _ => None,
    }
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
