//! Macros that the parser does not know, as calls of functions that bind names: `cel.bind`, `sortBy`, loops with two names.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, LiteralValue, MapEntryExpr, MapExpr},
};

/// The function behind a macro; no expression can name it.
pub(super) const BIND: &str = "@bind";
/// As [`BIND`], for the other macros: what they are called with an `@` before it.
const PREFIX: &str = "@macro:";
/// The function behind `variables.NAME`.
pub(super) const VARIABLE: &str = "@variable";
/// The function behind `authorizer.requestResource`.
pub(super) const REQUEST_RESOURCE: &str = "@requestResource";

/// The macros on lists, maps and optional values: their names, how many names they bind, how many expressions follow.
const MACROS: [(&str, usize, &[usize]); 9] = [
    ("all", 2, &[1]),
    ("exists", 2, &[1]),
    ("existsOne", 2, &[1]),
    ("transformList", 2, &[1, 2]),
    ("transformMap", 2, &[1, 2]),
    ("transformMapEntry", 2, &[1, 2]),
    ("sortBy", 1, &[1]),
    ("optMap", 1, &[1]),
    ("optFlatMap", 1, &[1]),
];

/// The name of the function behind the macro `name`.
pub(super) fn function(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The names of all macros that [`expand`] makes calls of.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    MACROS.iter().map(|(name, ..)| *name)
}

/// How many of the arguments of a call of a macro's function stand before what sees the names, and how many names there
/// are; `None` for other functions.
pub(super) fn binding(function: &str) -> Option<usize> {
    if function == BIND {
        return Some(1);
    }
    let name = function.strip_prefix(PREFIX)?;
    MACROS.iter().find(|(known, ..)| *known == name).map(|(_, names, _)| *names)
}

/// Writes macros as calls whose first arguments are: what they are about, then the names as texts, then the expressions.
/// Messages become maps, `variables.x` and `authorizer.requestResource` calls.
pub(super) fn expand(node: &mut IdedExpr) {
    match &mut node.expr {
        Expr::Call(call) => call.target.iter_mut().map(|target| &mut **target).chain(&mut call.args).for_each(expand),
        Expr::Select(select) => expand(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(expand),
        Expr::Map(map) => map.entries.iter_mut().for_each(entry),
        Expr::Struct(fields) => fields.entries.iter_mut().for_each(entry),
        Expr::Comprehension(loops) => {
            let loops = &mut **loops;
            let parts = [
                &mut loops.iter_range,
                &mut loops.accu_init,
                &mut loops.loop_cond,
                &mut loops.loop_step,
                &mut loops.result,
            ];
            parts.into_iter().for_each(expand);
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
    let id = node.id;
    if let Some(expanded) = expanded(&mut node.expr, id) {
        node.expr = expanded;
    }
}

fn entry(entry: &mut IdedEntryExpr) {
    match &mut entry.expr {
        EntryExpr::StructField(field) => expand(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            expand(&mut entry.key);
            expand(&mut entry.value);
        }
    }
}

fn expanded(expression: &mut Expr, id: u64) -> Option<Expr> {
    match expression {
        Expr::Call(call) => expanded_call(call, id),
        Expr::Select(select) => {
            let Expr::Ident(name) = &select.operand.expr else { return None };
            let (function, args) = match (name.as_str(), select.field.as_str()) {
                ("variables", field) => (VARIABLE, vec![text(id, field)]),
                ("authorizer", "requestResource") => (REQUEST_RESOURCE, Vec::new()),
                _ => return None,
            };
            Some(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
        }
        _ => None,
    }
}

fn expanded_call(call: &mut CallExpr, id: u64) -> Option<Expr> {
    let target = call.target.as_ref()?;
    let name = |node: &IdedExpr| match &node.expr {
        Expr::Ident(name) => Some(name.clone()),
        _ => None,
    };
    if call.func_name == "bind" && matches!(&target.expr, Expr::Ident(name) if name == "cel") && call.args.len() == 3 {
        let bound = name(&call.args[0])?;
        let mut args = std::mem::take(&mut call.args).into_iter().skip(1);
        let args = vec![args.next()?, text(id, &bound), args.next()?];
        return Some(Expr::Call(CallExpr { func_name: BIND.to_owned(), target: None, args }));
    }
    let canonical = if call.func_name == "exists_one" { "existsOne" } else { call.func_name.as_str() };
    let (own, names, bodies) = MACROS.iter().find(|(own, ..)| *own == canonical)?;
    if !bodies.contains(&call.args.len().checked_sub(*names)?) {
        return None;
    }
    let bound: Vec<String> = call.args[..*names].iter().map(name).collect::<Option<_>>()?;
    let mut args = vec![std::mem::take(&mut **call.target.as_mut()?)];
    args.extend(bound.iter().map(|name| text(id, name)));
    args.extend(call.args.drain(*names..));
    Some(Expr::Call(CallExpr { func_name: function(own), target: None, args }))
}

fn text(id: u64, value: &str) -> IdedExpr {
    IdedExpr { id, expr: Expr::Literal(LiteralValue::String(value.into())) }
}

/// Writes messages as maps: that is what becomes of them in the end.
pub(super) fn flatten_messages(node: &mut IdedExpr) {
    let id = node.id;
    if let Expr::Struct(message) = &mut node.expr {
        let fields = std::mem::take(&mut message.entries).into_iter();
        let entries = fields.map(|field| match field.expr {
            EntryExpr::StructField(inner) => {
                let entry = MapEntryExpr { key: text(id, &inner.field), value: inner.value, optional: inner.optional };
                IdedEntryExpr { id: field.id, expr: EntryExpr::MapEntry(entry) }
            }
            other @ EntryExpr::MapEntry(_) => IdedEntryExpr { id: field.id, expr: other },
        });
        node.expr = Expr::Map(MapExpr { entries: entries.collect() });
    }
    match &mut node.expr {
        Expr::Call(call) => {
            call.target.iter_mut().map(|target| &mut **target).chain(&mut call.args).for_each(flatten_messages);
        }
        Expr::Select(select) => flatten_messages(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(flatten_messages),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| {
            if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                flatten_messages(&mut entry.value);
            }
        }),
        Expr::Comprehension(loops) => {
            let loops = &mut **loops;
            [&mut loops.iter_range, &mut loops.loop_step, &mut loops.result].into_iter().for_each(flatten_messages);
        }
        _ => {}
    }
}
