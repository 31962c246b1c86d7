//! What an expression may cost at most, told before it runs: by the sizes that the schema allows.

use std::sync::Arc;

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators},
};

use super::{
    check::Checked,
    declaration::{Declaration, Shape},
    macros, price,
    range::{LIST, MAP, OBJECT, Range},
    types::Type,
};

/// The most that an expression costs, in the units of Kubernetes.
pub(super) fn cost_max(expression: &IdedExpr, checked: &Checked, root: &Arc<Declaration>) -> u64 {
    Estimator { checked, root, bound: Vec::new() }.visit(expression).cost.max
}

/// Where in the declared data a value is found.
#[derive(Clone, Debug, Default)]
pub(super) enum Place {
    /// It is not found there: it is made by the expression.
    #[default]
    Nowhere,
    At(Arc<Declaration>),
    /// Where nothing is declared.
    Unknown,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Element,
    Key,
    Index,
}

/// The sizes of the keys and the values of what an expression makes.
#[derive(Clone, Copy, Debug)]
struct Entries {
    of_list: bool,
    key: Range,
    value: Range,
}

impl Entries {
    fn or(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (one, other) = (one?, other?);
        Some(Self { of_list: one.of_list, key: one.key.or(other.key), value: one.value.or(other.value) })
    }
}

/// What is known of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    /// What it costs.
    pub(super) cost: Range,
    /// How large its value is, if that is known.
    size: Option<Range>,
    entries: Option<Entries>,
    /// Where its value is found.
    pub(super) place: Place,
}

impl Estimate {
    /// How large the value is.
    pub(super) fn size(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }
}

struct Estimator<'a> {
    checked: &'a Checked,
    root: &'a Arc<Declaration>,
    bound: Vec<(&'a str, Estimate)>,
}

impl<'a> Estimator<'a> {
    fn visit(&mut self, node: &'a IdedExpr) -> Estimate {
        let mut estimate = match &node.expr {
            Expr::Literal(literal) => Estimate { size: size_of_literal(literal), ..Estimate::default() },
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(node.id, call),
            Expr::List(list) => self.list(&list.elements),
            Expr::Map(map) => self.map(map.entries.iter().map(|entry| &entry.expr)),
            Expr::Struct(message) => self.message(message.entries.iter().map(|entry| &entry.expr)),
            Expr::Comprehension(fold) if macros::is_binding(fold) => self.binding(fold),
            Expr::Comprehension(fold) => self.fold(fold),
            Expr::Unspecified => Estimate::default(),
        };
        let by_place = self.size_at(&estimate.place);
        let by_type = self.checked.of(node).is_scalar().then_some(Range::exactly(1));
        let by_name = match &node.expr {
            Expr::Ident(name) => self.bound(name).and_then(|bound| bound.size),
            _ => None,
        };
        estimate.size = estimate.size.or(by_place).or(by_type).or(by_name);
        estimate
    }

    fn bound(&self, name: &str) -> Option<&Estimate> {
        self.bound.iter().rev().find(|(known, _)| *known == name).map(|(_, estimate)| estimate)
    }

    fn name(&self, name: &str) -> Estimate {
        let (place, entries) = match self.bound(name) {
            Some(bound) => (bound.place.clone(), bound.entries),
            None => (Place::At(Arc::clone(self.root)), None),
        };
        Estimate { cost: Range::exactly(1), size: None, entries, place }
    }

    fn select(&mut self, select: &'a SelectExpr) -> Estimate {
        let operand = self.visit(&select.operand);
        if select.test {
            return Estimate { cost: operand.cost, ..Estimate::default() };
        }
        let counted = matches!(self.checked.of(&select.operand), Type::Map(..) | Type::Object(_));
        let cost = operand.cost.add(Range::exactly(u64::from(counted)));
        let place = self.step(&operand.place, Step::Field(&select.field));
        Estimate { cost, place, ..Estimate::default() }
    }

    fn list(&mut self, elements: &'a [IdedExpr]) -> Estimate {
        let mut cost = Range::exactly(LIST);
        let mut value: Option<Range> = None;
        for element in elements {
            let element = self.visit(element);
            cost = cost.add(element.cost);
            value = Some(value.map_or(element.size(), |value| value.or(element.size())));
        }
        let entries = Entries { of_list: true, key: Range::exactly(1), value: value.unwrap_or_default() };
        let size = Some(Range::exactly(elements.len() as u64));
        Estimate { cost, size, entries: Some(entries), place: Place::Nowhere }
    }

    fn map(&mut self, members: impl Iterator<Item = &'a EntryExpr>) -> Estimate {
        let mut cost = Range::exactly(MAP);
        let (mut count, mut sizes): (u64, Option<(Range, Range)>) = (0, None);
        for member in members {
            let EntryExpr::MapEntry(entry) = member else { continue };
            let (key, value) = (self.visit(&entry.key), self.visit(&entry.value));
            cost = cost.add(key.cost).add(value.cost);
            let (keys, values) = sizes.unwrap_or((key.size(), value.size()));
            sizes = Some((keys.or(key.size()), values.or(value.size())));
            count += 1;
        }
        let (key, value) = sizes.unwrap_or_default();
        let entries = Some(Entries { of_list: false, key, value });
        Estimate { cost, size: Some(Range::exactly(count)), entries, place: Place::Nowhere }
    }

    fn message(&mut self, fields: impl Iterator<Item = &'a EntryExpr>) -> Estimate {
        let mut cost = Range::exactly(OBJECT);
        for field in fields {
            if let EntryExpr::StructField(field) = field {
                cost = cost.add(self.visit(&field.value).cost);
            }
        }
        Estimate { cost, ..Estimate::default() }
    }

