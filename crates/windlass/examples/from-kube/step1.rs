//! Step 1: the manager runs the controllers as they are.

use kube::Client;
use windlass::runtime::{LeaderConfig, Manager, ManagerConfig};

use crate::before::{pages, teams};
use crate::kinds::NAME;

/// Both controllers, unchanged, with a client that passes the tap.
pub(crate) fn manager(client: Client) -> Manager {
    let mut manager = Manager::new(client, config());
    let tapped = manager.handle().client;
    let client = tapped.clone();
    manager.add_task(move |stop| pages(client, stop));
    manager.add_task(move |stop| teams(tapped, stop));
    manager
}

/// One replica works at a time. With `metrics` and `probes` it has ports, too.
pub(crate) fn config() -> ManagerConfig {
    ManagerConfig { leader: Some(LeaderConfig::new("default", NAME)), ..ManagerConfig::new(NAME) }
}
