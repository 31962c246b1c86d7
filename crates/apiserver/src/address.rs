//! Ranges of addresses from which Services get theirs.

use std::{collections::HashSet, fmt, net::Ipv4Addr, str::FromStr};

use rand::Rng;

/// How many addresses at the start of a range are left to those who name the address that they want.
const STATIC_MAX: u32 = 256;
const STATIC_MIN: u32 = 16;

/// A block of addresses, such as `10.96.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    base: u32,
    bits: u8,
}

/// A text that is not a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a range of IPv4 addresses such as 10.96.0.0/16")]
pub struct AddressRangeError(String);

impl AddressRange {
    /// The addresses that share the first `bits` bits with `base`; at least four.
    pub fn new(base: Ipv4Addr, bits: u8) -> Self {
        let bits = bits.min(30);
        Self { base: u32::from(base) & !host_mask(bits), bits }
    }

    /// The first address, which the `kubernetes` Service has.
    pub fn first(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.base + 1)
    }

    /// Whether `address` may be given to a Service: the first and the last of a range are not.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(self.base);
        offset > 0 && offset < host_mask(self.bits)
    }

    /// An address that is not in `used`; `None` if all are.
    ///
    /// It is random, so that the address of a Service that went is not given to the next one.
    pub(crate) fn pick(&self, used: &HashSet<Ipv4Addr>) -> Option<Ipv4Addr> {
        let count = host_mask(self.bits) - 1;
        let reserved = (count / 16).clamp(STATIC_MIN, STATIC_MAX).min(count / 2);
        let dynamic = count - reserved;
        let start = rand::rng().random_range(0..dynamic);
        let free = |offset: &u32| !used.contains(&Ipv4Addr::from(self.base + 1 + offset));
        let upper = (0..dynamic).map(|step| reserved + (start + step) % dynamic);
        upper.chain(0..reserved).find(free).map(|offset| Ipv4Addr::from(self.base + 1 + offset))
    }
}

fn host_mask(bits: u8) -> u32 {
    u32::MAX.checked_shr(u32::from(bits)).unwrap_or(0)
}

impl FromStr for AddressRange {
    type Err = AddressRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (base, bits) = text.split_once('/')?;
            Some((base.parse().ok()?, bits.parse().ok().filter(|bits| *bits <= 30)?))
        };
        let (base, bits) = parse().ok_or_else(|| AddressRangeError(text.to_owned()))?;
        Ok(Self::new(base, bits))
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", Ipv4Addr::from(self.base), self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_given_once_and_the_static_ones_last() {
        let range: AddressRange = "10.0.0.7/26".parse().unwrap();
        assert_eq!(range.to_string(), "10.0.0.0/26");
        let mut used = HashSet::new();
        let mut order = Vec::new();
        while let Some(address) = range.pick(&used) {
            assert!(range.contains(address));
            assert!(used.insert(address));
            order.push(address);
        }
        assert_eq!(used.len(), 62);
        assert!(order[..46].iter().all(|address| address.octets()[3] > 16), "the first are left for those who choose");
        assert!(!range.contains("10.0.0.0".parse().unwrap()));
        assert!(!range.contains("10.0.0.63".parse().unwrap()));
        assert!(!range.contains("10.0.1.1".parse().unwrap()));
        assert!("10.0.0.0".parse::<AddressRange>().is_err());
        assert!("10.0.0.0/31".parse::<AddressRange>().is_err());
    }
}
