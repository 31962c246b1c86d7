//! The built-in controllers of the cluster, explored in the place of an operator.

use windlass::Program;
use windlass::rbac::Need;
use windlass::runtime::engine::Declared;
use windlass::runtime::webhook::Registration;
use windlass::runtime::{Handle, Manager, Namespaces};

use super::world;
use crate::{Controller, Controllers};

/// What they are called as one program.
const NAME: &str = "windlass-controllers";

/// Some of the built-in controllers.
pub(crate) struct BuiltIn {
    set: Controllers,
}

impl BuiltIn {
    pub(crate) fn new(set: Controllers) -> Self {
        Self { set }
    }
}

impl Program for BuiltIn {
    fn as_program(&self) -> &dyn Program {
        self
    }

    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> Option<&str> {
        None
    }

    fn registration(&self, namespaces: Vec<String>) -> Registration {
        Registration { name: NAME.to_owned(), hooks: Vec::new(), chains: Vec::new(), namespaces }
    }

    fn kinds(&self) -> Vec<Declared> {
        Vec::new()
    }

    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    fn install_in(&self, manager: &mut Manager, cluster: &Handle, _: Namespaces) {
        windlass_controllers::Controllers::new(cluster.client.clone(), self.set.clone()).install(manager);
    }
}

/// What the keys of the kinds begin with that these controllers are for: what they make is for objects of those.
pub(crate) fn own(names: &[Controller]) -> Vec<String> {
    names.iter().filter_map(|name| kind(*name)).map(|(group, plural)| world::prefix(group, plural)).collect()
}

/// The group and the plural of what a controller is for; none if it makes nothing, or for whatever there is.
fn kind(name: Controller) -> Option<(&'static str, &'static str)> {
    Some(match name {
        Controller::ReplicaSet => ("apps", "replicasets"),
        Controller::ReplicationController => ("", "replicationcontrollers"),
        Controller::Deployment => ("apps", "deployments"),
        Controller::StatefulSet => ("apps", "statefulsets"),
        Controller::DaemonSet => ("apps", "daemonsets"),
        Controller::Job => ("batch", "jobs"),
        Controller::CronJob => ("batch", "cronjobs"),
        Controller::HorizontalPodAutoscaler => ("autoscaling", "horizontalpodautoscalers"),
        Controller::Disruption => ("policy", "poddisruptionbudgets"),
        Controller::Endpoints => ("", "services"),
        Controller::Volumes => ("", "persistentvolumeclaims"),
        Controller::ResourceQuota => ("", "resourcequotas"),
        Controller::ServiceAccount | Controller::RootCa => ("", "namespaces"),
        Controller::GarbageCollector
        | Controller::Namespace
        | Controller::TokenSecret
        | Controller::Scheduler
        | Controller::PodGc
        | Controller::NodeLifecycle
        | Controller::TaintEviction
        | Controller::FakeNode => return None,
    })
}
