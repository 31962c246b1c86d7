//! What an expression has cost so far, in the units of Kubernetes.

use std::{sync::Arc, time::Duration};

use kube_cel::cel::{Value as CelValue, common::ast::operators, objects::OptionalValue};
use rustix::time::{ClockId, clock_gettime};

use super::{
    macros,
    price::{AUTHORIZATION, of_selector},
    range::{LIST, PER_LETTER, PER_PATTERN_LETTER, Range, scaled},
    signature::Overload,
};

/// How much time of the processor an expression may take, whatever it costs.
const TIME_MAX: Duration = Duration::from_secs(3);
/// After how many turns of loops the clock is looked at.
const TURNS_PER_LOOK: u32 = 256;
/// The longest text that an expression may make.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// The letters of the pattern behind a named format.
const FORMAT_PATTERN_LETTERS: u64 = 128;
/// The bytes of a network.
const NETWORK_BYTES: u64 = 4;

/// A count of costs that must stay within a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    spent: u64,
    limit: u64,
    over: bool,
    turns: u32,
    until: Duration,
}

/// The time of the processor that this thread has had. Other than the time of day it does not pass while others have the
/// processor: a busy machine refuses no rule that an idle one allows.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

impl Meter {
    /// Nothing spent yet.
    pub(super) fn new(limit: u64) -> Self {
        Self { spent: 0, limit, over: false, turns: 0, until: processor_time() + TIME_MAX }
    }

    /// Counts a cost; false if that is too much.
    pub(super) fn charge(&mut self, cost: u64) -> bool {
        self.spent = self.spent.saturating_add(cost);
        self.over |= self.spent > self.limit;
        !self.over
    }

    /// Counts a turn of a loop, which costs time only; false if there is no more.
    pub(super) fn turn(&mut self) -> bool {
        self.turns += 1;
        if self.turns.is_multiple_of(TURNS_PER_LOOK) {
            self.over |= processor_time() > self.until;
        }
        !self.over
    }

    /// Whether there is room for what a function makes of texts; false if it would be too much.
    pub(super) fn allows_text(&mut self, function: &str, args: &[CelValue]) -> bool {
        self.over |= text_bytes_max(function, args) > TEXT_BYTES_MAX;
        !self.over
    }

    /// Whether more was spent than may be.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// What was spent.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }
}

/// The longest text that a function can make.
fn text_bytes_max(function: &str, args: &[CelValue]) -> usize {
    let bytes = |index: usize| match args.get(index) {
        Some(CelValue::String(text)) => text.len(),
        _ => 0,
    };
    let all = |list: &[CelValue]| {
        let texts = list.iter().map(|item| if let CelValue::String(text) = item { text.len() } else { 0 });
        texts.fold((0_usize, 0), |(sum, longest), bytes| (sum.saturating_add(bytes), bytes.max(longest)))
    };
    match (function, args) {
        ("replace", _) => {
            let places = (bytes(0) / bytes(1).max(1)).saturating_add(1);
            bytes(0).saturating_add(places.saturating_mul(bytes(2)))
        }
        ("join", [CelValue::List(list), ..]) => all(list).0.saturating_add(list.len().saturating_mul(bytes(1))),
        ("format", [_, CelValue::List(list)]) => bytes(0).saturating_mul(all(list).1.max(1)),
        _ => 0,
    }
}

