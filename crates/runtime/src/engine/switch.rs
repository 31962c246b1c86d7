//! The switches that every resource has: annotations by which people steer its operator.

use windlass_core::{CustomResource, Statement, condition, names};

/// What the annotations of a resource ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    /// Nothing is to be touched.
    pub(crate) paused: bool,
    /// All children are to be applied anew: the value that asks for it.
    pub(crate) force: Option<String>,
    /// The value that the Pods are to have been restarted for.
    pub(crate) restarted_at: Option<String>,
    /// Whether that value is new.
    pub(crate) restart: bool,
}

/// What a condition's message begins with; the value that was served follows.
const SERVED: &str = "as asked by the value ";

impl Switches {
    pub(crate) fn of<R: CustomResource>(resource: &R) -> Self {
        let annotations = resource.meta().annotations.as_ref();
        let value = |name: &str| annotations.and_then(|annotations| annotations.get(name)).cloned();
        let conditions = resource.status().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let served = |type_: &str| {
            let message = &condition::find(conditions, type_)?.message;
            message.strip_prefix(SERVED).map(str::to_owned)
        };
        let (forced, restarted) = (served(names::condition::FORCED), served(names::condition::RESTARTED));
        let restart_at = value(names::RESTARTED_AT);
        Self {
            paused: value(names::PAUSED).as_deref() == Some("true"),
            force: value(names::FORCE).filter(|value| Some(value) != forced.as_ref()),
            restart: restart_at.is_some() && restart_at != restarted,
            // An annotation that is taken away again does not undo, and so repeat, the restart.
            restarted_at: restart_at.or(restarted),
        }
    }

    /// The conditions that follow when all was carried out.
    pub(crate) fn statements(&self) -> Vec<Statement> {
        let served = |type_, reason, value: &String| Statement::new(type_, true, reason, format!("{SERVED}{value}"));
        let force = self.force.as_ref().map(|value| served(names::condition::FORCED, "Forced", value));
        let restart = self.restarted_at.as_ref().filter(|_| self.restart);
        let restart = restart.map(|value| served(names::condition::RESTARTED, "Restarted", value));
        force.into_iter().chain(restart).collect()
    }
}
