//! Secrets for TLS: a pair of a certificate and its key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::super::cursor::At;
use super::Warnings;

/// What is wrong with a pair, as far as the labels of its blocks tell.
pub(super) fn secret(secret: &At<'_>, warnings: &mut Warnings) {
    if secret.member("type").text() != "kubernetes.io/tls" {
        return;
    }
    let labels = |name: &str| {
        let data = secret.member("data").value.get(name).and_then(|data| data.as_str()).unwrap_or_default();
        pem_labels(&String::from_utf8_lossy(&STANDARD.decode(data).unwrap_or_default()))
    };
    let (certificate, key) = (labels("tls.crt"), labels("tls.key"));
    let wrong = wrong_certificate(&certificate).or_else(|| wrong_key(&key));
    wrong.into_iter().for_each(|wrong| warnings.add(format!("tls: {wrong}")));
}

fn wrong_certificate(labels: &[String]) -> Option<String> {
    match labels {
        labels if labels.iter().any(|label| label == "CERTIFICATE") => None,
        [] => Some("failed to find any PEM data in certificate input".to_owned()),
        [only] if only.ends_with("PRIVATE KEY") => Some("failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned()),
        labels => Some(format!(
            "failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
            labels.join(" ")
        )),
    }
}

fn wrong_key(labels: &[String]) -> Option<String> {
    match labels {
        labels if labels.iter().any(|label| label.ends_with("PRIVATE KEY")) => None,
        [] => Some("failed to find any PEM data in key input".to_owned()),
        [only] if only == "CERTIFICATE" => {
            Some("found a certificate rather than a key in the PEM for the private key".to_owned())
        }
        labels => Some(format!(
            "failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
            labels.join(" ")
        )),
    }
}

/// The labels of the blocks that begin and end.
fn pem_labels(text: &str) -> Vec<String> {
    let begins = text.lines().filter_map(|line| line.trim_end().strip_prefix("-----BEGIN ")?.strip_suffix("-----"));
    begins.filter(|label| text.contains(&format!("-----END {label}-----"))).map(str::to_owned).collect()
}
