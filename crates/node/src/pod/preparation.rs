//! What a Pod needs before its containers: an address, volumes, and the files that the node gives it.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::downward::Addresses;
use super::observed::{Observation, State};
use super::plan;
use super::worker::{RETRY, Worker};
use crate::address::PodAddress;
use crate::proxy::HostPorts;
use crate::volume::{self, Supplies};

impl Worker {
    /// Gives the Pod its address and volumes, or notes why it cannot have them yet.
    pub(super) async fn prepare(&mut self) {
        match self.try_prepare().await {
            Ok(()) => {
                self.observed.prepared = true;
                self.observed.obstacle = None;
                self.retry = None;
                self.watch_storage();
            }
            Err((reason, message)) => {
                if self.observed.obstacle.as_deref() != Some(&message) {
                    self.context.events.warning(&*self.pod, None, reason, message.clone());
                }
                self.observed.obstacle = Some(message);
                self.retry = Some(Timestamp::now() + RETRY);
            }
        }
    }

    async fn try_prepare(&mut self) -> Result<(), (&'static str, String)> {
        if !self.context.capabilities.namespaces {
            return Err(("FailedCreatePodSandBox", self.context.capabilities.missing().join("; ")));
        }
        if self.address.is_none() {
            let before = self.pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()?.parse().ok());
            let taken = before.and_then(|address| self.context.addresses.take_again(address));
            self.address = taken.or_else(|| self.context.addresses.take());
        }
        let Some(addresses) = self.addresses() else {
            return Err(("FailedCreatePodSandBox", format!("no address is left in {}", self.context.config.pod_range)));
        };
        self.connect().await.map_err(|error| ("FailedCreatePodSandBox", error))?;
        self.open_host_ports(addresses).await.map_err(|why| ("FailedCreatePodSandBox", why))?;
        self.sources = self.names.fetch(&self.context.cache, &self.pod).await;
        let directory = self.context.pod_directory(&self.pod.uid().unwrap_or_default());
        let client = self.context.config.client.clone();
        let memory = self.context.memory_directory(&self.pod.uid().unwrap_or_default());
        let sources = &self.sources;
        let mut supplies = Supplies { client: &client, sources, addresses, tokens: &mut self.tokens, memory };
        let places = volume::prepare(&self.pod, &directory.join("volumes"), &mut supplies).await;
        self.volumes = Arc::new(places.map_err(|error| ("FailedMount", error.to_string()))?);
        self.write_node_files().map_err(|error| ("FailedCreatePodSandBox", error.to_string()))
    }

    /// Gives the Pod a network of its own, where Pods have one.
    async fn connect(&self) -> Result<(), String> {
        let is_on_host = self.pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let network = self.context.config.network.clone().filter(|_| !is_on_host);
        let (Some(network), Some(address)) = (network, self.address.as_ref().map(PodAddress::get)) else {
            return Ok(());
        };
        let uid = self.pod.uid().unwrap_or_default();
        let made = tokio::task::spawn_blocking(move || network.make_space(&uid, address)).await;
        made.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    /// Opens the ports of the machine that lead to the Pod, once.
    async fn open_host_ports(&mut self, addresses: Addresses) -> Result<(), String> {
        if self.host_ports.is_none() {
            let open = HostPorts::open(&self.pod, addresses.pod, (addresses.host, &self.context.cuts)).await?;
            for notice in &open.notices {
                self.context.events.normal(&*self.pod, None, "HostPort", notice.clone());
            }
            self.host_ports = Some(open);
        }
        Ok(())
    }

    /// Gives up the ports of the machine when nothing of the Pod runs or will run.
    pub(super) async fn close_host_ports(&mut self) {
        let runs = self.observed.containers.values().any(Observation::is_active);
        let ends = self.pod.metadata.deletion_timestamp.is_some();
        if runs || !(ends || plan::phase(&self.pod, &self.observed).is_final()) {
            return;
        }
        if let Some(open) = self.host_ports.take() {
            open.close().await;
        }
    }

    /// Brings volumes up to date with what they are made from.
    pub(super) async fn refresh(&mut self) {
        self.retry = None;
        let now = Timestamp::now();
        for observation in self.observed.containers.values_mut() {
            if let State::Waiting { reason, retry, .. } = &mut observation.state
                && reason == "CreateContainerConfigError"
            {
                *retry = Some(now);
            }
        }
        let Some(addresses) = self.addresses().filter(|_| self.observed.prepared) else { return };
        self.sources = self.names.fetch(&self.context.cache, &self.pod).await;
        let directory = self.context.pod_directory(&self.pod.uid().unwrap_or_default());
        let client = self.context.config.client.clone();
        let memory = self.context.memory_directory(&self.pod.uid().unwrap_or_default());
        let sources = &self.sources;
        let mut supplies = Supplies { client: &client, sources, addresses, tokens: &mut self.tokens, memory };
        if let Err(error) = volume::prepare(&self.pod, &directory.join("volumes"), &mut supplies).await {
            self.context.events.warning(&*self.pod, None, "FailedMount", error.to_string());
        }
    }
}
