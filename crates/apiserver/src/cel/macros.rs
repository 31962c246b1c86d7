//! Macros, written out as the loops and the bindings that they stand for.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
        operators,
    },
};

use super::parser::{Halt, Parser, Part};

/// The function that puts an entry into the map that a loop makes; no expression can name it.
pub(super) const INSERT: &str = "cel.@mapInsert";
/// The function that sorts a list by the keys in another one.
pub(super) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";
/// What a loop collects its result in.
pub(super) const RESULT: &str = "@result";
/// What loops called their results once, which no variable of theirs may be called.
const OLD_RESULT: &str = "__result__";
/// The name of a loop that has no turns.
const UNUSED: &str = "#unused";
/// What `sortBy` calls the list.
const SORTED: &str = "@__sortBy_input__";
/// How much deeper than its parts what a macro stands for is.
const DEPTH: usize = 4;

/// Whether a call is one of a macro.
pub(super) fn is_one(function: &str, is_method: bool, args: usize) -> bool {
    match (function, is_method) {
        ("has", false) => args == 1,
        ("all" | "exists" | "exists_one" | "map", true) => matches!(args, 2 | 3),
        ("existsOne", true) => args == 3,
        ("filter" | "optMap" | "optFlatMap" | "sortBy", true) => args == 2,
        ("transformList" | "transformMap" | "transformMapEntry", true) => matches!(args, 3 | 4),
        _ => false,
    }
}

/// Whether a loop only binds a name to a value.
pub(super) fn is_binding(fold: &ComprehensionExpr) -> bool {
    fold.iter_var == UNUSED
}

/// What a macro stands for.
pub(super) fn expanded(
    parser: &mut Parser,
    id: u64,
    function: &str,
    target: Option<Part>,
    args: Vec<Part>,
) -> Result<Part, Halt> {
    let place = parser.place(id);
    let depth = target.iter().chain(&args).map(|part| part.depth).max().unwrap_or(0) + DEPTH;
    let mut args: Vec<IdedExpr> = args.into_iter().map(|part| part.node).collect();
    let mut expansion = Expansion { parser, place };
    let made = match target {
        None => expansion.presence(args.remove(0)),
        Some(target) => expansion.method(function, target.node, args),
    };
    match made {
        Ok(node) => expansion.parser.over(node.id, node.expr, [depth - 1]),
        Err(Failure::Halt(halt)) => Err(halt),
        Err(Failure::Argument(id, message)) => {
            let place = expansion.parser.place(id);
            expansion.parser.fault(place, &message)
        }
    }
}

/// Why a macro cannot be written out.
enum Failure {
    Halt(Halt),
    /// An argument is not what it has to be.
    Argument(u64, String),
}

impl From<Halt> for Failure {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

type Made<T = IdedExpr> = Result<T, Failure>;

/// A loop without its range and its names.
struct Fold {
    start: IdedExpr,
    condition: IdedExpr,
    step: IdedExpr,
    result: IdedExpr,
}

struct Expansion<'a> {
    parser: &'a mut Parser,
    /// Where the macro stands, and with it all that it stands for.
    place: usize,
}

