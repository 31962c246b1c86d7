//! Secrets: plain values are stored encoded, and a certificate should have its own key.

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::{
    Error, InconsistentKeys,
    crypto::ring::sign::any_supported_type,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use serde_json::{Value, json};

use super::remove;

/// Moves the plain values of a Secret to those that are stored.
pub(super) fn encode_string_data(object: &mut Value) {
    let Some(plain) = object.get("stringData").and_then(Value::as_object).cloned() else { return };
    remove(object, "stringData");
    if !object["data"].is_object() {
        object["data"] = json!({});
    }
    for (key, value) in plain {
        object["data"][key] = STANDARD.encode(value.as_str().unwrap_or_default()).into();
    }
}

/// What to tell of a pair for TLS whose halves can be read.
pub(super) fn mismatch(object: &Value) -> Option<String> {
    object.get("type").filter(|r#type| *r#type == "kubernetes.io/tls")?;
    let half = |name: &str| STANDARD.decode(object.get("data")?.get(name)?.as_str()?).ok();
    let certificates = CertificateDer::pem_slice_iter(&half("tls.crt")?).collect::<Result<Vec<_>, _>>().ok()?;
    let key = any_supported_type(&PrivateKeyDer::from_pem_slice(&half("tls.key")?).ok()?).ok()?;
    let matches = CertifiedKey::new(certificates, key).keys_match();
    let is_wrong = matches == Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch));
    is_wrong.then(|| "tls: private key does not match public key".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_certificate_is_told() {
        let pair = || rcgen::generate_simple_self_signed(["a".to_owned()]).expect("a pair");
        let (one, other) = (pair(), pair());
        let secret = |key: &rcgen::KeyPair| {
            let data =
                json!({"tls.crt": STANDARD.encode(one.cert.pem()), "tls.key": STANDARD.encode(key.serialize_pem())});
            json!({"type": "kubernetes.io/tls", "data": data})
        };
        assert_eq!(mismatch(&secret(&one.signing_key)), None);
        let told = mismatch(&secret(&other.signing_key));
        assert_eq!(told.as_deref(), Some("tls: private key does not match public key"));
        assert_eq!(mismatch(&json!({"type": "kubernetes.io/tls"})), None);
    }

    #[test]
    fn plain_values_are_stored_encoded() {
        let mut secret = json!({"data": {"a": "eA=="}, "stringData": {"b": "y", "a": "z"}});
        encode_string_data(&mut secret);
        assert_eq!(secret, json!({"data": {"a": "eg==", "b": "eQ=="}}));
    }
}
