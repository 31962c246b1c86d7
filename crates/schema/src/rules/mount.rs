//! Where containers have the volumes of their Pod.

use std::collections::{HashMap, HashSet};

use super::cursor::{At, required};
use super::path;
use super::pod::Whole;
use crate::FieldError;

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];

/// Checks where a container has its volumes as directories.
pub(super) fn mounts(container: &At<'_>, whole: &Whole<'_>, errors: &mut Vec<FieldError>) {
    let list = container.member("volumeMounts");
    let devices = places(&container.member("volumeDevices"), "devicePath");
    let mut seen = HashSet::new();
    for mount in list.items() {
        let (name, place) = (mount.member("name"), mount.member("mountPath"));
        required(&name, errors);
        if !whole.volumes.contains_key(name.text()) {
            errors.push(FieldError::not_found(name.path.clone(), name.text()));
        }
        required(&place, errors);
        if !seen.insert(place.text()) {
            errors.push(place.wrong_text("must be unique"));
        }
        if devices.contains_key(name.text()) {
            errors.push(name.wrong_text("must not already exist in volumeDevices"));
        }
        if devices.values().any(|device| *device == place.text()) {
            errors.push(place.wrong_text("must not already exist as a path in volumeDevices"));
        }
        part(&mount, &list, errors);
        // Errors name the list, not its item.
        propagation(&mount.member("mountPropagation").renamed(list.member("mountPropagation").path), container, errors);
        read_only(&mount, list.member("recursiveReadOnly").path, errors);
    }
}

/// The part of a volume that is mounted.
fn part(mount: &At<'_>, list: &At<'_>, errors: &mut Vec<FieldError>) {
    let (plain, expression) = (mount.member("subPath"), mount.member("subPathExpr"));
    path::descending(&plain.renamed(list.member("subPath").path), errors);
    if !plain.is_absent() && !expression.is_absent() {
        errors.push(expression.invalid("subPathExpr and subPath are mutually exclusive"));
    }
    path::descending(&expression.renamed(list.member("subPathExpr").path), errors);
}

fn propagation(mode: &At<'_>, container: &At<'_>, errors: &mut Vec<FieldError>) {
    super::cursor::set_one_of(mode, &PROPAGATIONS, errors);
    if mode.text() == "Bidirectional" && !container.at("securityContext.privileged").is_true() {
        errors.push(mode.forbidden("Bidirectional mount propagation is available only to privileged containers"));
    }
}

fn read_only(mount: &At<'_>, path: String, errors: &mut Vec<FieldError>) {
    let mode = mount.member("recursiveReadOnly").renamed(path);
    match mode.text() {
        "Enabled" | "IfPossible" => {
            if !mount.member("readOnly").is_true() {
                errors.push(mode.forbidden("may only be specified when readOnly is true"));
            }
            let propagation = mount.member("mountPropagation");
            if propagation.is_set() && propagation.text() != "None" {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(mode.forbidden(detail));
            }
        }
        _ => super::cursor::set_one_of(&mode, &["Disabled", "Enabled", "IfPossible"], errors),
    }
}

/// Checks where a container has its volumes as devices.
pub(super) fn devices(container: &At<'_>, whole: &Whole<'_>, errors: &mut Vec<FieldError>) {
    let mounts = places(&container.member("volumeMounts"), "mountPath");
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    for device in container.member("volumeDevices").items() {
        let (name, place) = (device.member("name"), device.member("devicePath"));
        required(&name, errors);
        if names.contains(name.text()) {
            errors.push(name.wrong_text("must be unique"));
        }
        match whole.volumes.get(name.text()) {
            None => errors.push(FieldError::not_found(name.path.clone(), name.text())),
            Some(volume) if volume["persistentVolumeClaim"].is_null() && volume["ephemeral"].is_null() => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(name.wrong_text(detail));
            }
            Some(_) => {}
        }
        required(&place, errors);
        if paths.contains(place.text()) {
            errors.push(place.wrong_text("must be unique"));
        }
        if place.text().split('/').any(|part| part == "..") {
            errors.push(place.wrong_text("can not contain backsteps ('..')"));
        } else {
            paths.insert(place.text());
        }
        if mounts.contains_key(name.text()) {
            errors.push(name.wrong_text("must not already exist in volumeMounts"));
        }
        if mounts.values().any(|mount| *mount == place.text()) {
            errors.push(place.wrong_text("must not already exist as a path in volumeMounts"));
        }
        if !name.is_absent() {
            names.insert(name.text());
        }
    }
}

/// The places of a list by the names of the volumes; of the same name, the last.
fn places<'a>(list: &At<'a>, place: &str) -> HashMap<&'a str, &'a str> {
    list.items().map(|entry| (entry.member("name").text(), entry.member(place).text())).collect()
}
