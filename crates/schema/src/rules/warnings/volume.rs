//! Volumes of Pods.

use super::super::cursor::At;
use super::{Warnings, storage};
use crate::field::quote;

/// What became of kinds of volumes.
const DEPRECATED: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Where the files of a volume come from.
pub(super) fn source(volume: &At<'_>, warnings: &mut Warnings) {
    deprecated(volume, |_| true, warnings);
    let claim = volume.at("ephemeral.volumeClaimTemplate");
    if claim.is_set() {
        storage::claim_spec(&claim.member("spec"), warnings);
    }
}

/// The deprecated sources that something has, of those that its kind is warned of.
pub(super) fn deprecated(owner: &At<'_>, is_meant: impl Fn(&str) -> bool, warnings: &mut Warnings) {
    for (name, sentence) in DEPRECATED.iter().filter(|(name, _)| is_meant(name)) {
        let source = owner.member(name);
        if source.is_set() {
            // One is spelt otherwise in the sentence.
            let path = source.path.strip_suffix("storageos").map(|path| format!("{path}storageOS"));
            warnings.add(format!("{}: {sentence}", path.unwrap_or(source.path)));
        }
    }
}

/// Files of one volume that are in each other's place.
pub(super) fn overlaps(volume: &At<'_>, warnings: &mut Warnings) {
    let name = quote(volume.member("name").text());
    let named = |source: &str, kind: &str, field: &str| {
        let source = volume.member(source);
        (source.member("items"), format!("{kind} {}", quote(source.member(field).text())))
    };
    let mut sources = vec![named("configMap", "ConfigMap", "name"), named("secret", "Secret", "secretName")];
    sources.push((volume.at("downwardAPI.items"), "DownwardAPI".to_owned()));
    for (items, description) in sources {
        let files = items.items().map(|item| File::new(item.member("path").text(), String::new())).collect();
        tell(files, &name, &description, warnings);
    }
    let mut files = Vec::new();
    for source in volume.at("projected.sources").items() {
        if source.is_absent() {
            warnings.add(format!("volume {name} (Projected) has no sources provided"));
        }
        projected(&source, &mut files);
    }
    tell(files, &name, "Projected", warnings);
}

fn projected(source: &At<'_>, files: &mut Vec<File>) {
    let mut add = |path: &At<'_>, source: String| files.push(File::new(path.text(), source));
    for (name, kind) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        let one = source.member(name);
        for item in one.member("items").items() {
            add(&item.member("path"), format!("{kind} {}", quote(one.member("name").text())));
        }
    }
    for item in source.at("downwardAPI.items").items() {
        add(&item.member("path"), "DownwardAPI".to_owned());
    }
    add(&source.at("serviceAccountToken.path"), "ServiceAccountToken".to_owned());
    let bundle = source.member("clusterTrustBundle");
    let signer = if bundle.member("name").is_set() { "name" } else { "signerName" };
    add(&bundle.member("path"), format!("ClusterTrustBundle {}", quote(bundle.member(signer).text())));
    let certificate = source.member("podCertificate");
    add(&certificate.member("certificateChainPath"), "PodCertificate chain".to_owned());
    add(&certificate.member("keyPath"), "PodCertificate key".to_owned());
    add(&certificate.member("credentialBundlePath"), "PodCertificate credential bundle".to_owned());
}

struct File {
    path: String,
    source: String,
}

impl File {
    fn new(path: &str, source: String) -> File {
        File { path: path.trim_end_matches('/').to_owned(), source }
    }

    /// Whether one is the other, or is a folder that the other would be in.
    fn overlaps(&self, other: &File) -> bool {
        let (one, two) = (format!("{}/", self.path), format!("{}/", other.path));
        one.starts_with(&two) || two.starts_with(&one)
    }

    fn shown(&self) -> String {
        let path = quote(&self.path);
        if self.source.is_empty() { path } else { format!("{path} ({})", self.source) }
    }
}

fn tell(mut files: Vec<File>, volume: &str, description: &str, warnings: &mut Warnings) {
    files.retain(|file| !file.path.is_empty());
    for (index, file) in files.iter().enumerate() {
        for other in files[..index].iter().filter(|other| file.overlaps(other)) {
            let (file, other) = (file.shown(), other.shown());
            warnings.add(format!("volume {volume} ({description}): overlapping paths: {file} with {other}"));
        }
    }
}
