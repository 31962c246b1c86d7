//! Makes images from Debian packages: finds the version, downloads the dependency closure, unpacks it without root.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use super::Progress;
use super::apt::Apt;
use super::installed::{self, Installed};
use super::layer::{self, Budget};
use super::recipe::{Recipe, recipe};
use super::reference::Reference;
use super::store::{ImageError, ImageStore, Record, doing};

/// What an image cannot do without; the rest comes by dependency.
pub(crate) const BASE: [&str; 2] = ["dash", "coreutils"];
/// Packages that only serve installation and administration of a machine: apt is told that they are there.
pub(crate) const ASSUMED: [&str; 22] = [
    "adduser",
    "cron",
    "debconf",
    "dpkg",
    "init-system-helpers",
    "install-info",
    "iproute2",
    "logrotate",
    "lsb-base",
    "lsb-release",
    "passwd",
    "perl",
    "perl-base",
    "postgresql-client-common",
    "postgresql-common",
    "ssl-cert",
    "systemd",
    "systemd-standalone-sysusers",
    "sysvinit-utils",
    "ucf",
    "usr-is-merged",
    "libpam-systemd",
];
/// Whether a tag asks for whatever version there is.
const ANY_TAGS: [&str; 5] = ["latest", "stable", "bookworm", "alpine", "slim"];
const SOURCE: &str = "debian";
/// What ends the names of images that are made without a mirror.
const INSTALLED: &str = "-installed";

/// True for images that this module made.
pub(crate) fn made(record: &Record) -> bool {
    record.source.starts_with(SOURCE)
}

/// Makes the image of a well-known name: from a mirror, or else from the packages that this machine has installed.
pub(crate) async fn make(
    store: &ImageStore,
    reference: &Reference,
    progress: Progress<'_>,
) -> Result<Record, ImageError> {
    let number = version_part(reference.tag());
    let major = number.and_then(|number| number.split('.').next());
    let Some(recipe) = recipe(reference.name(), major) else { return Err(unknown(store, reference)) };
    progress("looking for its Debian package".to_owned());
    match make_from_mirror(store, reference, &recipe, progress).await {
        Err(error @ (ImageError::Tool { .. } | ImageError::Io { .. })) => {
            let made = make_from_installed(store, reference, &recipe, progress).await?;
            made.ok_or_else(|| unreachable(reference, &recipe, &error))
        }
        other => other,
    }
}

async fn make_from_mirror(
    store: &ImageStore,
    reference: &Reference,
    recipe: &Recipe,
    progress: Progress<'_>,
) -> Result<Record, ImageError> {
    let wanted: Vec<&str> = recipe.extra.iter().copied().chain([recipe.package.as_str()]).collect();
    let apt = Apt::open(store, &wanted).await?;
    let listed = apt.update().await;
    let Some(version) = apt.version(&recipe.package).await? else {
        return Err(match listed {
            Ok(()) => unknown(store, reference),
            Err(error) => error,
        });
    };
    if !tag_matches(reference.tag(), &version) {
        return Err(wrong_version(store, reference, recipe, &version));
    }
    let record = record(reference, recipe, &version);
    if store.content(&record.id).join("rootfs").is_dir() {
        return Ok(record);
    }
    let archives = apt.download(&wanted, progress).await?;
    drop(apt);
    progress(format!("unpacking {} packages", archives.len()));
    let unpack = move |rootfs: &Path| archives.iter().try_for_each(|archive| unpack_package(archive, rootfs));
    publish(store, record, recipe, unpack).await
}

/// `None` if the machine does not have the package in the version asked for.
async fn make_from_installed(
    store: &ImageStore,
    reference: &Reference,
    recipe: &Recipe,
    progress: Progress<'_>,
) -> Result<Option<Record>, ImageError> {
    let installed = tokio::task::spawn_blocking(Installed::read).await.expect("reading does not panic");
    let Some(version) = installed.version(&recipe.package).filter(|version| tag_matches(reference.tag(), version))
    else {
        return Ok(None);
    };
    let mut record = record(reference, recipe, version);
    record.id.push_str(INSTALLED);
    let wanted: Vec<&str> =
        BASE.into_iter().chain(recipe.extra.iter().copied()).chain([recipe.package.as_str()]).collect();
    let packages = installed.closure(&wanted, &ASSUMED);
    progress(format!("no mirror can be reached: copying {} packages of this machine", packages.len()));
    let copy = move |rootfs: &Path| installed::copy(&packages, rootfs).map_err(doing("copy installed packages"));
    publish(store, record, recipe, copy).await.map(Some)
}

