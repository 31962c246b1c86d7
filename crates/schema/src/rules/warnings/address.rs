//! IPv6 addresses that are not written in their one form.

use std::net::Ipv6Addr;

use super::super::cursor::At;
use super::Warnings;
use crate::field::quote;

pub(super) fn ip(at: &At<'_>, warnings: &mut Warnings) {
    let text = at.text();
    if let Some(canonical) = canonical(text).filter(|canonical| canonical != text) {
        let (shown, canonical) = (quote(text), quote(&canonical));
        warnings.about(at, format!("IPv6 address {shown} should be in RFC 5952 canonical format ({canonical})"));
    }
}

pub(super) fn cidr(at: &At<'_>, warnings: &mut Warnings) {
    let text = at.text();
    let Some((address, bits)) = text.split_once('/') else { return };
    let canonical = canonical(address).map(|address| format!("{address}/{bits}"));
    if let Some(canonical) = canonical.filter(|canonical| canonical != text) {
        let (shown, canonical) = (quote(text), quote(&canonical));
        warnings.about(at, format!("IPv6 CIDR value {shown} should be in RFC 5952 canonical format ({canonical})"));
    }
}

fn canonical(text: &str) -> Option<String> {
    text.parse::<Ipv6Addr>().ok().map(|address| address.to_string())
}
