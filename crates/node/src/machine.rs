//! The addresses of the machine itself.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;

/// The kernel's table of routes, which tells the addresses of every interface.
const ROUTES: &str = "/proc/net/fib_trie";
/// Addresses of a machine that are looked at; one with more has them for something else than itself.
const ADDRESSES_MAX: usize = 64;

/// The addresses by which the machine is reached; localhost at least.
pub(crate) fn addresses() -> BTreeSet<Ipv4Addr> {
    let mut addresses = own(&fs::read_to_string(ROUTES).unwrap_or_default());
    addresses.insert(Ipv4Addr::LOCALHOST);
    addresses
}

/// The addresses of which the table says that they are this machine, alone: a leaf, then what it is.
fn own(table: &str) -> BTreeSet<Ipv4Addr> {
    let mut leaf: Option<Ipv4Addr> = None;
    let mut found = BTreeSet::new();
    for line in table.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse().ok();
        } else if line == "/32 host LOCAL" && found.len() < ADDRESSES_MAX {
            found.extend(leaf);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_interfaces_count() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     +-- 127.0.0.0/8 2 0 2\n        |-- 127.0.0.0\n           /8 host LOCAL\n\
            \x20       |-- 127.0.0.1\n           /32 host LOCAL\n        |-- 127.255.255.255\n           /32 link BROADCAST\n\
            \x20    |-- 10.0.0.7\n        /32 host LOCAL\n     |-- 10.0.0.0\n        /24 link UNICAST\n";
        let expect: BTreeSet<Ipv4Addr> = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 0, 0, 7)].into();
        assert_eq!(own(table), expect);
        assert!(own("").is_empty() && addresses().contains(&Ipv4Addr::LOCALHOST));
    }
}