fn record(reference: &Reference, recipe: &Recipe, version: &str) -> Record {
    let name = format!("debian-{}-{}-{}", reference.name(), version.replace([':', '/'], "_"), recipe_hash(recipe));
    Record { id: name, config: recipe.config.clone(), source: format!("{SOURCE} {} {version}", recipe.package) }
}

async fn publish(
    store: &ImageStore,
    record: Record,
    recipe: &Recipe,
    unpack: impl FnOnce(&Path) -> Result<(), ImageError> + Send + 'static,
) -> Result<Record, ImageError> {
    let (store, id, recipe) = (store.clone(), record.id.clone(), recipe.clone());
    let fill = move |rootfs: &Path| {
        skeleton(rootfs).map_err(doing("prepare the image"))?;
        unpack(rootfs)?;
        finish(rootfs, &recipe).map_err(doing("finish the image"))
    };
    let published = tokio::task::spawn_blocking(move || store.publish(&id, fill)).await;
    published.expect("unpacking does not panic").map(|()| record)
}

fn unreachable(reference: &Reference, recipe: &Recipe, error: &ImageError) -> ImageError {
    let said = error.to_string();
    let first = said.lines().next().unwrap_or_default();
    ImageError::Unreachable(format!(
        "image {:?} cannot be made now: {first}. It is made from the Debian package {package}: make a mirror reachable, \
         install the package on this machine (`apt-get install {package}`), or add the image from an archive or directory \
         with `windlass image add {reference} PATH`",
        reference.to_string(),
        package = recipe.package,
    ))
}

fn unknown(store: &ImageStore, reference: &Reference) -> ImageError {
    let tags = store.tags(reference.name());
    let stored = if tags.is_empty() { String::new() } else { format!("; the store has the tags {}", tags.join(", ")) };
    ImageError::NotFound(format!(
        "image {:?} does not exist: there is no Debian package of that name{stored}. Add it from an archive or directory \
         with `windlass image add {reference} PATH`, or use image `host` with an absolute command",
        reference.to_string()
    ))
}

fn wrong_version(store: &ImageStore, reference: &Reference, recipe: &Recipe, version: &str) -> ImageError {
    let upstream = upstream(version);
    let tags = store.tags(reference.name());
    let stored = if tags.is_empty() { String::new() } else { format!(" (in the store: {})", tags.join(", ")) };
    ImageError::NotFound(format!(
        "image {:?} does not exist: the Debian package {} has version {upstream}, so {name}:{upstream} or {name}:latest can \
         be had{stored}. Use one of them, or add your own with `windlass image add {reference} PATH`",
        reference.to_string(),
        recipe.package,
        name = reference.name(),
    ))
}

/// `7.0.15` of `5:7.0.15-1~deb12u10`.
fn upstream(version: &str) -> &str {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    let version = version.rsplit_once('-').map_or(version, |(upstream, _)| upstream);
    version.split(['+', '~']).next().unwrap_or(version)
}

/// The number of a tag such as `1.6-alpine` or `v1.6`, if it has one.
fn version_part(tag: &str) -> Option<&str> {
    let number = tag.strip_prefix('v').unwrap_or(tag).split('-').next()?;
    number.starts_with(|c: char| c.is_ascii_digit()).then_some(number)
}

/// `1.6` is 1.6 and every 1.6.x, and nothing else.
fn tag_matches(tag: &str, version: &str) -> bool {
    let Some(number) = version_part(tag) else { return ANY_TAGS.contains(&tag.split('-').next().unwrap_or(tag)) };
    let upstream = upstream(version);
    upstream == number || upstream.strip_prefix(number).is_some_and(|rest| rest.starts_with('.'))
}

/// Whether an image was made as it would be made now.
pub(crate) fn is_current(reference: &Reference, record: &Record) -> bool {
    let major = version_part(reference.tag()).and_then(|number| number.split('.').next());
    let hash = recipe(reference.name(), major).map(|recipe| recipe_hash(&recipe));
    let made = record.id.strip_suffix(INSTALLED).unwrap_or(&record.id);
    hash.is_some_and(|hash| made.ends_with(&format!("-{hash}")))
}

/// A change of the recipe makes a new image.
fn recipe_hash(recipe: &Recipe) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(format!("{recipe:?}{BASE:?}{ASSUMED:?}"));
    hex::encode(&digest[..6])
}

