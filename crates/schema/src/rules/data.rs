//! ConfigMaps and Secrets.

use super::cursor::{At, immutable};
use crate::{FieldError, names};

/// How many bytes the data of a ConfigMap or a Secret may have together.
const DATA_BYTES_MAX: usize = 1024 * 1024;

const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) fn config_map(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let (data, binary) = (object.member("data"), object.member("binaryData"));
    let mut bytes = 0;
    for (key, value) in data.entries() {
        check_key(key, &value, errors);
        bytes += value.text().len();
        if binary.value.get(key).is_some() {
            errors.push(FieldError::invalid(value.path, key, "duplicate of key present in binaryData"));
        }
    }
    for (key, value) in binary.entries() {
        check_key(key, &value, errors);
        bytes += decoded_bytes(value.text());
    }
    if bytes > DATA_BYTES_MAX {
        // The path of the object as a whole.
        errors.push(FieldError::too_long("[]", DATA_BYTES_MAX as u64));
    }
    frozen(object, old, &["data", "binaryData"], errors);
}

pub(super) fn secret(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let data = object.member("data");
    let mut bytes = 0;
    for (key, value) in data.entries() {
        check_key(key, &value, errors);
        bytes += decoded_bytes(value.text());
    }
    if bytes > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("data", DATA_BYTES_MAX as u64));
    }
    secret_type(object, &data, errors);
    if let Some(old) = old {
        immutable(object, old, &["type"], errors);
    }
    frozen(object, old, &["data"], errors);
}

/// What a type promises must be there.
fn secret_type(object: &At<'_>, data: &At<'_>, errors: &mut Vec<FieldError>) {
    let keys: &[&str] = match object.member("type").text() {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" if data.value.get("username").or(data.value.get("password")).is_none() => {
            &["username", "password"]
        }
        "kubernetes.io/service-account-token" => {
            let annotation = "kubernetes.io/service-account.name";
            if object.at("metadata.annotations").member(annotation).is_absent()
                && object.value["metadata"]["annotations"][annotation].as_str().unwrap_or_default().is_empty()
            {
                errors.push(FieldError::required(format!("metadata.annotations[{annotation}]"), ""));
            }
            &[]
        }
        _ => &[],
    };
    let missing = keys.iter().filter(|key| data.value.get(**key).is_none());
    errors.extend(missing.map(|key| FieldError::required(format!("data[{key}]"), "")));
}

fn check_key(key: &str, value: &At<'_>, errors: &mut Vec<FieldError>) {
    let wrong = names::config_key(key).into_iter();
    errors.extend(wrong.map(|detail| FieldError::invalid(value.path.clone(), key, detail)));
}

fn frozen(object: &At<'_>, old: Option<&At<'_>>, names: &[&str], errors: &mut Vec<FieldError>) {
    let Some(old) = old.filter(|old| old.member("immutable").is_true()) else { return };
    let mut keep = |name: &str| {
        let (new, old) = (object.member(name), old.member(name));
        if new.value != old.value && !(new.is_absent() && old.is_absent()) {
            errors.push(new.forbidden(FROZEN));
        }
    };
    keep("immutable");
    names.iter().for_each(|name| keep(name));
}

/// The length of what base64 stands for, close enough for a limit.
fn decoded_bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}
