//! The other parts of a control plane: which of them run, as ComponentStatuses tell.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use windlass_store::Store;

/// How long the store may take to say that it is there.
const STORE_WAIT_MAX: Duration = Duration::from_secs(20);
/// The name that clients know the store by.
const STORE: &str = "etcd-0";

/// A part of a control plane that runs beside the API server, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// Whoever gives Pods a node.
    Scheduler,
    /// The other controllers.
    ControllerManager,
}

impl Component {
    const ALL: [Self; 2] = [Self::ControllerManager, Self::Scheduler];

    /// The name that clients know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::ControllerManager => "controller-manager",
        }
    }
}

/// Which parts run.
#[derive(Debug, Default)]
pub struct Components {
    scheduler: Arc<AtomicUsize>,
    controller_manager: Arc<AtomicUsize>,
}

/// A part that runs until this is dropped.
#[derive(Debug)]
pub struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Components {
    /// Says that a part runs, until what is returned is dropped.
    pub fn begin(&self, component: Component) -> Running {
        let count = self.count(component);
        count.fetch_add(1, Ordering::AcqRel);
        Running(Arc::clone(count))
    }

    /// Every part as a ComponentStatus.
    pub(crate) async fn statuses(&self, store: &Store) -> Vec<Value> {
        let mut statuses: Vec<Value> = Component::ALL.into_iter().map(|component| self.status(component)).collect();
        statuses.push(status(STORE, &probe(store).await));
        statuses
    }

    fn status(&self, component: Component) -> Value {
        let health = match self.count(component).load(Ordering::Acquire) {
            0 => Err(format!("this cluster runs no {}", component.name())),
            _ => Ok(()),
        };
        status(component.name(), &health)
    }

    fn count(&self, component: Component) -> &Arc<AtomicUsize> {
        match component {
            Component::Scheduler => &self.scheduler,
            Component::ControllerManager => &self.controller_manager,
        }
    }
}

/// Whether the store takes a commit; an empty one changes nothing.
async fn probe(store: &Store) -> Result<(), String> {
    match tokio::time::timeout(STORE_WAIT_MAX, store.commit(Vec::new())).await {
        Ok(outcome) => outcome.map(drop).map_err(|error| error.to_string()),
        Err(_) => Err(format!("the store did not answer within {} s", STORE_WAIT_MAX.as_secs())),
    }
}

fn status(name: &str, health: &Result<(), String>) -> Value {
    let condition = match health {
        Ok(()) => json!({"type": "Healthy", "status": "True", "message": "ok"}),
        Err(why) => json!({"type": "Healthy", "status": "False", "message": why}),
    };
    json!({"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}, "conditions": [condition]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_is_healthy_while_it_runs() {
        let (components, store) = (Components::default(), Store::in_memory());
        let healthy = async || {
            let all = components.statuses(&store).await;
            let names = all.iter().filter(|status| status["conditions"][0]["status"] == "True");
            names.map(|status| status["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(healthy().await, ["etcd-0"]);
        let running = components.begin(Component::Scheduler);
        assert_eq!(healthy().await, ["scheduler", "etcd-0"]);
        drop(running);
        let all = components.statuses(&store).await;
        assert_eq!(all[1]["conditions"][0]["message"], "this cluster runs no scheduler");
    }

    #[tokio::test]
    async fn a_store_that_is_closed_is_not_healthy() {
        let folder = std::env::temp_dir().join(format!("windlass-components-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Store::open(folder.join("store")).unwrap();
        assert_eq!(probe(&store).await, Ok(()));
        store.close().await;
        assert_eq!(probe(&store).await, Err("the store is closed".to_owned()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
