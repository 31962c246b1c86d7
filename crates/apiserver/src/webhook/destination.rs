//! Where a webhook is: the `clientConfig` of configurations and definitions.

use std::fmt;

use http::Uri;
use serde::Deserialize;

/// How a webhook is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClientConfig {
    url: Option<String>,
    service: Option<ServiceReference>,
    /// The authorities that may have signed its certificate: PEM in base64; those of the system if there are none.
    pub(super) ca_bundle: Option<String>,
}

/// A Service and a path at it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub(super) struct ServiceReference {
    pub(super) namespace: String,
    pub(super) name: String,
    path: Option<String>,
    port: Option<u16>,
}

/// The port that a Service is asked at, unless something else is said.
const PORT_DEFAULT: u16 = 443;

/// Where to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// A name or address, and a port.
    Host(String, u16),
    /// A port of a Service.
    Service { namespace: String, name: String, port: u16 },
}

/// Why a webhook cannot be called at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DestinationError {
    #[error("exactly one of url or service is required")]
    Ambiguous,
    #[error("the url {0:?} is not of the form https://host[:port][/path]")]
    Url(String),
}

impl ServiceReference {
    pub(super) fn port(&self) -> u16 {
        self.port.unwrap_or(PORT_DEFAULT)
    }
}

impl ClientConfig {
    /// The address that requests are sent to; `timeout_seconds` tells the webhook how long it has.
    pub(super) fn uri(&self, timeout_seconds: u64) -> Result<Uri, DestinationError> {
        let text = match (&self.url, &self.service) {
            (Some(url), None) => url.clone(),
            (None, Some(service)) => {
                let path = service.path.as_deref().unwrap_or_default().trim_start_matches('/');
                format!("https://{}.{}.svc:{}/{path}", service.name, service.namespace, service.port())
            }
            _ => return Err(DestinationError::Ambiguous),
        };
        let uri: Uri = text.parse().map_err(|_| DestinationError::Url(text.clone()))?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("https"));
        let authority = authority.ok_or_else(|| DestinationError::Url(text.clone()))?;
        let uri = format!("https://{authority}{}?timeout={timeout_seconds}s", clean(uri.path()));
        uri.parse().map_err(|_| DestinationError::Url(text))
    }

    /// Where the connection goes.
    pub(super) fn destination(&self) -> Result<Destination, DestinationError> {
        if let Some(service) = &self.service {
            let (namespace, name) = (service.namespace.clone(), service.name.clone());
            return Ok(Destination::Service { namespace, name, port: service.port() });
        }
        let uri = self.uri(0)?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Ok(Destination::Host(host, uri.port_u16().unwrap_or(PORT_DEFAULT)))
    }
}

/// A path without empty parts, dots and a slash at its end: envtest writes `//validate`, and Go's servers redirect that.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

impl fmt::Display for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host, port) => write!(formatter, "{host}:{port}"),
            Self::Service { namespace, name, port } => write!(formatter, "{name}.{namespace}.svc:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_of_urls_and_services() {
        let rows = [
            (json!({"url": "https://a.example:8443/x/y"}), "https://a.example:8443/x/y?timeout=5s", "a.example:8443"),
            (json!({"url": "https://a//x/./../y/"}), "https://a/y?timeout=5s", "a:443"),
            (json!({"url": "https://[::1]/"}), "https://[::1]/?timeout=5s", "::1:443"),
            (
                json!({"service": {"namespace": "n", "name": "s", "path": "/hook"}}),
                "https://s.n.svc:443/hook?timeout=5s",
                "s.n.svc:443",
            ),
            (
                json!({"service": {"namespace": "n", "name": "s", "port": 9443}}),
                "https://s.n.svc:9443/?timeout=5s",
                "s.n.svc:9443",
            ),
        ];
        for (config, uri, destination) in rows {
            let config: ClientConfig = serde_json::from_value(config).unwrap();
            assert_eq!(config.uri(5).unwrap().to_string(), uri);
            assert_eq!(config.destination().unwrap().to_string(), destination);
        }
        for config in [json!({}), json!({"url": "http://a"}), json!({"url": "x"})] {
            let config: ClientConfig = serde_json::from_value(config.clone()).unwrap();
            assert!(config.uri(5).is_err(), "{config:?}");
        }
    }
}
