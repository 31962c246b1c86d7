//! Volumes that several sources fill with files.

use std::collections::HashSet;

use super::cursor::{At, required};
use super::{environment, path, volume};
use crate::FieldError;

/// The sources that are on; upstream drops others before it looks.
const SOURCES: [&str; 4] = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];
/// What of a Pod a file can hold.
const FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// Checks the sources of a projected volume.
pub(super) fn check(projected: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut files = Files { projected, seen: HashSet::new() };
    for source in projected.member("sources").items() {
        for name in ["secret", "configMap"] {
            files.keys(&source.member(name), errors);
        }
        let of_pod = source.member("downwardAPI");
        for file in of_pod.member("items").items() {
            pod_file(&file, &of_pod.path, errors);
            files.add(file.member("path").text(), file.member("path").text(), errors);
        }
        files.token(&source.member("serviceAccountToken"), errors);
        if SOURCES.iter().filter(|name| source.member(name).is_set()).count() > 1 {
            errors.push(source.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

/// Checks a file with something of the Pod; errors are at `path`.
pub(super) fn pod_file(file: &At<'_>, path: &str, errors: &mut Vec<FieldError>) {
    // The source is named, not its item.
    let file = file.renamed(path);
    required(&file.member("path"), errors);
    path::unreserved(&file.member("path"), errors);
    let (field, resource) = (file.member("fieldRef"), file.member("resourceFieldRef"));
    match (field.is_set(), resource.is_set()) {
        (true, both) => {
            environment::field(&field, &FIELDS, errors);
            if both {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(file.path.clone(), "resource", detail));
            }
        }
        (false, true) if resource.member("containerName").is_absent() => {
            errors.push(resource.member("containerName").missing(""));
            environment::divisor(&resource, errors);
        }
        (false, true) => environment::container_resource(&resource, errors),
        (false, false) => errors.push(file.missing("one of fieldRef and resourceFieldRef is required")),
    }
    volume::mode(&file.member("mode"), errors);
}

/// The files of a volume as far as they are known.
struct Files<'a> {
    projected: &'a At<'a>,
    seen: HashSet<&'a str>,
}

impl<'a> Files<'a> {
    /// Another file; an error shows `owner`.
    fn add(&mut self, file: &'a str, owner: &str, errors: &mut Vec<FieldError>) {
        if !file.is_empty() && !self.seen.insert(file) {
            errors.push(FieldError::invalid(self.projected.path.clone(), owner, "conflicting duplicate paths"));
        }
    }

    fn keys(&mut self, source: &At<'a>, errors: &mut Vec<FieldError>) {
        if !source.is_set() {
            return;
        }
        let name = source.member("name");
        required(&name, errors);
        for item in source.member("items").items() {
            volume::key_to_path(&item, errors);
            self.add(item.member("path").text(), name.text(), errors);
        }
    }

    fn token(&self, token: &At<'_>, errors: &mut Vec<FieldError>) {
        if !token.is_set() {
            return;
        }
        let seconds = token.member("expirationSeconds");
        match seconds.int() {
            Some(..TOKEN_SECONDS_MIN) => {
                errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
            }
            Some(number) if number > TOKEN_SECONDS_MAX => {
                errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
            }
            _ => {}
        }
        let file = token.member("path").renamed(self.projected.member("path").path);
        required(&file, errors);
        path::unreserved(&file, errors);
    }
}
