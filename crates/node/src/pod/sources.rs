//! The ConfigMaps and Secrets that a Pod refers to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, Secret, Volume};
use kube::ResourceExt;

use crate::cache::{Cache, Lease};

/// The objects by name; one that does not exist is absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    pub(crate) config_maps: BTreeMap<String, Arc<ConfigMap>>,
    pub(crate) secrets: BTreeMap<String, Arc<Secret>>,
}

/// The names that a Pod refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    config_maps: BTreeSet<String>,
    secrets: BTreeSet<String>,
}

impl Names {
    /// Finds every reference in a Pod's environment and volumes.
    pub(crate) fn of(pod: &Pod) -> Self {
        let mut names = Self::default();
        let Some(spec) = &pod.spec else { return names };
        for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
            names.add_environment(container);
        }
        for volume in spec.volumes.iter().flatten() {
            names.add_volume(volume);
        }
        names
    }

    fn add_environment(&mut self, container: &Container) {
        for from in container.env_from.iter().flatten() {
            self.config_maps.extend(from.config_map_ref.as_ref().map(|r| r.name.clone()));
            self.secrets.extend(from.secret_ref.as_ref().map(|r| r.name.clone()));
        }
        for source in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
            self.config_maps.extend(source.config_map_key_ref.as_ref().map(|r| r.name.clone()));
            self.secrets.extend(source.secret_key_ref.as_ref().map(|r| r.name.clone()));
        }
    }

    fn add_volume(&mut self, volume: &Volume) {
        self.config_maps.extend(volume.config_map.as_ref().map(|source| source.name.clone()));
        self.secrets.extend(volume.secret.as_ref().and_then(|source| source.secret_name.clone()));
        let projected = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        for source in projected {
            self.config_maps.extend(source.config_map.as_ref().map(|r| r.name.clone()));
            self.secrets.extend(source.secret.as_ref().map(|r| r.name.clone()));
        }
    }

    /// Reads the objects as they are now.
    pub(crate) async fn fetch(&self, cache: &Cache, pod: &Pod) -> Sources {
        let namespace = pod.namespace().unwrap_or_default();
        let mut sources = Sources::default();
        for name in &self.config_maps {
            let found = cache.get::<ConfigMap>(&namespace, name).await;
            sources.config_maps.extend(found.map(|object| (name.clone(), object)));
        }
        for name in &self.secrets {
            let found = cache.get::<Secret>(&namespace, name).await;
            sources.secrets.extend(found.map(|object| (name.clone(), object)));
        }
        sources
    }

    /// Keeps the objects watched for as long as the leases are held.
    pub(crate) fn lease(&self, cache: &Cache, pod: &Pod) -> Vec<Lease> {
        let namespace = pod.namespace().unwrap_or_default();
        let config_maps = self.config_maps.iter().map(|name| cache.lease::<ConfigMap>(&namespace, name));
        let secrets = self.secrets.iter().map(|name| cache.lease::<Secret>(&namespace, name));
        config_maps.chain(secrets).collect()
    }
}

impl Sources {
    /// The entries of a ConfigMap, text and binary.
    pub(crate) fn config_map(&self, name: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        let object = self.config_maps.get(name)?;
        let text = object.data.iter().flatten().map(|(key, value)| (key.clone(), value.clone().into_bytes()));
        let binary = object.binary_data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone()));
        Some(text.chain(binary).collect())
    }

    /// The entries of a Secret.
    pub(crate) fn secret(&self, name: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        let object = self.secrets.get(name)?;
        Some(object.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone())).collect())
    }
}
