//! Macros that the parser does not know, written out as the loops and the bindings that they stand for.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue, MapExpr, operators,
    },
};

/// The function that puts an entry into the map that a loop makes; no expression can name it.
pub(super) const INSERT: &str = "@mapInsert";
/// The function that sorts a list by the keys in another one.
pub(super) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";
/// What a loop collects its result in.
pub(super) const RESULT: &str = "@result";
/// The name of a loop that has no turns.
const UNUSED: &str = "#unused";
/// What `sortBy` calls the list.
const SORTED: &str = "@sorted";
/// Where the numbers of nodes begin that the parser has not made.
const FIRST_ID: u64 = 1 << 32;
/// What functions are named by, other than values.
const LIBRARIES: [&str; 8] = ["sets", "math", "lists", "base64", "strings", "optional", "format", "jsonpatch"];

/// Writes out all macros, and calls such as `sets.contains(a, b)` as calls of `sets.contains`.
pub(super) fn expand(expression: &mut IdedExpr) {
    Expansion { next: FIRST_ID }.visit(expression);
}

/// Whether a loop only binds a name to a value.
pub(super) fn is_binding(fold: &ComprehensionExpr) -> bool {
    fold.iter_var == UNUSED
}

/// The parts of an expression.
fn parts(expression: &mut Expr) -> Vec<&mut IdedExpr> {
    match expression {
        Expr::Call(call) => call.target.iter_mut().map(|target| &mut **target).chain(&mut call.args).collect(),
        Expr::Select(select) => vec![&mut select.operand],
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(MapExpr { entries }) => entries.iter_mut().flat_map(entry_parts).collect(),
        Expr::Struct(message) => message.entries.iter_mut().flat_map(entry_parts).collect(),
        Expr::Comprehension(fold) => {
            let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } = &mut **fold;
            vec![iter_range, accu_init, loop_cond, loop_step, result]
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn entry_parts(entry: &mut IdedEntryExpr) -> Vec<&mut IdedExpr> {
    match &mut entry.expr {
        EntryExpr::StructField(field) => vec![&mut field.value],
        EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
    }
}

/// A loop without its range and its names.
struct Fold {
    start: IdedExpr,
    condition: IdedExpr,
    step: IdedExpr,
    result: IdedExpr,
}

struct Expansion {
    next: u64,
}

impl Expansion {
    fn visit(&mut self, node: &mut IdedExpr) {
        parts(&mut node.expr).into_iter().for_each(|part| self.visit(part));
        let Expr::Call(call) = &mut node.expr else { return };
        if let Some(expanded) = self.expanded(call) {
            *node = expanded;
        } else if let Some(Expr::Ident(prefix)) = call.target.as_ref().map(|target| &target.expr)
            && (LIBRARIES.contains(&prefix.as_str()) || prefix == "ip" && call.func_name == "isCanonical")
        {
            call.func_name = format!("{prefix}.{}", call.func_name);
            call.target = None;
        }
    }

    fn expanded(&mut self, call: &CallExpr) -> Option<IdedExpr> {
        let target = call.target.as_deref()?.clone();
        let name = |index: usize| match &call.args.get(index)?.expr {
            Expr::Ident(name) => Some(name.clone()),
            _ => None,
        };
        match (call.func_name.as_str(), &call.args[..]) {
            ("bind", [_, value, body]) if matches!(&target.expr, Expr::Ident(name) if name == "cel") => {
                Some(self.binding(name(0)?, value.clone(), body.clone()))
            }
            ("sortBy", [_, key]) => Some(self.sort_by(target, name(0)?, key.clone())),
            ("optMap", [_, body]) => Some(self.optional(target, name(0)?, body.clone(), true)),
            ("optFlatMap", [_, body]) => Some(self.optional(target, name(0)?, body.clone(), false)),
            (function, [_, _, rest @ ..]) if matches!(rest.len(), 1 | 2) => {
                let names = [name(0)?, name(1)?];
                let fold = self.fold(function, &names[0], rest)?;
                Some(self.loop_over(target, names, fold))
            }
            _ => None,
        }
    }

    /// A loop with a name for keys and one for values.
    fn fold(&mut self, function: &str, key: &str, parts: &[IdedExpr]) -> Option<Fold> {
        let result = self.ident(RESULT);
        let (body, filter) = match parts {
            [body] => (body.clone(), None),
            [filter, body] if function.starts_with("transform") => (body.clone(), Some(filter.clone())),
            _ => return None,
        };
        let always = LiteralValue::Boolean(true.into());
        let (start, condition, step, result) = match function {
            "all" => {
                let condition = self.not_strictly_false(result);
                let step = self.call_on_result(operators::LOGICAL_AND, body);
                (self.literal(always), condition, step, self.ident(RESULT))
            }
            "exists" => {
                let negated = self.call(operators::LOGICAL_NOT, vec![result]);
                let condition = self.not_strictly_false(negated);
                let step = self.call_on_result(operators::LOGICAL_OR, body);
                (self.literal(LiteralValue::Boolean(false.into())), condition, step, self.ident(RESULT))
            }
            "existsOne" | "exists_one" => {
                let one = || LiteralValue::Int(1.into());
                let (more, once) = (self.literal(one()), self.literal(one()));
                let step = self.call_on_result(operators::ADD, more);
                let step = self.call(operators::CONDITIONAL, vec![body, step, result]);
                let result = self.call_on_result(operators::EQUALS, once);
                (self.literal(LiteralValue::Int(0.into())), self.literal(always), step, result)
            }
            _ => {
                let (start, step) = self.transformation(function, key, body)?;
                let step = match filter {
                    Some(filter) => {
                        let unchanged = self.ident(RESULT);
                        self.call(operators::CONDITIONAL, vec![filter, step, unchanged])
                    }
                    None => step,
                };
                (start, self.literal(always), step, result)
            }
        };
        Some(Fold { start, condition, step, result })
    }

    /// Where a transformation begins, and what it does at every turn.
    fn transformation(&mut self, function: &str, key: &str, body: IdedExpr) -> Option<(IdedExpr, IdedExpr)> {
        match function {
            "transformList" => {
                let item = self.list(vec![body]);
                Some((self.list(Vec::new()), self.call_on_result(operators::ADD, item)))
            }
            "transformMap" => {
                let (result, key) = (self.ident(RESULT), self.ident(key));
                Some((self.empty_map(), self.call(INSERT, vec![result, key, body])))
            }
            "transformMapEntry" => Some((self.empty_map(), self.call_on_result(INSERT, body))),
            _ => None,
        }
    }

    fn loop_over(&mut self, range: IdedExpr, [key, value]: [String; 2], fold: Fold) -> IdedExpr {
        let Fold { start, condition, step, result } = fold;
        self.node(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: range,
            iter_var: key,
            iter_var2: Some(value),
            accu_var: RESULT.to_owned(),
            accu_init: start,
            loop_cond: condition,
            loop_step: step,
            result,
        })))
    }

    /// `cel.bind(name, value, body)`: a loop without turns.
    fn binding(&mut self, name: String, value: IdedExpr, body: IdedExpr) -> IdedExpr {
        let (iter_range, loop_step) = (self.list(Vec::new()), self.ident(&name));
        let never = self.literal(LiteralValue::Boolean(false.into()));
        self.node(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range,
            iter_var: UNUSED.to_owned(),
            iter_var2: None,
            accu_var: name,
            accu_init: value,
            loop_cond: never,
            loop_step,
            result: body,
        })))
    }

    fn sort_by(&mut self, target: IdedExpr, name: String, key: IdedExpr) -> IdedExpr {
        let item = self.list(vec![key]);
        let (start, step) = (self.list(Vec::new()), self.call_on_result(operators::ADD, item));
        let (range, always) = (self.ident(SORTED), self.literal(LiteralValue::Boolean(true.into())));
        let result = self.ident(RESULT);
        let keys = self.node(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: range,
            iter_var: name,
            iter_var2: None,
            accu_var: RESULT.to_owned(),
            accu_init: start,
            loop_cond: always,
            loop_step: step,
            result,
        })));
        let list = self.ident(SORTED);
        let sorted = self.method(SORT_BY_KEYS, list, vec![keys]);
        self.binding(SORTED.to_owned(), target, sorted)
    }

    fn optional(&mut self, target: IdedExpr, name: String, body: IdedExpr, wraps: bool) -> IdedExpr {
        let value = self.method("value", target.clone(), Vec::new());
        let mut some = self.binding(name, value, body);
        if wraps {
            some = self.call("optional.of", vec![some]);
        }
        let condition = self.method("hasValue", target, Vec::new());
        let none = self.call("optional.none", Vec::new());
        self.call(operators::CONDITIONAL, vec![condition, some, none])
    }

    fn node(&mut self, expr: Expr) -> IdedExpr {
        self.next += 1;
        IdedExpr { id: self.next, expr }
    }

    fn ident(&mut self, name: &str) -> IdedExpr {
        self.node(Expr::Ident(name.to_owned()))
    }

    fn literal(&mut self, value: LiteralValue) -> IdedExpr {
        self.node(Expr::Literal(value))
    }

    fn list(&mut self, elements: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::List(ListExpr::new(elements)))
    }

    fn empty_map(&mut self) -> IdedExpr {
        self.node(Expr::Map(MapExpr { entries: Vec::new() }))
    }

    fn call(&mut self, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
    }

    fn call_on_result(&mut self, function: &str, other: IdedExpr) -> IdedExpr {
        let result = self.ident(RESULT);
        self.call(function, vec![result, other])
    }

    fn method(&mut self, function: &str, target: IdedExpr, args: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::Call(CallExpr { func_name: function.to_owned(), target: Some(Box::new(target)), args }))
    }

    fn not_strictly_false(&mut self, value: IdedExpr) -> IdedExpr {
        self.call(operators::NOT_STRICTLY_FALSE, vec![value])
    }
}
