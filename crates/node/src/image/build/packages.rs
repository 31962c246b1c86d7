//! Debian packages that a RUN wants: they are fetched and unpacked as for images of their own, as the sandbox has no apt.

use std::path::Path;

use crate::image::apt::Apt;
use crate::image::debian::unpack_package;
use crate::image::{ImageStore, Progress};

/// The packages that a command installs with apt, if that is all it does.
pub(super) fn wanted(command: &str) -> Option<Vec<String>> {
    let mut packages = Vec::new();
    for part in command.split("&&").flat_map(|part| part.split(';')) {
        let words: Vec<&str> = part.split_whitespace().skip_while(|word| is_assignment(word)).collect();
        match words.as_slice() {
            [] => {}
            ["rm", flags, paths @ ..] if flags.starts_with("-r") && paths.iter().all(|path| is_left_by_apt(path)) => {}
            ["apt-get" | "apt", rest @ ..] => {
                let mut plain = rest.iter().filter(|word| !word.starts_with('-'));
                match plain.next() {
                    Some(&"install") => packages.extend(plain.map(|&word| word.to_owned())),
                    Some(&("update" | "clean" | "autoclean" | "autoremove")) => {}
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
    let plain = packages.iter().all(|package| package.chars().all(|c| c.is_ascii_alphanumeric() || "+-.:".contains(c)));
    (plain && !packages.is_empty()).then_some(packages)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

fn is_left_by_apt(path: &str) -> bool {
    path.starts_with("/var/lib/apt/") || path.starts_with("/var/cache/apt/")
}

/// Puts packages, and what they need, into the files of a stage. Their scripts are not run.
pub(super) async fn install(
    store: &ImageStore,
    packages: &[String],
    rootfs: &Path,
    progress: Progress<'_>,
) -> Result<(), String> {
    let names: Vec<&str> = packages.iter().map(String::as_str).collect();
    let apt = Apt::open(store, &names).await.map_err(|error| error.to_string())?;
    let listed = apt.update().await;
    for name in &names {
        let found = apt.version(name).await.map_err(|error| error.to_string())?;
        if found.is_none() {
            let why = listed.as_ref().err().map(|error| format!(" ({error})")).unwrap_or_default();
            return Err(format!("there is no Debian package {name:?}{why}"));
        }
    }
    let archives = apt.download(&names, progress).await.map_err(|error| error.to_string())?;
    progress(format!("unpacking {} packages", archives.len()));
    let rootfs = rootfs.to_owned();
    let unpacked =
        tokio::task::spawn_blocking(move || archives.iter().try_for_each(|archive| unpack_package(archive, &rootfs)));
    unpacked.await.expect("unpacking does not panic").map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_installations_are_understood() {
        let check = |command: &str, expect: Option<&[&str]>| {
            let expect = expect.map(|names| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
            assert_eq!(wanted(command), expect, "{command}");
        };
        check("apt-get update && apt-get install -y --no-install-recommends curl jq", Some(&["curl", "jq"]));
        check(
            "DEBIAN_FRONTEND=noninteractive apt-get install -yq curl && rm -rf /var/lib/apt/lists/*",
            Some(&["curl"]),
        );
        check("apt-get update; apt install curl; apt-get clean", Some(&["curl"]));
        check("apt-get update", None);
        check("apt-get install -y curl && echo done", None);
        check("apt-get install -y $PACKAGES", None);
        check("echo apt-get install curl", None);
        check("apt-get install curl && rm -rf /", None);
    }
}
