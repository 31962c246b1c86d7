//! What calls of functions cost at most, by the sizes of what they are given.

use kube_cel::cel::common::ast::{CallExpr, Expr, LiteralValue, operators};

use super::{
    check::Checked,
    estimate::{Estimate, Place},
    macros,
    range::{LIST, OBJECT, PER_LETTER, PER_PATTERN_LETTER, Range},
    signature::Overload,
    types::Type,
};

/// What asking whether somebody may do something costs: two questions fit into an expression.
pub(super) const AUTHORIZATION: u64 = 350_000;
/// What a requirement of a selector costs, of which there is one in two letters at most.
const REQUIREMENT: u64 = LIST + OBJECT;
const REQUIREMENTS_PER_LETTER: f64 = 0.5;
/// The longest pattern behind a named format.
const FORMAT_PATTERN_LETTERS: f64 = 128.0;
/// The bytes of an address.
const ADDRESS_BYTES: Range = Range { min: 4, max: 16 };

type Priced = (Range, Option<Range>);

/// A call whose cost is asked for.
pub(super) struct Question<'a> {
    pub(super) call: &'a CallExpr,
    pub(super) checked: &'a Checked,
    pub(super) target: Option<&'a Estimate>,
    pub(super) args: &'a [Estimate],
}

impl Question<'_> {
    /// What the call itself costs, and how large its result is if that is known; `element` tells how large the elements
    /// are of what is found somewhere.
    pub(super) fn estimate(&mut self, overloads: &[Overload], element: &dyn Fn(&Place) -> Option<Range>) -> Priced {
        let mut all: Option<Priced> = None;
        for overload in overloads {
            let (cost, size) = self.of_overload(*overload, element);
            all = Some(match all {
                None => (cost, size),
                Some((known, None)) => (known.or(cost), size),
                Some((known, Some(known_size))) => {
                    (known.or(cost), Some(size.map_or(known_size, |size| known_size.or(size))))
                }
            });
        }
        all.unwrap_or_default()
    }

    fn of_overload(&self, overload: Overload, element: &dyn Fn(&Place) -> Option<Range>) -> Priced {
        let by_name = match (self.target, self.args) {
            (Some(target), args) => self.of_method(overload, target, args, element),
            (None, args) => self.of_function(args),
        };
        by_name.unwrap_or_else(|| (self.of_language(overload), self.size_of_language(overload)))
    }

    /// A method of a library.
    fn of_method(
        &self,
        overload: Overload,
        target: &Estimate,
        args: &[Estimate],
        element: &dyn Fn(&Place) -> Option<Range>,
    ) -> Option<Priced> {
        let size = target.size();
        let letters = size.per(PER_LETTER);
        Some(match (self.call.func_name.as_str(), args) {
            ("check", _) => (Range::exactly(AUTHORIZATION), None),
            ("fieldSelector" | "labelSelector", [selector]) => (of_selector(selector.size()), None),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", _) => {
                (self.of_traversal(target, element), None)
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", _) => (letters, Some(size)),
            ("replace", [from, to, ..]) => (size.per(2.0 * PER_LETTER), Some(replaced(size, from.size(), to.size()))),
            ("split", _) => {
                let most = self.literal(1).unwrap_or(size.max);
                (size.per(2.0 * PER_LETTER), Some(Range { min: 0, max: most }))
            }
            ("join", _) => {
                let joined = self.joined(target, args.first(), element);
                (joined.per(PER_LETTER), Some(joined))
            }
            ("find" | "findAll", [pattern]) => {
                let letters = size.add(Range::exactly(1)).per(PER_LETTER);
                (letters.times(pattern.size().per(PER_PATTERN_LETTER)), Some(Range { min: 0, max: size.max }))
            }
            ("ip", []) => (Range::exactly(1), None),
            ("containsIP" | "containsCIDR", [other]) => (self.of_network(overload, other), None),
            ("validate", [text]) => {
                (text.size().per(PER_LETTER).per(FORMAT_PATTERN_LETTERS * PER_PATTERN_LETTER), None)
            }
            ("slice", [_, _]) => {
                let (start, end) = (self.literal(0).unwrap_or(0), self.literal(1).unwrap_or(size.max));
                of_new_list(1.0, Range::exactly(end.wrapping_sub(start)))
            }
            ("reverse", []) if matches!(self.target_type(), Type::List(_)) => of_new_list(1.0, size),
            ("flatten", []) => of_new_list(1.0, size),
            #[expect(clippy::cast_precision_loss, reason = "depths are small")]
            ("flatten", [_]) => of_new_list(self.literal(0).unwrap_or(u64::MAX) as f64, size),
            ("distinct", []) => of_new_list(2.0, size.times(size)),
            ("sort", []) => of_sorting(&self.target_type(), size),
            (macros::SORT_BY_KEYS, [keys]) => of_sorting(&self.argument_type(0), keys.size()),
            ("format", _) => (letters, None),
            _ => return None,
        })
    }

    /// A function of a library.
    fn of_function(&self, args: &[Estimate]) -> Option<Priced> {
        Some(match (self.call.func_name.as_str(), args) {
            ("url" | "jsonpatch.escapeKey", [text]) => (text.size().per(PER_LETTER), Some(text.size())),
            ("cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver", [text, ..]) => {
                (text.size().per(PER_LETTER), None)
            }
            ("ip.isCanonical", [text]) => (text.size().per(2.0 * PER_LETTER), None),
            ("sets.contains" | "sets.intersects", [one, other]) => (of_sets(1.0, one, other), None),
            ("sets.equivalent", [one, other]) => (of_sets(2.0, one, other), None),
            ("lists.range", [_]) => of_new_list(1.0, Range::exactly(self.literal(0).unwrap_or(u64::MAX))),
            ("strings.quote", [text]) => {
                let Range { min, max } = text.size();
                let size = Range { min: min.saturating_add(2), max: max.saturating_mul(2).saturating_add(2) };
                (text.size().per(PER_LETTER), Some(size))
            }
            (operators::EQUALS, [_, _]) if self.is_equal_at_once() => (Range::exactly(1), None),
            (operators::EQUALS | operators::NOT_EQUALS, [one, other]) => (of_comparison(one, other), None),
            _ => return None,
        })
    }

    /// What belongs to the language itself.
    fn of_language(&self, overload: Overload) -> Range {
        match (overload, self.target, self.args) {
            (Overload::AddTexts, _, [one, other]) => one.size().add(other.size()).per(PER_LETTER),
            (Overload::CompareTexts, _, [one, other]) => of_comparison(one, other),
            (Overload::InList, _, [_, list]) => list.size(),
            (Overload::StartsOrEnds, _, [part]) => part.size().per(PER_LETTER),
            (Overload::TextToBytes | Overload::BytesToText, _, [text]) => text.size().per(PER_LETTER),
            (Overload::MatchesText, Some(target), [pattern]) => {
                let letters = target.size().add(Range::exactly(1)).per(PER_LETTER);
                letters.times(pattern.size().per(PER_PATTERN_LETTER))
            }
            (Overload::ContainsText, Some(target), [part]) => {
                target.size().per(PER_LETTER).times(part.size().per(PER_LETTER))
            }
            _ => Range::exactly(1),
        }
    }

    fn size_of_language(&self, overload: Overload) -> Option<Range> {
        match (overload, self.args) {
            (Overload::AddTexts | Overload::AddLists, [one, other]) => Some(one.size().add(other.size())),
            // A letter has up to four bytes.
            (Overload::TextToBytes, [text]) => {
                Some(Range { min: text.size().min, max: text.size().max.wrapping_mul(4) })
            }
            (Overload::BytesToText, [bytes]) => Some(Range { min: bytes.size().min / 4, max: bytes.size().max }),
            _ => None,
        }
    }

    fn target_type(&self) -> Type {
        self.call.target.as_ref().map_or(Type::Dyn, |target| self.checked.of(target).clone())
    }

    fn argument_type(&self, index: usize) -> Type {
        self.call.args.get(index).map_or(Type::Dyn, |argument| self.checked.of(argument).clone())
    }

    /// An argument that is a whole number in the text of the expression.
    fn literal(&self, index: usize) -> Option<u64> {
        match &self.call.args.get(index)?.expr {
            Expr::Literal(LiteralValue::Int(number)) => Some(u64::try_from(*number.inner()).unwrap_or(0)),
            _ => None,
        }
    }

    /// Whether both sides are of a type whose values are compared at once.
    fn is_equal_at_once(&self) -> bool {
        let (one, other) = (self.argument_type(0), self.argument_type(1));
        matches!(one, Type::Named(name) if name != "kubernetes.URL") && one == other
    }

    /// The type and the size of what a list consists of; for a text, nothing.
    fn element(&self, target: &Estimate, element: &dyn Fn(&Place) -> Option<Range>) -> Option<(Type, Range)> {
        let found = match self.target_type() {
            Type::List(items) => (*items).clone(),
            Type::Map(keys, _) => (*keys).clone(),
            Type::Optional(inner) => (*inner).clone(),
            _ => return None,
        };
        let size = match target.place {
            Place::Nowhere => None,
            _ => element(&target.place),
        };
        Some((found, size.unwrap_or(Range::UNKNOWN)))
    }

    fn of_traversal(&self, target: &Estimate, element: &dyn Fn(&Place) -> Option<Range>) -> Range {
        match self.element(target, element) {
            Some((Type::Text | Type::Bytes, size)) => target.size().times(Range::exactly(1).add(size.per(PER_LETTER))),
            Some(_) => target.size(),
            None => target.size().per(PER_LETTER),
        }
    }

    fn joined(
        &self,
        target: &Estimate,
        separator: Option<&Estimate>,
        element: &dyn Fn(&Place) -> Option<Range>,
    ) -> Range {
        let count = target.size();
        let texts = self.element(target, element).map(|(_, size)| count.times(size)).unwrap_or_default();
        let between = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
        separator.map_or(texts, |separator| texts.add(separator.size().times(between)))
    }

    fn of_network(&self, overload: Overload, other: &Estimate) -> Range {
        let mut cost = ADDRESS_BYTES.add(ADDRESS_BYTES).per(PER_LETTER);
        if self.call.func_name == "containsCIDR" {
            cost = cost.add(ADDRESS_BYTES.per(PER_LETTER)).add(Range::exactly(1));
        }
        if overload == Overload::ReadsText { cost.add(other.size().per(PER_LETTER)) } else { cost }
    }
}

