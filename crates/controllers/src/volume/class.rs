//! The storage class that claims get who name none.

use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use windlass_runtime::{Action, Attempt, Controller, Error, Manager, Priority, Process};

use super::decide::PROVISIONER;
use crate::actor::{Actor, exists_already};

const NAME: &str = "standard";
const DEFAULT_MARK: &str = "storageclass.kubernetes.io/is-default-class";

/// Makes the class once, when the cluster starts: who changes or deletes it meanwhile means it.
pub(super) fn add(manager: &mut Manager) {
    let controller = Controller::keyed(manager, "storage-class", Classes(Actor::new(manager, "storage-class")));
    controller.queue().add((), Priority::Normal);
    manager.add(controller);
}

struct Classes(Actor);

impl Process for Classes {
    type Key = ();

    async fn process(&self, (): &(), _: &Attempt) -> Result<Action, Error> {
        let api: Api<StorageClass> = Api::all(self.0.client.clone());
        match api.create(&self.0.post(), &standard()).await {
            Err(error) if !exists_already(&error) => Err(error.into()),
            _ => Ok(Action::Await),
        }
    }
}

fn standard() -> StorageClass {
    StorageClass {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            annotations: Some([(DEFAULT_MARK.to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        provisioner: PROVISIONER.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("WaitForFirstConsumer".to_owned()),
        allow_volume_expansion: Some(true),
        ..StorageClass::default()
    }
}
