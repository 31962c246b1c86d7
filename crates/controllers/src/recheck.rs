//! From a moment to a look at that moment.

use std::time::Duration;

use jiff::Timestamp;
use windlass_runtime::Action;

/// Looks again at `moment`, if there is one; a moment that has come asks for a look at once.
pub(crate) fn at(moment: Option<Timestamp>, now: Timestamp) -> Action {
    let Some(moment) = moment else { return Action::Await };
    Action::Recheck(Duration::try_from(moment.duration_since(now)).unwrap_or(Duration::ZERO))
}
