//! Kinds of the code under test.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};

use crate::{TestCluster, wait};

const FIELD_MANAGER: &str = "windlass-testkit";

impl TestCluster {
    /// Serves the kinds of `definitions`; when this returns, objects of them can be made.
    ///
    /// # Panics
    /// If one is refused, or not served within [`crate::PATIENCE`].
    pub async fn define(&self, definitions: impl IntoIterator<Item = CustomResourceDefinition>) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client());
        let mut names = Vec::new();
        for definition in definitions {
            let name = definition.name_any();
            let params = PatchParams::apply(FIELD_MANAGER).force();
            if let Err(error) = api.patch(&name, &params, &Patch::Apply(&definition)).await {
                panic!("the definition {name} is refused: {error}");
            }
            names.push(name);
        }
        let all_serve = |served: &[CustomResourceDefinition]| {
            names.iter().all(|name| served.iter().any(|it| it.name_any() == *name && is_established(it)))
        };
        wait::until(api, all_serve).await;
    }
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
}