    fn binding(&mut self, fold: &'a ComprehensionExpr) -> Estimate {
        let range = self.visit(&fold.iter_range);
        let value = self.visit(&fold.accu_init);
        let cost = range.cost.add(value.cost);
        self.bound.push((&fold.accu_var, value));
        let result = self.visit(&fold.result);
        self.bound.pop();
        Estimate { cost: cost.add(result.cost), place: Place::Nowhere, ..result }
    }

    fn fold(&mut self, fold: &'a ComprehensionExpr) -> Estimate {
        let range = self.visit(&fold.iter_range);
        let start = self.visit(&fold.accu_init);
        let mut cost = range.cost.add(start.cost);
        let known = self.bound.len();
        self.bound.push((&fold.accu_var, start.clone()));
        self.bind_members(fold, &range);
        let turn = self.visit(&fold.loop_cond).cost;
        let step = self.visit(&fold.loop_step);
        let turn = turn.add(step.cost);
        self.bound.truncate(known + 1);
        cost = cost.add(self.visit(&fold.result).cost);
        self.bound.truncate(known);
        cost = cost.add(range.size().times(turn));
        let (size, entries) = match &fold.accu_init.expr {
            Expr::Literal(_) => (start.size, None),
            Expr::List(_) | Expr::Map(_) => (Some(range.size()), step.entries),
            _ => (None, None),
        };
        Estimate { cost, size, entries, place: Place::Nowhere }
    }

    /// Binds the names of a loop to the keys and the values of what it is about.
    fn bind_members(&mut self, fold: &'a ComprehensionExpr, range: &Estimate) {
        let is_list = match range.entries {
            Some(entries) => entries.of_list,
            None => matches!(self.checked.of(&fold.iter_range), Type::List(_)),
        };
        let member = |step: Step<'_>, size: Option<Range>| {
            let place = self.step(&range.place, step);
            Estimate { size, place, ..Estimate::default() }
        };
        let key = member(if is_list { Step::Index } else { Step::Key }, range.entries.map(|entries| entries.key));
        let value = member(Step::Element, range.entries.map(|entries| entries.value));
        match &fold.iter_var2 {
            Some(second) => self.bound.extend([(fold.iter_var.as_str(), key), (second, value)]),
            None => self.bound.push((&fold.iter_var, if is_list { value } else { key })),
        }
    }

    fn call(&mut self, id: u64, call: &'a CallExpr) -> Estimate {
        let args: Vec<Estimate> = call.args.iter().map(|argument| self.visit(argument)).collect();
        if let ("dyn", [only]) = (call.func_name.as_str(), &args[..]) {
            let cost = only.cost.add(Range::exactly(1));
            return Estimate { cost, place: Place::Nowhere, ..only.clone() };
        }
        let target = call.target.as_ref().map(|target| self.visit(target));
        let overloads = self.checked.overloads.get(&id).map(Vec::as_slice).unwrap_or_default();
        let mut question = price::Question { call, checked: self.checked, target: target.as_ref(), args: &args };
        let (own, mut size) = question.estimate(overloads, &|place| self.size_at(&self.step(place, Step::Element)));
        let mut cost = own.add(target.as_ref().map(|target| target.cost).unwrap_or_default());
        let mut entries = None;
        let mut place = Place::Nowhere;
        match (call.func_name.as_str(), &args[..]) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [left, right]) => {
                cost = Range { min: left.cost.min, max: left.cost.add(right.cost).max };
            }
            (operators::CONDITIONAL, [condition, yes, no]) => {
                cost = condition.cost.add(yes.cost.or(no.cost));
                size = Some(yes.size().or(no.size()));
                entries = Entries::or(yes.entries, no.entries);
            }
            (operators::ADD, [left, right]) => {
                cost = cost.add(left.cost).add(right.cost);
                entries = Entries::or(left.entries, right.entries);
            }
            (operators::INDEX, [container, key]) => {
                cost = cost.add(container.cost).add(key.cost);
                size = container.entries.map(|entries| entries.value);
                place = self.step(&container.place, Step::Element);
            }
            _ => cost = args.iter().fold(cost, |cost, argument| cost.add(argument.cost)),
        }
        Estimate { cost, size, entries, place }
    }

    /// The place one step further.
    fn step(&self, place: &Place, step: Step<'_>) -> Place {
        let from = match place {
            // What an expression makes has no place, and its members are sought at the root, as upstream.
            Place::Nowhere => return Place::At(Arc::clone(self.root)),
            Place::Unknown => return Place::Unknown,
            Place::At(from) => from,
        };
        let found = match (step, &from.shape) {
            (Step::Element, _) => from.element().cloned(),
            (Step::Key, Shape::Map(_)) => Some(key()),
            (Step::Field(name), Shape::Object(fields)) => fields.get(name).cloned(),
            _ => None,
        };
        found.map_or(Place::Unknown, Place::At)
    }

    fn size_at(&self, place: &Place) -> Option<Range> {
        match place {
            Place::At(declaration) => Some(Range { min: 0, max: declaration.elements_max }),
            Place::Nowhere | Place::Unknown => None,
        }
    }
}

/// The declaration of the keys of maps, to which no size is given.
fn key() -> Arc<Declaration> {
    Arc::new(Declaration::unsized_text())
}

fn size_of_literal(literal: &LiteralValue) -> Option<Range> {
    let size = match literal {
        LiteralValue::String(text) => text.inner().chars().count(),
        LiteralValue::Bytes(bytes) => bytes.inner().len(),
        _ => 1,
    };
    Some(Range::exactly(size as u64))
}
