//! Priority and fairness: which flow a request belongs to, and a bound on what is answered at the same time.

mod keeper;
mod level;
mod rule;

use std::sync::{Arc, PoisonError, RwLock};

use http::{HeaderMap, HeaderName, HeaderValue};
use windlass_store::Snapshot;

use crate::{
    ApiError,
    auth::{Attributes, User},
};

pub(crate) use keeper::{condition, keep};
use level::{Level, Seat};
use rule::Schema;

/// Where flow schemas and priority levels are stored.
pub(crate) const PREFIX: &str = "/flowcontrol.apiserver.k8s.io/";
const SCHEMAS: &str = "/flowcontrol.apiserver.k8s.io/flowschemas/";
const LEVELS: &str = "/flowcontrol.apiserver.k8s.io/prioritylevelconfigurations/";
/// How many requests of limited levels are answered at the same time, as upstream has it: reads and writes together.
const SEATS: u32 = 600;

const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The flow schemas and priority levels in force.
#[derive(Debug, Default)]
pub(crate) struct Flows(RwLock<Arc<State>>);

#[derive(Debug, Default)]
struct State {
    /// By precedence, then by name.
    schemas: Vec<Schema>,
    levels: Vec<Arc<Level>>,
}

/// The flow that a request belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    schema_uid: String,
    level: Arc<Level>,
}

impl Flows {
    /// The flows of a snapshot.
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let flows = Self::default();
        flows.read(snapshot);
        flows
    }

    /// Takes over what a snapshot says. Levels that stay as they are keep their seats.
    fn read(&self, snapshot: &Snapshot) {
        let before = self.state();
        let levels = level::levels(snapshot, SEATS, &before.levels);
        let schemas = rule::schemas(snapshot);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(State { schemas, levels });
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The flow of a request; `None` if there is none, as in a store without the objects of a cluster.
    pub(crate) fn classify(&self, user: &User, attributes: &Attributes<'_>) -> Option<Flow> {
        let state = self.state();
        let of = |schema: &Schema| {
            let level = state.levels.iter().find(|level| level.name == schema.level)?;
            Some(Flow { schema_uid: schema.uid.clone(), level: Arc::clone(level) })
        };
        state.schemas.iter().filter(|schema| schema.matches(user, attributes)).find_map(of)
    }
}

impl Flow {
    /// Waits for a seat, which is held while the request is answered.
    ///
    /// # Errors
    /// 429 when the level is full and so is its queue.
    pub(crate) async fn seat(&self) -> Result<Option<Seat>, ApiError> {
        self.level.seat().await
    }

    /// Tells the client which flow it was.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        for (name, uid) in [(SCHEMA_UID, &self.schema_uid), (LEVEL_UID, &self.level.uid)] {
            if let Ok(value) = HeaderValue::from_str(uid) {
                headers.insert(name, value);
            }
        }
    }
}
