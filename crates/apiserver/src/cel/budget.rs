//! What the rules of a definition may cost together, told before any object is there.

use super::rule::CompileError;

/// What an expression may cost for a whole object.
const EXPRESSION_COST_MAX: u64 = 10_000_000;
/// What all expressions of a schema may cost for a whole object.
const SCHEMA_COST_MAX: u64 = 100_000_000;
/// How many of the most expensive expressions are named.
const NAMED_MAX: usize = 4;
/// What to do about it.
const ADVICE: &str = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, \
                      and strings are declared";

/// What the expressions of a schema cost at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Costs(Vec<Cost>);

/// What an expression costs at most.
#[derive(Clone, Debug)]
struct Cost {
    path: String,
    /// What the expression is called.
    what: &'static str,
    cost: u64,
}

impl Costs {
    /// Adds an expression.
    pub(super) fn add(&mut self, path: String, what: &'static str, cost: u64) {
        self.0.push(Cost { path, what, cost });
    }

    /// What is too expensive.
    pub(super) fn errors(&self) -> Vec<CompileError> {
        let above = self.0.iter().filter(|cost| cost.cost > EXPRESSION_COST_MAX);
        let mut errors: Vec<CompileError> = above
            .map(|cost| {
                let what = format!("estimated {} cost", cost.what);
                CompileError::forbidden(cost.path.clone(), excess(&what, cost.cost, EXPRESSION_COST_MAX))
            })
            .collect();
        let total = self.0.iter().fold(0_u64, |total, cost| total.saturating_add(cost.cost));
        if total <= SCHEMA_COST_MAX {
            return errors;
        }
        let mut worst: Vec<&Cost> = self.0.iter().filter(|cost| cost.cost >= SCHEMA_COST_MAX / 100).collect();
        worst.sort_by_key(|cost| std::cmp::Reverse(cost.cost));
        let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let named = worst.iter().take(NAMED_MAX);
        errors.extend(named.map(|cost| CompileError::forbidden(cost.path.clone(), detail.to_owned())));
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(CompileError::forbidden(String::new(), excess(what, total, SCHEMA_COST_MAX)));
        errors
    }
}

#[expect(clippy::cast_precision_loss, reason = "the factor is for people")]
fn excess(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        above if above > 100.0 => "more than 100x".to_owned(),
        // One digit would say 1.0.
        little if little < 1.5 => format!("{little:.6}x"),
        some => format!("{some:.1}x"),
    };
    format!("{what} exceeds budget by factor of {factor} ({ADVICE})")
}
