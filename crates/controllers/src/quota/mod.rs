//! ResourceQuotas say how much is used; the API server charges what is new, this controller counts anew what has gone.

mod count;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaStatus};
use tokio::sync::watch;
use windlass_runtime::{Action, Change, Context, Controller, Error, Informer, Manager, ObjectKey, Priority, Reconcile};
use windlass_schema::quota::{Amounts, Counting, Quota, to_value};

use crate::actor::{Actor, is_conflict, is_gone};
use crate::census::{self, Meta};
use crate::kinds::{Kind, Kinds};

/// A look in between, for what time alone changes: Pods that should have ended by now.
const LOOK_AGAIN: Duration = Duration::from_secs(5 * 60);
/// How soon a quota that somebody else changed under us is looked at again.
const AFTER_CONFLICT: Duration = Duration::from_millis(20);

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager, kinds: &Kinds) {
    let actor = Actor::new(manager, "resourcequota-controller");
    let controller = Controller::of(manager, Quotas { actor, kinds: kinds.clone() });
    let (quotas, queue) = (controller.informer(), controller.queue());
    manager.add(controller);
    census::follow(manager, kinds, watch::Sender::new(false), move |kind, change| {
        for key in touched(kind, change, &quotas) {
            queue.add(key, Priority::Normal);
        }
    });
}

/// The quotas that count the object which changed.
fn touched(kind: &Kind, change: &Change<Meta>, quotas: &Informer<ResourceQuota>) -> Vec<ObjectKey> {
    let Some(namespace) = change.key().namespace else { return vec![] };
    let counting = Counting::of(&kind.resource.group, &kind.resource.plural);
    let changed = change.old.is_some() && change.new.is_some();
    // Objects that are only counted do not matter while they change.
    if changed && matches!(counting, Counting::Objects { .. }) {
        return vec![];
    }
    let counts = |quota: &&Arc<ResourceQuota>| {
        let hard = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref());
        hard.is_some_and(|hard| hard.keys().any(|name| counting.has(name)))
    };
    quotas.in_namespace(&namespace).iter().filter(counts).map(|quota| ObjectKey::of(&**quota)).collect()
}

struct Quotas {
    actor: Actor,
    kinds: Kinds,
}

impl Reconcile for Quotas {
    type Resource = ResourceQuota;

    async fn reconcile(&self, object: Arc<ResourceQuota>, _: &Context<ResourceQuota>) -> Result<Action, Error> {
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(Action::Await);
        }
        let mut kinds = self.kinds.clone();
        while kinds.now().is_empty() {
            if !kinds.changed().await {
                return Ok(Action::Await);
            }
        }
        let value = serde_json::to_value(&*object).map_err(|error| Error::failed(error.to_string()))?;
        let quota = Quota::read(&value);
        // Counted after the quota was read: whatever is stored later and not counted here changes the quota, so that
        // the write below is refused.
        let used = count::count(&self.actor, &kinds.now(), &object, &quota).await?;
        if quota.hard == quota.spec_hard && quota.used == used {
            return Ok(Action::Recheck(LOOK_AGAIN));
        }
        let status = status(&quota.spec_hard, &used)?;
        let updated = ResourceQuota { status: Some(status), ..ResourceQuota::clone(&object) };
        match self.actor.replace_status(&updated).await {
            Ok(_) => Ok(Action::Recheck(LOOK_AGAIN)),
            Err(error) if is_gone(&error) => Ok(Action::Await),
            Err(error) if is_conflict(&error) => Ok(Action::Recheck(AFTER_CONFLICT)),
            Err(error) => Err(error.into()),
        }
    }
}

fn status(hard: &Amounts, used: &Amounts) -> Result<ResourceQuotaStatus, Error> {
    let status = serde_json::json!({ "hard": to_value(hard), "used": to_value(used) });
    serde_json::from_value(status).map_err(|error| Error::failed(error.to_string()))
}
