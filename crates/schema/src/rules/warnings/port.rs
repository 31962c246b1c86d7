//! Ports that containers of one Pod share by mistake.

use std::collections::HashMap;

use super::super::{cursor::At, windows};
use super::Warnings;
use crate::field::quote;

pub(super) fn ports(spec: &At<'_>, warnings: &mut Warnings) {
    let ports = || windows::containers(spec).flat_map(|container| container.member("ports").items());
    let mut taken: HashMap<(i64, &str), Vec<At<'_>>> = HashMap::new();
    for port in ports() {
        if !port.member("hostIP").is_absent() && host(&port).0 == 0 {
            warnings.about(&port, format!("hostIP set without hostPort: {}", shown(&port)));
        }
        let key = (port.member("containerPort").int().unwrap_or_default(), port.member("protocol").text());
        let others = taken.entry(key).or_default();
        for other in others.iter() {
            if let Some(what) = conflict(&port, other) {
                warnings.about(&port, format!("{what} port definition with {}", other.path));
            }
        }
        others.push(port);
    }
    let mut names: HashMap<&str, String> = HashMap::new();
    for port in ports().filter(|port| !port.member("name").is_absent()) {
        let name = port.member("name").text();
        match names.get(name) {
            Some(first) => warnings.about(&port, format!(
                "duplicate port name {} with {first}, services and probes that select ports by name will use {first}",
                quote(name)
            )),
            None => {
                names.insert(name, port.path);
            }
        }
    }
}

/// The port and the address on the host.
fn host<'a>(port: &At<'a>) -> (i64, &'a str) {
    (port.member("hostPort").int().unwrap_or_default(), port.member("hostIP").text())
}

/// How two ports with the same number and protocol are in each other's way.
fn conflict(port: &At<'_>, other: &At<'_>) -> Option<&'static str> {
    let ((number, address), (other_number, other_address)) = (host(port), host(other));
    if (number, address) == (other_number, other_address) {
        Some("duplicate")
    } else if number == 0 || other_number == 0 {
        Some("overlapping")
    } else if number == other_number && address.is_empty() != other_address.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

/// A port as Go prints the struct of it.
fn shown(port: &At<'_>) -> String {
    let (number, address) = host(port);
    format!(
        "{{Name:{} HostPort:{number} ContainerPort:{} Protocol:{} HostIP:{address}}}",
        port.member("name").text(),
        port.member("containerPort").int().unwrap_or_default(),
        port.member("protocol").text(),
    )
}
