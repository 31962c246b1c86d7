//! A resource in a loop of writes is left alone until it has cooled down, however its operator is written.

use windlass_core::{CustomResource, Statement, names};

use super::report::{self, Pass};
use crate::journal::{self, Turn};
use crate::loops::Hot;
use crate::object::Object;
use crate::reconcile::{Action, Context, Error};

/// The reason of a condition while there is a loop, …
const HOT: &str = "HotLoop";
/// … after it, …
const OVER: &str = "LoopEnded";
/// … and after any other trouble.
const RECOVERED: &str = "Recovered";

/// The loop that an object is in. A generation that is not `acted_on` yet is acted on at once: it may be what ends the loop.
pub(crate) fn hot<K: Object>(object: &K, acted_on: Option<i64>, cx: &Context<K>) -> Option<Hot> {
    let meta = object.meta();
    let loops = cx.handle.loops.as_ref().filter(|_| acted_on == meta.generation)?;
    let hot = loops.hot(meta.uid.as_deref()?)?;
    journal::decided(Turn::HotLoop, HOT, &hot.field);
    Some(hot)
}

/// When an object in a loop is looked at again.
pub(crate) fn rest<K: Object>(hot: &Hot, cx: &Context<K>) -> Action {
    Action::Recheck(hot.until.saturating_sub(cx.clock().elapsed()))
}

/// What to do about a resource that is in a loop, which its status then says: nothing, for a while.
pub(super) async fn cool_down<R: CustomResource>(resource: &R, cx: &Context<R>) -> Result<Option<Action>, Error> {
    let observed = resource.status().and_then(|status| status.observed_generation);
    let Some(hot) = hot(resource, observed, cx) else { return Ok(None) };
    let status = report::status(resource, &Pass::HotLoop { message: &hot.message }, cx.clock().now());
    report::write(resource, status, cx).await?;
    Ok(Some(rest(&hot, cx)))
}

/// What is said of a resource in a loop.
pub(crate) fn hot_statement(message: &str) -> Statement {
    Statement::new(names::condition::DEGRADED, true, HOT, message)
}

/// What is said of a resource that was degraded for `reason` and is no longer.
pub(crate) fn over_statement(reason: &str) -> Statement {
    let reason = if is_of_loops(reason) { OVER } else { RECOVERED };
    Statement::new(names::condition::DEGRADED, false, reason, "")
}

/// Whether a condition with this reason tells of a loop, past or present.
pub(crate) fn is_of_loops(reason: &str) -> bool {
    matches!(reason, HOT | OVER)
}
