//! Addresses and ranges of them, and what is wrong with those that can nearly be read.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::cursor::At;
use crate::FieldError;

/// A range of addresses: one of them, and how many bits all of them share.
pub(super) struct Range {
    address: IpAddr,
    bits: u8,
}

impl Range {
    /// How many bits an address has.
    fn width(&self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// The first address of the range.
    fn network(&self) -> IpAddr {
        let rest = u32::from(self.width() - self.bits);
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        }
    }

    /// Whether all of `other` is inside, and not all of this range.
    pub(super) fn contains(&self, other: &Range) -> bool {
        let cut = Range { address: other.network(), bits: self.bits.min(other.width()) };
        self.address.is_ipv4() == other.address.is_ipv4() && self.bits < other.bits && cut.network() == self.network()
    }
}

/// The text must be an address.
pub(super) fn ip(at: &At<'_>, errors: &mut Vec<FieldError>) {
    let detail = match at.text().parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => "must not be an IPv4-mapped IPv6 address",
        Ok(_) => return,
        Err(_) if without_zeros(at.text()).parse::<IpAddr>().is_ok() => "must not have leading 0s",
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    errors.push(at.invalid(detail));
}

/// The text must be a range; gives it as far as it can be read.
pub(super) fn range(at: &At<'_>, errors: &mut Vec<FieldError>) -> Option<Range> {
    let text = at.text();
    let (Some(range), strict) = (parse_range(&without_zeros_in_range(text)), parse_range(text)) else {
        errors.push(at.invalid("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
        return None;
    };
    let detail = match strict {
        None => "must not have leading 0s in IP or prefix length",
        Some(strict) if strict.address.to_canonical() != strict.address => "must not have an IPv4-mapped IPv6 address",
        Some(strict) if strict.network() != strict.address => "must not have bits set beyond the prefix length",
        Some(_) => return Some(range),
    };
    errors.push(at.invalid(detail));
    Some(range)
}

fn parse_range(text: &str) -> Option<Range> {
    let (address, bits) = text.split_once('/')?;
    let is_plain = bits == "0" || bits.starts_with(|first| ('1'..='9').contains(&first));
    let range = Range { address: address.parse().ok()?, bits: bits.parse().ok().filter(|_| is_plain)? };
    (range.bits <= range.width()).then_some(range)
}

fn without_zeros_in_range(text: &str) -> String {
    match text.split_once('/') {
        Some((address, bits)) => format!("{}/{}", without_zeros(address), shortest(bits)),
        None => text.to_owned(),
    }
}

/// The text with each decimal number in its shortest form. The last part of an IPv6 address may be an IPv4 address.
fn without_zeros(text: &str) -> String {
    let start = text.rfind(':').map_or(0, |colon| colon + 1);
    let (head, tail) = text.split_at(start);
    format!("{head}{}", tail.split('.').map(shortest).collect::<Vec<_>>().join("."))
}

fn shortest(number: &str) -> &str {
    match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0",
        digits => digits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn wrong(check: impl Fn(&At<'_>, &mut Vec<FieldError>), text: &str) -> Vec<String> {
        let (value, mut errors) = (Value::from(text), Vec::new());
        check(&At { path: "x".to_owned(), value: &value }, &mut errors);
        errors.into_iter().map(|error| error.detail).collect()
    }

    #[test]
    fn addresses_have_one_meaning() {
        for fine in ["10.0.0.1", "2001:DB8::0:1", "::"] {
            assert_eq!(wrong(ip, fine), [""; 0], "{fine}");
        }
        assert_eq!(wrong(ip, "010.0.0.1"), ["must not have leading 0s"]);
        assert_eq!(wrong(ip, "::ffff:1.2.3.4"), ["must not be an IPv4-mapped IPv6 address"]);
        for bad in ["", "1.2.3", "256.0.0.1", ":", "1.2.3.x", "0x1.2.3.4"] {
            assert_eq!(wrong(ip, bad), ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"], "{bad}");
        }
    }

    #[test]
    fn ranges_have_one_meaning() {
        let wrong = |text: &str| wrong(|at, errors| _ = range(at, errors), text);
        for fine in ["10.0.0.0/8", "0.0.0.0/0", "2001:db8::/48", "10.0.0.1/32"] {
            assert_eq!(wrong(fine), [""; 0], "{fine}");
        }
        assert_eq!(wrong("10.0.0.0/08"), ["must not have leading 0s in IP or prefix length"]);
        assert_eq!(wrong("10.1.2.3/8"), ["must not have bits set beyond the prefix length"]);
        assert_eq!(wrong("::ffff:1.2.3.0/120"), ["must not have an IPv4-mapped IPv6 address"]);
        for bad in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "::/129", "10.0.0.0/"] {
            assert_eq!(wrong(bad), ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"], "{bad}");
        }
    }

    #[test]
    fn a_part_is_smaller_than_the_whole() {
        let inside = |whole: &str, part: &str| parse_range(whole).unwrap().contains(&parse_range(part).unwrap());
        assert!(inside("10.0.0.0/8", "10.1.0.0/16") && inside("0.0.0.0/0", "1.2.3.4/32"));
        assert!(!inside("10.0.0.0/8", "10.0.0.0/8") && !inside("10.0.0.0/8", "11.0.0.0/16"));
        assert!(!inside("0.0.0.0/0", "::/64"));
    }
}
