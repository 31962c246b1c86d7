//! What the Pods of this node were promised together: a Pod that wants more gets it if there is room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;
use windlass_schema::pod_resources;

use crate::quantity;

/// The room of a node.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    capacity: Demand,
    taken: Arc<Mutex<HashMap<String, Demand>>>,
    changes: watch::Sender<u64>,
}

/// What a Pod asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Thousandths of a processor.
    pub(crate) cpu: u64,
    /// Bytes.
    pub(crate) memory: u64,
}

impl Demand {
    /// What a Pod asks for by its specification.
    pub(crate) fn of(pod: &Pod) -> Self {
        let requests = serde_json::to_value(pod).map(|pod| pod_resources::total(&pod, "requests")).unwrap_or_default();
        let amount = |name: &str, unit: &str| {
            requests.get(name).and_then(|amount| quantity::limit(&amount.to_string(), unit)).unwrap_or(0)
        };
        Self { cpu: amount("cpu", "1m"), memory: amount("memory", "1") }
    }
}

/// What a Pod was promised; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    room: Room,
    uid: String,
}

impl Room {
    /// The room of a node that has so much.
    pub(crate) fn new(capacity: Demand) -> Self {
        Self { capacity, taken: Arc::default(), changes: watch::channel(0).0 }
    }

    /// Lets a Pod in with what the scheduler has promised it.
    pub(crate) fn enter(&self, uid: &str, demand: Demand) -> Place {
        self.lock().insert(uid.to_owned(), demand);
        Place { room: self.clone(), uid: uid.to_owned() }
    }

    /// Changes when somebody needs less.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Demand>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Promises the Pod another amount.
    ///
    /// # Errors
    /// What there is too little of, in kubelet's words; the promise stays as it was.
    pub(crate) fn change(&self, wanted: Demand) -> Result<(), String> {
        let mut taken = self.room.lock();
        let others = taken.iter().filter(|(uid, _)| **uid != self.uid).map(|(_, demand)| demand);
        let used = others.fold(Demand::default(), |sum, one| Demand {
            cpu: sum.cpu.saturating_add(one.cpu),
            memory: sum.memory.saturating_add(one.memory),
        });
        let now = taken.get(&self.uid).copied().unwrap_or_default();
        let capacity = self.room.capacity;
        let checks = [
            ("cpu", wanted.cpu, now.cpu, used.cpu, capacity.cpu),
            ("memory", wanted.memory, now.memory, used.memory, capacity.memory),
        ];
        for (name, wanted, now, used, capacity) in checks {
            // Less is had anyway, even of what was promised twice.
            if wanted > now && used.saturating_add(wanted) > capacity {
                return Err(format!(
                    "Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, capacity: {capacity}"
                ));
            }
        }
        taken.insert(self.uid.clone(), wanted);
        drop(taken);
        self.room.changes.send_modify(|version| *version += 1);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.lock().remove(&self.uid);
        self.room.changes.send_modify(|version| *version += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_grows_into_what_others_leave() {
        let demand = |cpu: u64| Demand { cpu, memory: 1 };
        let room = Room::new(demand(1000));
        let (one, other) = (room.enter("one", demand(400)), room.enter("other", demand(500)));
        assert_eq!(one.change(demand(500)), Ok(()));
        let refused = one.change(demand(501)).unwrap_err();
        assert_eq!(refused, "Node didn't have enough resource: cpu, requested: 501, used: 500, capacity: 1000");
        let changes = room.changes();
        drop(other);
        assert!(changes.has_changed().unwrap());
        assert_eq!(one.change(demand(1000)), Ok(()));
    }

    #[test]
    fn less_is_always_had() {
        let room = Room::new(Demand { cpu: 100, memory: 1 });
        let (one, _other) =
            (room.enter("one", Demand { cpu: 90, memory: 1 }), room.enter("o", Demand { cpu: 90, memory: 1 }));
        assert_eq!(one.change(Demand { cpu: 80, memory: 1 }), Ok(()));
        assert!(one.change(Demand { cpu: 81, memory: 1 }).is_err());
    }
}
