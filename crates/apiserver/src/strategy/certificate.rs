//! Requests for certificates: the server says who asks, and looks at what they ask.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_schema::FieldError;
use x509_parser::prelude::{FromDer, X509CertificationRequest};

use crate::auth::User;

pub(super) fn prepare_create(object: &mut Value, user: &User) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    spec.insert("username".to_owned(), user.name.as_str().into());
    spec.insert("groups".to_owned(), user.groups.clone().into());
    if !user.uid.is_empty() {
        spec.insert("uid".to_owned(), user.uid.as_str().into());
    }
    if !user.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(user.extra));
    }
}

/// A request must be one, signed with the key that it is for.
pub(super) fn validate(object: &Value) -> Option<FieldError> {
    let text = object.pointer("/spec/request").and_then(Value::as_str).unwrap_or_default();
    let problem = problem(&STANDARD.decode(text).unwrap_or_default())?;
    Some(FieldError::invalid("spec.request", text, problem))
}

fn problem(request: &[u8]) -> Option<String> {
    let block = x509_parser::pem::parse_x509_pem(request).ok().map(|(_, block)| block);
    let Some(block) = block.filter(|block| block.label == "CERTIFICATE REQUEST") else {
        return Some("PEM block type must be CERTIFICATE REQUEST".to_owned());
    };
    match X509CertificationRequest::from_der(&block.contents) {
        Err(error) => Some(format!("the request cannot be read: {error}")),
        Ok((rest, _)) if !rest.is_empty() => Some("asn1: syntax error: trailing data".to_owned()),
        Ok((_, request)) => {
            request.verify_signature().err().map(|error| format!("the signature does not fit: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_signed_with_its_own_key() {
        let key = rcgen::KeyPair::generate().expect("a key");
        let request = rcgen::CertificateParams::default().serialize_request(&key).expect("a request");
        let pem = request.pem().expect("a text");
        assert_eq!(problem(pem.as_bytes()), None);
        assert_eq!(problem(b"x").as_deref(), Some("PEM block type must be CERTIFICATE REQUEST"));
        let mut forged = request.der().to_vec();
        *forged.last_mut().expect("it has a signature") ^= 1;
        let forged = x509_parser::pem::Pem { label: "CERTIFICATE REQUEST".to_owned(), contents: forged };
        let text = format!(
            "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
            STANDARD.encode(&forged.contents),
            label = forged.label
        );
        assert!(problem(text.as_bytes()).is_some_and(|problem| problem.starts_with("the signature does not fit")));
    }

    #[test]
    fn nobody_asks_in_the_name_of_others() {
        let mut request = json!({"spec": {"request": "x", "username": "root", "uid": "0"}});
        prepare_create(&mut request, &User::new("ann", ["people"]));
        let groups = json!(["people", "system:authenticated"]);
        assert_eq!(request["spec"], json!({"request": "x", "username": "ann", "groups": groups}));
    }
}