/// What a call costs that has been made.
pub(super) fn of_call(function: &str, overload: Overload, args: &[CelValue], result: Option<&CelValue>) -> u64 {
    let size = |index: usize| args.get(index).map_or(1, actual_size);
    let letters = |index: usize| scaled(size(index), PER_LETTER);
    let pattern = |letters: u64, pattern: u64| {
        scaled(letters + 1, PER_LETTER).saturating_mul(scaled(pattern, PER_PATTERN_LETTER))
    };
    match function {
        "check" => AUTHORIZATION,
        // What stands for an absent value is chosen like a branch.
        "or" | "orValue" => 0,
        "fieldSelector" | "labelSelector" => of_selector(Range::exactly(size(1))).max,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => args.first().map_or(0, traversal),
        "ip" if overload == Overload::AddressOfNetwork => 1,
        "url"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "jsonpatch.escapeKey"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "ip"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => letters(0),
        "replace" | "split" | "ip.isCanonical" => scaled(size(0), 2.0 * PER_LETTER),
        "join" => scaled(result.map_or(1, actual_size), 2.0 * PER_LETTER),
        "find" | "findAll" => pattern(size(0), size(1)),
        "containsIP" | "containsCIDR" => {
            let masked = if function == "containsCIDR" { scaled(NETWORK_BYTES, PER_LETTER) + 1 } else { 0 };
            let read = if overload == Overload::ReadsText { letters(1) } else { 0 };
            scaled(2 * NETWORK_BYTES, PER_LETTER) + masked + read
        }
        "validate" => pattern(size(1), FORMAT_PATTERN_LETTERS),
        "sets.contains" | "sets.intersects" => 1 + size(0).saturating_mul(size(1)),
        "sets.equivalent" => 1 + size(0).saturating_mul(size(1)).saturating_mul(2),
        "slice" | "lists.range" => of_new_list(1.0, result.map_or(1, actual_size)),
        "reverse" if matches!(args, [CelValue::List(_)]) => of_new_list(1.0, size(0)),
        #[expect(clippy::cast_precision_loss, reason = "depths are small")]
        "flatten" => {
            of_new_list(if let Some(CelValue::Int(depth)) = args.get(1) { *depth as f64 } else { 1.0 }, size(0))
        }
        "distinct" | "sort" => of_self_comparison(args.first()),
        macros::SORT_BY_KEYS => of_self_comparison(args.get(1)),
        operators::EQUALS | operators::NOT_EQUALS => match args {
            [CelValue::Opaque(opaque), _] if opaque.downcast_ref::<OptionalValue>().is_none() => 1,
            _ => scaled(size(0).min(size(1)), PER_LETTER),
        },
        "startsWith" | "endsWith" | "format" | "strings.quote" => letters(0),
        _ => match overload {
            Overload::InList => size(1),
            Overload::CompareTexts => scaled(size(0).min(size(1)), PER_LETTER),
            Overload::AddTexts => scaled(size(0).saturating_add(size(1)), PER_LETTER),
            Overload::TextToBytes | Overload::BytesToText => letters(0),
            Overload::MatchesText => pattern(size(0), size(1)),
            Overload::ContainsText => letters(0).saturating_mul(letters(1)),
            _ => 1,
        },
    }
}

/// A list that is compared with itself.
fn of_self_comparison(list: Option<&CelValue>) -> u64 {
    let Some(CelValue::List(items)) = list else { return of_new_list(2.0, 0) };
    let letters = matches!(items.first(), Some(CelValue::String(_) | CelValue::Bytes(_)));
    let size = items.len() as u64;
    of_new_list(if letters { 2.0 + PER_LETTER } else { 2.0 }, size.saturating_mul(size))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "costs are computed in floating point upstream; the cast saturates"
)]
fn of_new_list(factor: f64, size: u64) -> u64 {
    ((size as f64 * factor) as u64).saturating_add(1 + LIST)
}

/// The letters of a text, the bytes, the items or the members; one for everything else.
fn actual_size(value: &CelValue) -> u64 {
    match value {
        CelValue::String(text) => text.chars().count() as u64,
        CelValue::Bytes(bytes) => bytes.len() as u64,
        CelValue::List(items) => items.len() as u64,
        CelValue::Map(members) => members.map.len() as u64,
        CelValue::Opaque(opaque) => {
            let optional = Arc::clone(opaque);
            optional.downcast_ref::<OptionalValue>().and_then(OptionalValue::value).map_or(1, actual_size)
        }
        _ => 1,
    }
}

/// What it costs to look at all of a value.
fn traversal(value: &CelValue) -> u64 {
    match value {
        CelValue::String(text) => text.len() as u64 / 10,
        CelValue::Bytes(bytes) => bytes.len() as u64 / 10,
        CelValue::List(items) => items.iter().map(traversal).sum(),
        CelValue::Map(members) => {
            members.map.iter().map(|(key, value)| traversal(&CelValue::from(key)) + traversal(value)).sum()
        }
        _ => 1,
    }
}
