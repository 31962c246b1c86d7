//! Names that operators, people and tools agree on.

/// The label that says who manages an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The label that names an application.
pub const APP_NAME: &str = "app.kubernetes.io/name";
/// The label that names one instance of an application.
pub const APP_INSTANCE: &str = "app.kubernetes.io/instance";
/// The label of an operator's own Pods, by which those who ask why find them; its value is the operator's name.
pub const OPERATOR: &str = "windlass.dev/operator";
/// The annotation that stops an operator from touching what belongs to a resource, while its value is `true`.
pub const PAUSED: &str = "windlass.dev/paused";
/// The annotation whose every new value makes an operator apply all children of a resource anew, as if nothing were there.
pub const FORCE: &str = "windlass.dev/reconcile";
/// The annotation whose every new value makes an operator restart the Pods of a resource, workload by workload.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// The annotation whose every new value makes an operator try a revision again that failed.
pub const RETRY_UPGRADE: &str = "windlass.dev/retry-upgrade";
/// The annotation of a ControllerRevision with what people call it.
pub const VERSION: &str = "windlass.dev/version";
/// The finalizer that gives an operator the time to clean up.
pub const FINALIZER: &str = "windlass.dev/finalizer";
/// The finalizer that gives an operator the time to remove the parts of a resource in order.
pub const ORDER_FINALIZER: &str = "windlass.dev/ordered-deletion";
/// The finalizer that gives an operator the time to let go of what a resource is made of, if that is to stay.
pub const RELEASE_FINALIZER: &str = "windlass.dev/release";
/// The annotation of an object that says which part of its resource it is.
pub const PART: &str = "windlass.dev/part";
/// The annotation of a part that names those that it needs, with commas between them: it goes before they do.
pub const AFTER: &str = "windlass.dev/after";

/// What the names of annotations begin with in which operators remember how far their handlers are.
const PROGRESS: &str = "handlers.windlass.dev/";

/// The annotation in which the operator of this name remembers how far its handlers are with a resource.
pub fn progress(operator: &str) -> String {
    format!("{PROGRESS}{operator}")
}

/// Whether this is an annotation in which an operator remembers how far it is.
pub fn is_progress(annotation: &str) -> bool {
    annotation.starts_with(PROGRESS)
}

/// The annotation that keeps what an object has as `version` and has no place for as the version that it is in now.
pub fn kept(version: &str) -> String {
    format!("conversion.windlass.dev/{version}")
}

/// The condition types that every resource of an operator may have.
pub mod condition {
    /// The resource is as declared and works.
    pub const READY: &str = "Ready";
    /// The operator is on its way.
    pub const PROGRESSING: &str = "Progressing";
    /// The operator cannot go on; the message says what to do.
    pub const STALLED: &str = "Stalled";
    /// Something is wrong that does not keep the resource from working.
    pub const DEGRADED: &str = "Degraded";
    /// All children were applied anew, as somebody asked for.
    pub const FORCED: &str = "Forced";
    /// The Pods were told to restart, as somebody asked for.
    pub const RESTARTED: &str = "Restarted";
    /// The operator was told to keep its hands off.
    pub const PAUSED: &str = "Paused";
    /// The deletion does not come to its end; the message names what hinders it.
    pub const DELETION_BLOCKED: &str = "DeletionBlocked";
}