/// The directories that a merged /usr has, before any package.
fn skeleton(rootfs: &Path) -> io::Result<()> {
    for directory in
        ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/local/bin", "etc", "proc", "sys", "dev", "run", "root"]
    {
        fs::create_dir_all(rootfs.join(directory))?;
    }
    for link in ["bin", "sbin", "lib", "lib64"] {
        symlink(Path::new("usr").join(link), rootfs.join(link))?;
    }
    for shared in ["tmp", "var/tmp"] {
        fs::create_dir_all(rootfs.join(shared))?;
        fs::set_permissions(rootfs.join(shared), Permissions::from_mode(0o1777))?;
    }
    symlink("/run", rootfs.join("var/run"))
}

/// Unpacks a package over the files of an image.
pub(crate) fn unpack_package(archive: &Path, rootfs: &Path) -> Result<(), ImageError> {
    let step = || format!("unpack {}", archive.display());
    let mut child = std::process::Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(archive)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(doing("run dpkg-deb"))?;
    let stream = child.stdout.take().expect("standard output is a pipe");
    let stream = io::BufReader::with_capacity(1 << 16, stream);
    let unpacked = layer::unpack(stream, rootfs, &mut Budget::default()).map_err(doing(step()));
    let status = child.wait().map_err(doing(step()))?;
    unpacked?;
    if status.success() { Ok(()) } else { Err(ImageError::Tool { step: "unpack a package", output: step() }) }
}

fn finish(rootfs: &Path, recipe: &Recipe) -> io::Result<()> {
    let inside = |path: &str| rootfs.join(path.trim_start_matches('/'));
    if !inside("/usr/bin/sh").exists() {
        symlink("dash", inside("/usr/bin/sh"))?;
    }
    let mut users = vec![("root", 0), ("nobody", 65534)];
    users.extend(recipe.users.iter().copied());
    let passwd: String = users.iter().map(|(name, id)| format!("{name}:x:{id}:{id}:{name}:/:/bin/sh\n")).collect();
    let group: String = users.iter().map(|(name, id)| format!("{name}:x:{id}:\n")).collect();
    fs::write(inside("/etc/passwd"), passwd)?;
    fs::write(inside("/etc/group"), group)?;
    fs::write(inside("/etc/nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files dns\n")?;
    for (path, content, mode) in &recipe.files {
        fs::create_dir_all(inside(path).parent().expect("recipe paths are below /"))?;
        fs::write(inside(path), content)?;
        fs::set_permissions(inside(path), Permissions::from_mode(*mode))?;
    }
    for (path, target) in &recipe.links {
        fs::create_dir_all(inside(path).parent().expect("recipe paths are below /"))?;
        let _ = fs::remove_file(inside(path));
        symlink(target, inside(path))?;
    }
    for (path, owner, mode) in &recipe.directories {
        let directory = rootfs.join(crate::sandbox::resolve(rootfs, Path::new(path))?);
        fs::create_dir_all(&directory)?;
        fs::set_permissions(&directory, Permissions::from_mode(*mode))?;
        let id = users.iter().find(|(name, _)| name == owner).map_or(0, |(_, id)| *id);
        // Only root can give files away; for anybody else the image has one user anyway.
        let _ = std::os::unix::fs::chown(&directory, Some(id), Some(id));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_of_another_recipe_is_not_current() {
        let reference: Reference = "memcached:1.6".parse().unwrap();
        let recipe = recipe("memcached", None).unwrap();
        let mut other = record(&reference, &recipe, "1.6.18-1");
        assert!(is_current(&reference, &other));
        other.id.push_str(INSTALLED);
        assert!(is_current(&reference, &other));
        other.id = "debian-memcached-1.6.18-1-000000000000".to_owned();
        assert!(!is_current(&reference, &other));
    }

    #[test]
    fn a_tag_is_a_version_or_its_beginning() {
        let check = |tag: &str, version: &str, expect: bool| {
            assert_eq!(tag_matches(tag, version), expect, "{tag} and {version}");
        };
        check("1.6", "1.6.18-1+deb12u1", true);
        check("1.6.18", "1.6.18-1+deb12u1", true);
        check("1.6-alpine", "1.6.18-1+deb12u1", true);
        check("latest", "1.6.18-1", true);
        check("1", "1.6.18-1", true);
        check("7", "5:7.0.15-1~deb12u10", true);
        check("15", "15+248+deb12u1", true);
        check("12", "12.4+deb12u11", true);
        check("1.60", "1.6.18-1", false);
        check("9.9", "1.6.18-1", false);
        check("1.6.1", "1.6.18-1", false);
        check("nonsense", "1.6.18-1", false);
    }
}
