//! Makes images from Debian packages: finds the version, downloads the dependency closure, unpacks it without root.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::recipe::{Recipe, recipe};
use super::reference::Reference;
use super::store::{ImageError, ImageStore, Record, doing};
use super::{Progress, layer};

/// Lists of packages older than this are fetched again.
const LISTS_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// What an image cannot do without; the rest comes by dependency.
const BASE: [&str; 2] = ["dash", "coreutils"];
/// Packages that only serve installation and administration of a machine: apt is told that they are there.
const ASSUMED: [&str; 22] = [
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
const OUTPUT_BYTES_MAX: usize = 2000;

/// True for images that this module made.
pub(crate) fn made(record: &Record) -> bool {
    record.source.starts_with(SOURCE)
}

/// Makes the image of a well-known name.
pub(crate) async fn make(
    store: &ImageStore,
    reference: &Reference,
    progress: Progress<'_>,
) -> Result<Record, ImageError> {
    let number = version_part(reference.tag());
    let major = number.and_then(|number| number.split('.').next());
    let Some(recipe) = recipe(reference.name(), major) else { return Err(unknown(store, reference)) };
    progress("looking for its Debian package".to_owned());
    let apt = Apt::open(store, &recipe).await?;
    let listed = apt.update().await;
    let Some(version) = apt.version(&recipe.package).await? else {
        return Err(match listed {
            Ok(()) => unknown(store, reference),
            Err(error) => error,
        });
    };
    if !tag_matches(reference.tag(), &version) {
        return Err(wrong_version(store, reference, &recipe, &version));
    }
    let id = format!("debian-{}-{}-{}", reference.name(), version.replace([':', '/'], "_"), recipe_hash(&recipe));
    let record = Record {
        id: id.clone(),
        config: recipe.config.clone(),
        source: format!("{SOURCE} {} {version}", recipe.package),
    };
    if store.content(&id).join("rootfs").is_dir() {
        return Ok(record);
    }
    let archives = apt.download(&recipe, progress).await?;
    drop(apt);
    let (store, count) = (store.clone(), archives.len());
    progress(format!("unpacking {count} packages"));
    let unpacked = tokio::task::spawn_blocking(move || store.publish(&id, |rootfs| fill(rootfs, &archives, &recipe)));
    unpacked.await.expect("unpacking does not panic")?;
    Ok(record)
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

/// A change of the recipe makes a new image.
fn recipe_hash(recipe: &Recipe) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(format!("{recipe:?}{BASE:?}{ASSUMED:?}"));
    hex::encode(&digest[..6])
}

/// apt with a state of its own inside the store, usable by any user.
struct Apt {
    directory: PathBuf,
    /// Taken from the host if no mirror can be reached.
    host_lists: std::sync::atomic::AtomicBool,
    _lock: fs::File,
}

impl Apt {
    async fn open(store: &ImageStore, recipe: &Recipe) -> Result<Self, ImageError> {
        let lock = store.lock_file("apt").await?;
        let directory = store.directory().join("apt");
        let prepare = || -> io::Result<()> {
            for part in ["state/lists/partial", "cache/archives/partial", "none/partial"] {
                fs::create_dir_all(directory.join(part))?;
            }
            fs::write(directory.join("state/status"), assumed_status(&recipe.package))
        };
        prepare().map_err(doing(format!("prepare {}", directory.display())))?;
        Ok(Self { directory, host_lists: false.into(), _lock: lock })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let state = self.directory.join("state");
        let option = |key: &str, value: &Path| format!("{key}={}", value.display());
        command.args(["-o", &option("Dir::State", &state), "-o", &option("Dir::State::status", &state.join("status"))]);
        command.args(["-o", &option("Dir::Cache", &self.directory.join("cache"))]);
        command.args(["-o", "APT::Sandbox::User=", "-o", "Acquire::Languages=none", "-o", "APT::Get::Assume-Yes=true"]);
        // Hooks of the host (cleaning its cache, telling its desktop) are not ours to run.
        command.args([
            "-o",
            "APT::Update::Post-Invoke=",
            "-o",
            "DPkg::Post-Invoke=",
            "-o",
            "APT::Keep-Downloaded-Packages=true",
        ]);
        if self.host_lists.load(std::sync::atomic::Ordering::Relaxed) {
            command.args(["-o", "Dir::State::lists=/var/lib/apt/lists", "-o", "Debug::NoLocking=true"]);
        }
        command.env("LC_ALL", "C").stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Fetches the lists of packages if they are old; falls back to those of the host.
    async fn update(&self) -> Result<(), ImageError> {
        let stamp = self.directory.join("updated");
        let age = fs::metadata(&stamp)
            .and_then(|m| m.modified())
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_some_and(|age| age < LISTS_AGE_MAX) {
            return Ok(());
        }
        let mut command = self.command("apt-get");
        command.args(["-q", "-o", "Acquire::http::Timeout=20", "-o", "APT::Update::Error-Mode=any", "update"]);
        match output(command, "fetch the lists of Debian packages").await {
            Ok(_) => fs::write(&stamp, "").map_err(doing(format!("write {}", stamp.display()))),
            Err(error) => {
                // One broken third-party source must not hide the packages of the others.
                let usable = self.version("libc6").await.is_ok_and(|found| found.is_some());
                self.host_lists.store(!usable, std::sync::atomic::Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// The version of a package that would be installed; none if it does not exist.
    async fn version(&self, package: &str) -> Result<Option<String>, ImageError> {
        let mut command = self.command("apt-cache");
        command.args(["policy", package]);
        let text = output(command, "look for the package").await?;
        let candidate = text.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
        Ok(candidate.filter(|version| *version != "(none)").map(str::to_owned))
    }

    /// Downloads a package with its dependencies; the archives, in order.
    async fn download(&self, recipe: &Recipe, progress: Progress<'_>) -> Result<Vec<PathBuf>, ImageError> {
        let packages = || BASE.iter().copied().chain(recipe.extra.iter().copied()).chain([recipe.package.as_str()]);
        let mut command = self.command("apt-get");
        // What is in the archive directory already is not listed: the list is made with an empty one.
        command.arg("-o").arg(format!("Dir::Cache::archives={}", self.directory.join("none").display()));
        command.args(["-qq", "--no-install-recommends", "--print-uris", "install"]).args(packages());
        let uris = output(command, "work out the dependencies").await?;
        let names: Vec<&str> = uris.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        progress(format!("downloading {} packages", names.len()));
        let mut command = self.command("apt-get");
        command.args(["-q", "--no-install-recommends", "--download-only", "-o", "APT::Status-Fd=1", "install"]);
        command.args(packages()).stdout(Stdio::piped()).stderr(Stdio::piped());
        watch_download(command, progress).await?;
        Ok(names.iter().map(|name| self.directory.join("cache/archives").join(name)).collect())
    }
}

async fn watch_download(mut command: Command, progress: Progress<'_>) -> Result<(), ImageError> {
    const STEP: &str = "download packages";
    let mut child = command.spawn().map_err(doing("run apt-get"))?;
    let stdout = child.stdout.take().expect("standard output is a pipe");
    let stderr = child.stderr.take().expect("standard error is a pipe");
    let errors = tokio::spawn(async move {
        let mut text = Vec::new();
        let _ = tokio::io::AsyncReadExt::read_to_end(
            &mut tokio::io::AsyncReadExt::take(stderr, OUTPUT_BYTES_MAX as u64),
            &mut text,
        )
        .await;
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(percent) = line.strip_prefix("dlstatus:").and_then(|rest| rest.split(':').nth(1)) {
            progress(format!("downloading packages: {}%", percent.split('.').next().unwrap_or(percent)));
        }
    }
    let status = child.wait().await.map_err(doing("run apt-get"))?;
    let errors = errors.await.unwrap_or_default();
    if status.success() { Ok(()) } else { Err(ImageError::Tool { step: STEP, output: errors.trim().to_owned() }) }
}

async fn output(mut command: Command, step: &'static str) -> Result<String, ImageError> {
    let done = match command.output().await {
        Ok(done) => done,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ImageError::NotFound(
                "images are made from Debian packages, but this machine has no apt: add the image from an archive or directory \
                 with `windlass image add NAME PATH`"
                    .to_owned(),
            ));
        }
        Err(error) => return Err(doing(step)(error)),
    };
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said: String = said.trim().chars().take(OUTPUT_BYTES_MAX).collect();
    Err(ImageError::Tool { step, output: said })
}

fn assumed_status(wanted: &str) -> String {
    let entry = |package: &&str| {
        // Only `allowed` satisfies a dependency on `perl:any`.
        let multi = if *package == "perl" { "allowed" } else { "foreign" };
        let provides = if *package == "debconf" { "Provides: debconf-2.0\n" } else { "" };
        format!(
            "Package: {package}\nStatus: install ok installed\nArchitecture: all\nMulti-Arch: {multi}\nVersion: 9999\n\
             {provides}Description: assumed\n\n"
        )
    };
    ASSUMED.iter().filter(|package| **package != wanted).map(entry).collect()
}

fn fill(rootfs: &Path, archives: &[PathBuf], recipe: &Recipe) -> Result<(), ImageError> {
    skeleton(rootfs).map_err(doing("prepare the image"))?;
    for archive in archives {
        unpack_package(archive, rootfs)?;
    }
    finish(rootfs, recipe).map_err(doing("finish the image"))
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

fn unpack_package(archive: &Path, rootfs: &Path) -> Result<(), ImageError> {
    let step = || format!("unpack {}", archive.display());
    let mut child = std::process::Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(archive)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(doing("run dpkg-deb"))?;
    let stream = child.stdout.take().expect("standard output is a pipe");
    let unpacked = layer::unpack(io::BufReader::with_capacity(1 << 16, stream), rootfs).map_err(doing(step()));
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
