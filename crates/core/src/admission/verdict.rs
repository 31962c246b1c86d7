//! What a validating function answers.

use serde_json::{Value, json};

/// Whether a request may go on, and what its sender should know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "return it"]
pub struct Verdict {
    problems: Vec<Problem>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    field: Option<String>,
    message: String,
}

impl Verdict {
    /// Nothing speaks against it.
    pub fn allow() -> Self {
        Self::default()
    }

    /// It is refused.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::allow().or_deny(None, message.into())
    }

    /// Refused if `is_wrong`.
    pub fn deny_if(self, is_wrong: bool, message: impl Into<String>) -> Self {
        if is_wrong { self.or_deny(None, message.into()) } else { self }
    }

    /// Refused because of a field, such as `spec.size`, if `is_wrong`. All such fields are told at once.
    pub fn invalid_if(self, is_wrong: bool, field: &str, message: impl Into<String>) -> Self {
        if is_wrong { self.or_deny(Some(field.to_owned()), message.into()) } else { self }
    }

    /// Allowed or not, the sender is told `message` if `is_odd`.
    pub fn warn_if(mut self, is_odd: bool, message: impl Into<String>) -> Self {
        if is_odd {
            self.warnings.push(message.into());
        }
        self
    }

    /// Both of two: refused if one refuses.
    pub fn and(mut self, other: Self) -> Self {
        self.problems.extend(other.problems);
        self.warnings.extend(other.warnings);
        self
    }

    /// Whether nothing speaks against it.
    pub fn is_allowed(&self) -> bool {
        self.problems.is_empty()
    }

    /// What the sender is told whatever the answer is.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn or_deny(mut self, field: Option<String>, message: String) -> Self {
        self.problems.push(Problem { field, message });
        self
    }

    /// The refusal in the form of the API.
    pub(super) fn status(&self) -> Option<Value> {
        if self.is_allowed() {
            return None;
        }
        let words = |problem: &Problem| match &problem.field {
            Some(field) => format!("{field}: {}", problem.message),
            None => problem.message.clone(),
        };
        let message = self.problems.iter().map(words).collect::<Vec<_>>().join("; ");
        let causes: Vec<Value> = (self.problems.iter())
            .filter_map(|problem| {
                let field = problem.field.as_ref()?;
                Some(json!({"reason": "FieldValueInvalid", "field": field, "message": problem.message}))
            })
            .collect();
        if causes.is_empty() {
            return Some(json!({"status": "Failure", "code": 403, "reason": "Forbidden", "message": message}));
        }
        let details = json!({"causes": causes});
        Some(json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": message, "details": details}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_told_at_once() {
        let verdict = Verdict::allow()
            .warn_if(true, "odd")
            .invalid_if(true, "spec.a", "too big")
            .invalid_if(false, "spec.b", "too big")
            .and(Verdict::deny("not today"));
        let status = verdict.status().unwrap();
        assert_eq!(status["message"], "spec.a: too big; not today");
        assert_eq!(
            (status["code"].clone(), status["details"]["causes"][0]["field"].clone()),
            (422.into(), "spec.a".into())
        );
        assert_eq!(verdict.warnings(), ["odd"]);
        assert_eq!(Verdict::deny("no").status().unwrap()["code"], 403);
        assert_eq!(Verdict::allow().status(), None);
    }
}
