//! What admission gets to see of a change: the object, the scale that stands for it, or nothing.

use serde_json::Value;

use super::{scale, scope::Scope};
use crate::{ApiError, admission::Operation, strategy::Part};

/// What admission gets to see of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Object,
    Scale,
    /// What the change comes from was judged already.
    Nothing,
}

/// An object on its way into the store.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) object: Value,
    /// What is stored now.
    pub(crate) live: Value,
}

impl View {
    /// The view of a change of `part`.
    pub(crate) fn of(scope: &Scope, part: Part) -> Self {
        match scope.request.subresource.as_str() {
            _ if part == Part::Binding => Self::Nothing,
            "scale" => Self::Scale,
            _ => Self::Object,
        }
    }

    /// Lets admission complete the change.
    pub(crate) async fn mutate(self, scope: &Scope, change: Change) -> Result<Change, ApiError> {
        let Change { mut object, live } = change;
        let name = &scope.request.name;
        match self {
            Self::Nothing => Ok(Change { object, live }),
            Self::Object => {
                let mut review = scope.review(Operation::Update, name, object, live);
                scope.mutate(&mut review).await?;
                Ok(Change { object: review.object, live: review.old })
            }
            Self::Scale => {
                let shown = [scale::scale_of(scope, &object)?, scale::scale_of(scope, &live)?];
                let [new, old] = shown;
                let mut review = scope.review(Operation::Update, name, new, old);
                scope.mutate(&mut review).await?;
                scale::write_replicas(scope, &mut object, &review.object)?;
                Ok(Change { object, live })
            }
        }
    }

    /// Lets admission refuse the change.
    pub(crate) async fn validate(self, scope: &Scope, change: Change) -> Result<Change, ApiError> {
        let name = &scope.request.name;
        match self {
            Self::Nothing => Ok(change),
            Self::Object => {
                let mut review = scope.review(Operation::Update, name, change.object, change.live);
                scope.validate(&mut review).await?;
                Ok(Change { object: review.object, live: review.old })
            }
            Self::Scale => {
                let shown = [scale::scale_of(scope, &change.object)?, scale::scale_of(scope, &change.live)?];
                let [new, old] = shown;
                scope.validate(&mut scope.review(Operation::Update, name, new, old)).await?;
                Ok(change)
            }
        }
    }
}
