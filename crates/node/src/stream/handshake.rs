//! How client and node agree on a protocol.

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::channel::{PROTOCOLS, Protocol};
use super::view::{FORMS, Form};
use super::{forward, multiplexed, websocket};

const SPDY: &str = "SPDY/3.1";
const SPDY_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// Why client and node do not agree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) StatusCode, pub(super) String);

/// What both will speak, and the headers that say so.
#[derive(Debug)]
pub(super) struct Agreed<T> {
    pub(super) speech: T,
    pub(super) answer: HeaderMap,
}

/// How the client of a program speaks.
#[derive(Debug, Clone, Copy)]
pub(super) enum CommandSpeech {
    /// Over WebSocket.
    Channels(Protocol),
    /// Over SPDY, in this version.
    Multiplexed(u8),
}

/// How SPDY comes to a client whose connections are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForwardSpeech {
    /// Through a WebSocket.
    Tunnelled,
    /// As it is.
    Plain,
}

/// Agrees with the client of a program.
pub(super) fn command(headers: &HeaderMap) -> Result<Agreed<CommandSpeech>, Refusal> {
    if websocket::is_wished(headers) {
        let known = PROTOCOLS.map(|protocol| (protocol.name, protocol));
        let protocol = websocket::negotiate(headers, &known).map_err(forbidden)?;
        let answer = websocket::agreed(headers, protocol.name);
        return Ok(Agreed { speech: CommandSpeech::Channels(protocol), answer });
    }
    let (version, answer) = spdy(headers, &multiplexed::VERSIONS)?;
    Ok(Agreed { speech: CommandSpeech::Multiplexed(version), answer })
}

/// Agrees with a client whose connections are forwarded.
pub(super) fn forwarding(headers: &HeaderMap) -> Result<Agreed<ForwardSpeech>, Refusal> {
    if websocket::is_wished(headers) {
        let known = [(forward::TUNNELLED, ForwardSpeech::Tunnelled)];
        let speech = websocket::negotiate(headers, &known).map_err(forbidden)?;
        return Ok(Agreed { speech, answer: websocket::agreed(headers, forward::TUNNELLED) });
    }
    let (speech, answer) = spdy(headers, &[(forward::PROTOCOL, ForwardSpeech::Plain)])?;
    Ok(Agreed { speech, answer })
}

/// Agrees with a client that wants to see something over WebSocket.
pub(super) fn viewing(headers: &HeaderMap) -> Result<Agreed<Form>, Refusal> {
    let known = FORMS.map(|form| (form.name, form));
    let form = websocket::negotiate(headers, &known).map_err(forbidden)?;
    Ok(Agreed { speech: form, answer: websocket::agreed(headers, form.name) })
}

/// The first of the client's protocols that `known` has; a client that names none gets the last of `known`.
fn spdy<T: Copy>(headers: &HeaderMap, known: &[(&'static str, T)]) -> Result<(T, HeaderMap), Refusal> {
    let upgrades = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    if !upgrades.is_some_and(|value| value.eq_ignore_ascii_case(SPDY)) {
        return Err(Refusal(StatusCode::BAD_REQUEST, "Upgrade request required".to_owned()));
    }
    let offers = headers.get_all(SPDY_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let offers: Vec<&str> = offers.flat_map(|value| value.split(',')).map(str::trim).collect();
    let mut answer = HeaderMap::new();
    answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(UPGRADE, HeaderValue::from_static(SPDY));
    if let ([], Some((_, last))) = (&offers[..], known.last()) {
        return Ok((*last, answer));
    }
    let found = offers.iter().find_map(|offer| known.iter().find(|(name, _)| name == offer));
    let Some((name, speech)) = found else {
        let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let why = format!(
            "unable to upgrade: unable to negotiate protocol: client supports {offers:?}, server accepts {known:?}"
        );
        return Err(forbidden(why));
    };
    answer.insert(SPDY_PROTOCOL, HeaderValue::from_static(name));
    Ok((*speech, answer))
}

fn forbidden(why: String) -> Refusal {
    Refusal(StatusCode::FORBIDDEN, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn older_clients_get_the_best_version_that_both_know() {
        let check = |offers: &[&'static str], expect: Option<u8>| {
            let offers = offers.iter().map(|offer| ("x-stream-protocol-version", *offer));
            let asked: Vec<_> =
                [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")].into_iter().chain(offers).collect();
            let version = command(&headers(&asked)).ok().map(|agreed| match agreed.speech {
                CommandSpeech::Multiplexed(version) => version,
                CommandSpeech::Channels(_) => 0,
            });
            assert_eq!(version, expect);
        };
        check(&["v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io"], Some(4));
        check(&["v2.channel.k8s.io"], Some(2));
        check(&[], Some(1));
        check(&["v9.channel.k8s.io"], None);
    }

    #[test]
    fn a_request_without_an_upgrade_is_refused() {
        let refusal = command(&HeaderMap::new()).unwrap_err();
        assert_eq!(refusal, Refusal(StatusCode::BAD_REQUEST, "Upgrade request required".to_owned()));
    }
}
