//! Addresses for a control plane whose Pods have networks of their own: they cannot reach the loopback range.

use std::net::Ipv4Addr;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// What Services, the API server and Pods share: 10.97.0.0/16.
const NETWORK: [u8; 2] = [10, 97];
/// Services have the first quarter, Pods the upper half.
const SERVICES_PREFIX: u8 = 18;

/// The address of the API server.
pub(super) fn server() -> Ipv4Addr {
    at(64, 1)
}

/// The range of Services, and its first address.
pub(super) fn services() -> (String, Ipv4Addr) {
    (format!("{}/{SERVICES_PREFIX}", at(0, 0)), at(0, 1))
}

/// The whole, as `windlass node join` takes it.
pub(super) fn range() -> String {
    format!("{}/16", at(0, 0))
}

/// Gives the machine the address of the API server, on its loopback interface.
pub(super) fn take() -> Result<()> {
    change("replace")
}

/// Takes it away again.
pub(super) fn give_back() {
    change("del").ok();
}

fn change(verb: &str) -> Result<()> {
    let address = format!("{}/32", server());
    let outcome = Command::new("ip").args(["address", verb, &address, "dev", "lo"]).output();
    let outcome = outcome.context("cannot run ip; on Debian: apt-get install iproute2")?;
    if !outcome.status.success() {
        let said = String::from_utf8_lossy(&outcome.stderr);
        bail!("{address} was not given to this machine, which root may do: {}", said.trim());
    }
    Ok(())
}

fn at(third: u8, fourth: u8) -> Ipv4Addr {
    let [first, second] = NETWORK;
    Ipv4Addr::new(first, second, third, fourth)
}