impl Expansion<'_> {
    fn presence(&mut self, arg: IdedExpr) -> Made {
        match arg.expr {
            Expr::Select(select) => self.node(Expr::Select(SelectExpr { test: true, ..select })),
            _ => Err(Failure::Argument(arg.id, "invalid argument to has() macro".to_owned())),
        }
    }

    fn method(&mut self, function: &str, target: IdedExpr, mut args: Vec<IdedExpr>) -> Made {
        if let "optMap" | "optFlatMap" = function {
            let Expr::Ident(name) = &args[0].expr else {
                let message = format!("{function}() variable name must be a simple identifier");
                return Err(Failure::Argument(args[0].id, message));
            };
            return self.optional(target, &name.clone(), args.remove(1), function == "optMap");
        }
        if function == "sortBy" {
            return self.sort_by(target, args);
        }
        let has_two_names = function.starts_with("transform") || args.len() == 3 && function != "map";
        let what = if matches!(function, "map" | "filter") {
            "argument is not an identifier"
        } else {
            "argument must be a simple name"
        };
        let first = variable(&args[0], what)?;
        let second = match has_two_names {
            true => Some(variable(&args[1], what)?),
            false => None,
        };
        if second.as_ref() == Some(&first) {
            return Err(Failure::Argument(args[1].id, format!("duplicate variable name: {first}")));
        }
        for (name, arg) in [Some(&first), second.as_ref()].into_iter().flatten().zip(&args) {
            if name == RESULT || name == OLD_RESULT {
                let message = "iteration variable overwrites accumulator variable".to_owned();
                return Err(Failure::Argument(arg.id, message));
            }
        }
        let rest = args.split_off(if has_two_names { 2 } else { 1 });
        let fold = self.fold(function, &first, rest)?;
        self.loop_over(target, first, second, fold)
    }

    fn fold(&mut self, function: &str, name: &str, mut parts: Vec<IdedExpr>) -> Made<Fold> {
        let body = parts.pop().ok_or(Halt::Syntax)?;
        let filter = parts.pop();
        Ok(match function {
            "all" => {
                let accumulated = self.ident(RESULT)?;
                Fold {
                    start: self.truth(true)?,
                    condition: self.call(operators::NOT_STRICTLY_FALSE, vec![accumulated])?,
                    step: self.call_on_result(operators::LOGICAL_AND, body)?,
                    result: self.ident(RESULT)?,
                }
            }
            "exists" => {
                let accumulated = self.ident(RESULT)?;
                let negated = self.call(operators::LOGICAL_NOT, vec![accumulated])?;
                Fold {
                    start: self.truth(false)?,
                    condition: self.call(operators::NOT_STRICTLY_FALSE, vec![negated])?,
                    step: self.call_on_result(operators::LOGICAL_OR, body)?,
                    result: self.ident(RESULT)?,
                }
            }
            "exists_one" | "existsOne" => {
                let more = self.number(1)?;
                let more = self.call_on_result(operators::ADD, more)?;
                let unchanged = self.ident(RESULT)?;
                let once = self.number(1)?;
                Fold {
                    start: self.number(0)?,
                    condition: self.truth(true)?,
                    step: self.call(operators::CONDITIONAL, vec![body, more, unchanged])?,
                    result: self.call_on_result(operators::EQUALS, once)?,
                }
            }
            _ => self.collection(function, name, body, filter)?,
        })
    }

    /// A loop that makes a list or a map.
    fn collection(&mut self, function: &str, name: &str, body: IdedExpr, filter: Option<IdedExpr>) -> Made<Fold> {
        let (start, step, filter) = match function {
            "filter" => {
                let item = self.ident(name)?;
                let item = self.list(vec![item])?;
                (self.list(Vec::new())?, self.call_on_result(operators::ADD, item)?, Some(body))
            }
            "map" | "transformList" => {
                let item = self.list(vec![body])?;
                (self.list(Vec::new())?, self.call_on_result(operators::ADD, item)?, filter)
            }
            "transformMap" => {
                let (accumulated, key) = (self.ident(RESULT)?, self.ident(name)?);
                (self.empty_map()?, self.call(INSERT, vec![accumulated, key, body])?, filter)
            }
            _ => (self.empty_map()?, self.call_on_result(INSERT, body)?, filter),
        };
        let step = match filter {
            Some(filter) => {
                let unchanged = self.ident(RESULT)?;
                self.call(operators::CONDITIONAL, vec![filter, step, unchanged])?
            }
            None => step,
        };
        Ok(Fold { start, condition: self.truth(true)?, step, result: self.ident(RESULT)? })
    }

    fn loop_over(&mut self, range: IdedExpr, name: String, second: Option<String>, fold: Fold) -> Made {
        let Fold { start, condition, step, result } = fold;
        self.node(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: range,
            iter_var: name,
            iter_var2: second,
            accu_var: RESULT.to_owned(),
            accu_init: start,
            loop_cond: condition,
            loop_step: step,
            result,
        })))
    }

    /// A name for a value: a loop without turns.
    fn binding(&mut self, name: &str, value: IdedExpr, body: IdedExpr) -> Made {
        let (iter_range, loop_step) = (self.list(Vec::new())?, self.ident(name)?);
        let never = self.truth(false)?;
        self.node(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range,
            iter_var: UNUSED.to_owned(),
            iter_var2: None,
            accu_var: name.to_owned(),
            accu_init: value,
            loop_cond: never,
            loop_step,
            result: body,
        })))
    }

    fn sort_by(&mut self, target: IdedExpr, args: Vec<IdedExpr>) -> Made {
        if matches!(target.expr, Expr::Literal(_) | Expr::Map(_) | Expr::Struct(_)) {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err(Failure::Argument(target.id, message.to_owned()));
        }
        let range = self.ident(SORTED)?;
        let keys = self.method("map", range, args)?;
        let list = self.ident(SORTED)?;
        let sorted = self.method_call(SORT_BY_KEYS, list, vec![keys])?;
        self.binding(SORTED, target, sorted)
    }

    fn optional(&mut self, target: IdedExpr, name: &str, body: IdedExpr, wraps: bool) -> Made {
        let mut copy = target.clone();
        self.renumber(&mut copy)?;
        let value = self.method_call("value", copy, Vec::new())?;
        let mut some = self.binding(name, value, body)?;
        if wraps {
            some = self.call("optional.of", vec![some])?;
        }
        let condition = self.method_call("hasValue", target, Vec::new())?;
        let none = self.call("optional.none", Vec::new())?;
        self.call(operators::CONDITIONAL, vec![condition, some, none])
    }

    /// Gives every node of a copy a number of its own.
    fn renumber(&mut self, node: &mut IdedExpr) -> Made<()> {
        node.id = self.parser.id(self.parser.place(node.id))?;
        parts(&mut node.expr).into_iter().try_for_each(|part| self.renumber(part))
    }

    fn node(&mut self, expr: Expr) -> Made {
        Ok(IdedExpr { id: self.parser.id(self.place)?, expr })
    }

    fn ident(&mut self, name: &str) -> Made {
        self.node(Expr::Ident(name.to_owned()))
    }

    fn truth(&mut self, value: bool) -> Made {
        self.node(Expr::Literal(LiteralValue::Boolean(value.into())))
    }

    fn number(&mut self, value: i64) -> Made {
        self.node(Expr::Literal(LiteralValue::Int(value.into())))
    }

    fn list(&mut self, elements: Vec<IdedExpr>) -> Made {
        self.node(Expr::List(ListExpr::new(elements)))
    }

    fn empty_map(&mut self) -> Made {
        self.node(Expr::Map(MapExpr { entries: Vec::new() }))
    }

    fn call(&mut self, function: &str, args: Vec<IdedExpr>) -> Made {
        self.node(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
    }

    fn call_on_result(&mut self, function: &str, other: IdedExpr) -> Made {
        let result = self.ident(RESULT)?;
        self.call(function, vec![result, other])
    }

    fn method_call(&mut self, function: &str, target: IdedExpr, args: Vec<IdedExpr>) -> Made {
        self.node(Expr::Call(CallExpr { func_name: function.to_owned(), target: Some(Box::new(target)), args }))
    }
}

/// The name that an argument gives to a variable.
fn variable(arg: &IdedExpr, otherwise: &str) -> Made<String> {
    match &arg.expr {
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err(Failure::Argument(arg.id, otherwise.to_owned())),
    }
}

/// The parts of an expression.
pub(super) fn parts(expression: &mut Expr) -> Vec<&mut IdedExpr> {
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
