//! Expressions as the interpreter reads them rightly.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, operators},
};

/// The function that every turn of a loop calls; no expression can name it.
pub(super) const STEP: &str = "@step";
/// The function that every turn of a loop calls that makes a list.
pub(super) const COLLECT: &str = "@collect";

/// Writes `a.?b` as `a[?'b']` and `a.b` as `a['b']`, where the interpreter is right about absent members and about what
/// has none, and counts the turns of loops.
pub(super) fn run(node: &mut IdedExpr) {
    match &mut node.expr {
        Expr::Call(call) => {
            if call.func_name == operators::OPT_SELECT {
                operators::OPT_INDEX.clone_into(&mut call.func_name);
            }
            call.target.iter_mut().map(|target| &mut **target).chain(&mut call.args).for_each(run);
        }
        Expr::Select(select) => {
            run(&mut select.operand);
            if !select.test {
                // A member of what may be absent may be absent as well.
                let optional = yields_optional(&select.operand);
                let name = LiteralValue::String(select.field.as_str().into());
                let name = IdedExpr { id: node.id, expr: Expr::Literal(name) };
                let args = vec![std::mem::take(&mut *select.operand), name];
                let func_name = if optional { operators::OPT_INDEX } else { operators::INDEX }.to_owned();
                node.expr = Expr::Call(CallExpr { func_name, target: None, args });
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(run),
        Expr::Map(map) => map.entries.iter_mut().for_each(|member| entry(&mut member.expr)),
        Expr::Struct(fields) => fields.entries.iter_mut().for_each(|member| entry(&mut member.expr)),
        Expr::Comprehension(loops) => {
            let loops = &mut **loops;
            let parts = [
                &mut loops.iter_range,
                &mut loops.accu_init,
                &mut loops.loop_cond,
                &mut loops.loop_step,
                &mut loops.result,
            ];
            parts.into_iter().for_each(run);
            let function = if matches!(loops.accu_init.expr, Expr::List(_)) { COLLECT } else { STEP };
            let step = CallExpr { func_name: function.to_owned(), target: None, args: Vec::new() };
            let step = IdedExpr { id: loops.loop_cond.id, expr: Expr::Call(step) };
            let id = step.id;
            let args = vec![step, std::mem::take(&mut loops.loop_cond)];
            let both = CallExpr { func_name: operators::LOGICAL_AND.to_owned(), target: None, args };
            loops.loop_cond = IdedExpr { id, expr: Expr::Call(both) };
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

fn entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => run(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            run(&mut entry.key);
            run(&mut entry.value);
        }
    }
}
