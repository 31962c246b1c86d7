//! Whether a range of addresses is free, by the machine's routes.

use std::net::Ipv4Addr;

use crate::config::AddressRange;

/// The route of a machine (`/proc/net/route`) that shares addresses with a range, besides those of an interface.
pub(super) fn find(routes: &str, range: AddressRange, interface: &str) -> Option<AddressRange> {
    let others = routes.lines().skip(1).filter(|line| line.split_whitespace().next() != Some(interface));
    others.filter_map(read).find(|route| route.prefix > 0 && overlap(*route, range))
}

/// A line: interface, destination, gateway, flags, three counters and the mask, addresses in hexadecimal.
fn read(line: &str) -> Option<AddressRange> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    // The kernel prints the bytes in the order of the machine.
    let address = |text: &str| Some(Ipv4Addr::from(u32::from_str_radix(text, 16).ok()?.to_ne_bytes()));
    let mask = u32::from(address(fields.get(7)?)?);
    Some(AddressRange { network: address(fields.get(1)?)?, prefix: u8::try_from(mask.leading_ones()).ok()? })
}

fn overlap(one: AddressRange, other: AddressRange) -> bool {
    one.contains(other.network) || other.contains(one.network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn only_routes_of_others_are_in_the_way() {
        let routes = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
            eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n\
            eth0 00020A0A 00000000 0001 0 0 0 00FFFFFF 0 0 0\n\
            wl0 0080630A 00000000 0001 0 0 0 0080FFFF 0 0 0\n";
        let range = |second| AddressRange { network: Ipv4Addr::new(10, second, 0, 0), prefix: 16 };
        let found = find(routes, range(10), "wl0").map(|route| route.to_string());
        assert_eq!(found.as_deref(), Some("10.10.2.0/24"));
        assert_eq!(find(routes, range(99), "wl0"), None, "its own");
        assert!(find(routes, range(99), "wl1").is_some());
        assert_eq!(find(routes, range(11), "wl0"), None);
    }
}