/// Comparing goes as far as the shorter one.
fn of_comparison(one: &Estimate, other: &Estimate) -> Range {
    let max = one.size().max.min(other.size().max);
    Range { min: max.min(1), max }.per(PER_LETTER)
}

fn of_sets(factor: f64, one: &Estimate, other: &Estimate) -> Range {
    one.size().times(other.size()).per(factor).add(Range::exactly(1))
}

/// A new list of this size.
fn of_new_list(factor: f64, size: Range) -> Priced {
    (size.per(factor).add(Range::exactly(1 + LIST)), Some(size))
}

fn of_sorting(list: &Type, size: Range) -> Priced {
    let letters = matches!(list.members().1, Type::Text | Type::Bytes);
    of_new_list(if letters { 2.0 + PER_LETTER } else { 2.0 }, size.times(size))
}

/// What reading a selector of this length costs.
#[expect(clippy::cast_precision_loss, reason = "a small constant")]
pub(super) fn of_selector(length: Range) -> Range {
    let requirements = length.per(REQUIREMENTS_PER_LETTER).per(REQUIREMENT as f64);
    Range::exactly(LIST).add(length.per(PER_LETTER)).add(requirements)
}

/// How long a text can be after parts of it were replaced.
fn replaced(size: Range, from: Range, to: Range) -> Range {
    let count = |whole: u64, part: u64| if part == 0 { 0 } else { whole.div_ceil(part) };
    let (most, kept_most) = match from.min {
        0 => (size.max.saturating_add(1), size.max),
        part if to.max <= part => (0, size.max),
        part => (count(size.max, part), 0),
    };
    let (least, kept_least) = match from.max {
        0 => (size.min.saturating_add(1), size.min),
        part if part <= to.min => (0, size.min),
        part => (count(size.min, part), 0),
    };
    Range { min: least, max: most }.times(to).add(Range { min: kept_least, max: kept_most })
}
