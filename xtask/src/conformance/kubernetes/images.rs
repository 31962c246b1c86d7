//! The images of the tests' Pods, made of Debian packages and of programs that are built from their Go modules.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tools::{self, KUBERNETES};
use crate::workspace::{root, run};

/// An image.
struct Image {
    /// The name by which the tests of the pinned release ask for it.
    name: &'static str,
    /// What is in it.
    content: Content,
    /// Programs that are built.
    programs: &'static [BuiltProgram],
    /// Files of the release's own image: where they are in it, and in the module of the release.
    files: &'static [(&'static str, &'static str)],
    entrypoint: &'static [&'static str],
    arguments: &'static [&'static str],
}

/// Where a program is in an image, its mode, and what builds it.
type BuiltProgram = (&'static str, u32, fn() -> Result<PathBuf>);

/// What an image has beside programs of its own.
#[derive(Clone, Copy)]
enum Content {
    /// Nothing.
    Bare,
    /// busybox, by all its names.
    Busybox,
    /// These Debian packages, and the names of busybox that they leave free.
    Packages(&'static [&'static str]),
}

/// What the tests do in the image of their own program: ask for pages and names, and speak TCP and UDP by hand.
const AGNHOST: Content = Content::Packages(&["curl", "bind9-dnsutils", "netcat-openbsd", "libc-bin"]);
const AGNHOST_FILES: [(&str, &str); 2] = [
    ("localhost.crt", "test/images/agnhost/porter/localhost.crt"),
    ("localhost.key", "test/images/agnhost/porter/localhost.key"),
];
const NAUTILUS_FILES: [(&str, &str); 2] =
    [("data.json", "test/images/nautilus/html/data.json"), ("nautilus.jpg", "test/images/nautilus/html/nautilus.jpg")];

const IMAGES: [Image; 11] = [
    agnhost("registry.k8s.io/e2e-test-images/agnhost:2.63.0", &AGNHOST_FILES, &["pause"]),
    agnhost("registry.k8s.io/e2e-test-images/agnhost:2.55", &AGNHOST_FILES, &["pause"]),
    agnhost("registry.k8s.io/e2e-test-images/nautilus:1.8", &NAUTILUS_FILES, &["test-webserver"]),
    // agnhost can wait as well as the program that does nothing else.
    program("registry.k8s.io/pause:3.10.2", &[("agnhost", 0o755, tools::agnhost)], &["/agnhost", "pause"]),
    program(
        "registry.k8s.io/e2e-test-images/sample-apiserver:1.29.2",
        &[("sample-apiserver", 0o755, tools::sample_apiserver)],
        &["/sample-apiserver"],
    ),
    program("registry.k8s.io/etcd:3.6.8-0", &[("usr/local/bin/etcd", 0o755, tools::etcd)], &["/usr/local/bin/etcd"]),
    packaged("registry.k8s.io/e2e-test-images/busybox:1.37.0-1", Content::Busybox, &["sh"]),
    packaged("registry.k8s.io/e2e-test-images/glibc-dns-testing:2.0.0", AGNHOST, &["sh"]),
    packaged("registry.k8s.io/e2e-test-images/nginx:1.15-4", NGINX, &["nginx", "-g", "daemon off;"]),
    packaged("registry.k8s.io/e2e-test-images/nginx:1.27-0", NGINX, &["nginx", "-g", "daemon off;"]),
    // It asks who it is, and belongs to root, in whose name it runs if the kernel lets it.
    Image {
        content: Content::Busybox,
        ..program(
            "registry.k8s.io/e2e-test-images/nonewprivs:1.4",
            &[("usr/local/bin/nnp", 0o4755, tools::nonewprivs)],
            &["/usr/local/bin/nnp"],
        )
    },
];
const NGINX: Content = Content::Packages(&["nginx"]);

const fn agnhost(
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    arguments: &'static [&'static str],
) -> Image {
    const PROGRAMS: [BuiltProgram; 2] = [("agnhost", 0o755, tools::agnhost), ("agnhost-2", 0o755, tools::agnhost)];
    Image { name, content: AGNHOST, programs: &PROGRAMS, files, entrypoint: &["/agnhost"], arguments }
}

const fn program(name: &'static str, programs: &'static [BuiltProgram], entrypoint: &'static [&'static str]) -> Image {
    Image { name, content: Content::Bare, programs, files: &[], entrypoint, arguments: &[] }
}

const fn packaged(name: &'static str, content: Content, arguments: &'static [&'static str]) -> Image {
    Image { name, content, programs: &[], files: &[], entrypoint: &[], arguments }
}

/// Users besides root that the tests know by number and by name.
const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/bin/sh\n\
    user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";
const GROUPS: &str = "root:x:0:\nwww-data:x:33:\nuser-defined-in-image:x:1000:\nnobody:x:65534:\n\
    group-defined-in-image:x:50000:user-defined-in-image\n";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Raised when images are made otherwise, so that those of before are made again.
const EDITION: u32 = 1;

/// Puts the images that are not there yet into the store of images below `cache`.
pub(super) fn add(windlass: &Path, scratch: &Path, cache: &Path) -> Result<()> {
    let packages = Packages { windlass, cache: root().join("target/conformance/packages") };
    let source = tools::kubernetes_source()?;
    let made = cache.join(format!("made-{KUBERNETES}-{EDITION}"));
    fs::create_dir_all(&made)?;
    for (number, image) in IMAGES.iter().enumerate() {
        let mark = made.join(image.name.replace(['/', ':'], "-"));
        if mark.is_file() {
            continue;
        }
        let folder = scratch.join("images").join(number.to_string());
        let rootfs = folder.join("rootfs");
        fill(&rootfs, image, &packages, &source).with_context(|| format!("cannot make the image {}", image.name))?;
        let config = serde_json::json!({
            "entrypoint": image.entrypoint, "cmd": image.arguments, "env": [["PATH", PATH]], "workdir": "/", "user": "",
            "stop_signal": null,
        });
        fs::write(folder.join("image.json"), config.to_string())?;
        run(Command::new(windlass).env("XDG_CACHE_HOME", cache).args(["image", "add", image.name]).arg(&folder))?;
        fs::remove_dir_all(&folder)?;
        fs::write(mark, "")?;
    }
    Ok(())
}

fn fill(rootfs: &Path, image: &Image, packages: &Packages<'_>, source: &Path) -> Result<()> {
    for folder in ["tmp", "etc", "bin", "root", "uploads"] {
        fs::create_dir_all(rootfs.join(folder))?;
    }
    fs::set_permissions(rootfs.join("tmp"), Permissions::from_mode(0o1777))?;
    if let Content::Packages(names) = image.content {
        // Debian's /bin is a link.
        fs::remove_dir(rootfs.join("bin"))?;
        names.iter().try_for_each(|name| packages.copy(name, rootfs))?;
        if rootfs.join("bin/nc.openbsd").exists() {
            symlink("nc.openbsd", rootfs.join("bin/nc"))?;
        }
    }
    if matches!(image.content, Content::Busybox) {
        packages.shell(rootfs)?;
    }
    if !matches!(image.content, Content::Bare) {
        packages.busybox(rootfs)?;
    }
    fs::write(rootfs.join("etc/passwd"), USERS)?;
    fs::write(rootfs.join("etc/group"), GROUPS)?;
    for (place, mode, program) in image.programs {
        let place = rootfs.join(place);
        fs::create_dir_all(place.parent().unwrap_or(rootfs))?;
        fs::copy(program()?, &place)?;
        fs::set_permissions(&place, Permissions::from_mode(*mode))?;
    }
    for (place, file) in image.files {
        fs::copy(source.join(file), rootfs.join(place)).with_context(|| format!("no {file} in the release"))?;
        fs::set_permissions(rootfs.join(place), Permissions::from_mode(0o644))?;
    }
    Ok(())
}

/// Debian packages as images of their own, made once.
struct Packages<'a> {
    windlass: &'a Path,
    cache: PathBuf,
}

impl Packages<'_> {
    /// Adds the files of a package, and of what it needs, to `rootfs`.
    fn copy(&self, name: &str, rootfs: &Path) -> Result<()> {
        let files = self.files(name)?.join(".");
        run(Command::new("cp").args(["-a", "--remove-destination"]).arg(files).arg(rootfs))
    }

    /// Adds a shell to `rootfs` that passes on variables whatever their names, as the newer busybox of the tests does.
    fn shell(&self, rootfs: &Path) -> Result<()> {
        fs::copy(self.files("bash-static")?.join("bin/bash-static"), rootfs.join("bin/sh")).map(drop)?;
        Ok(())
    }

    /// Adds busybox to `rootfs`, and its names as far as nothing has them.
    fn busybox(&self, rootfs: &Path) -> Result<()> {
        let program = self.files("busybox")?.join("bin/busybox");
        let bin = rootfs.join("bin");
        fs::copy(&program, bin.join("busybox"))?;
        let names = Command::new(&program).arg("--list").output()?;
        ensure!(names.status.success(), "busybox does not say what it can do");
        let places = ["bin", "sbin", "usr/bin", "usr/sbin"].map(|place| rootfs.join(place));
        for name in String::from_utf8(names.stdout)?.lines() {
            if places.iter().all(|place| place.join(name).symlink_metadata().is_err()) {
                symlink("/bin/busybox", bin.join(name))?;
            }
        }
        Ok(())
    }

    /// The files of a package.
    fn files(&self, name: &str) -> Result<PathBuf> {
        let reference = format!("{name}:latest");
        let place = self.cache.join("windlass/images");
        let record = place.join("refs").join(format!("{name}@latest"));
        if !record.is_file() {
            println!("conformance: making the image of the Debian package {name} (once)");
            fs::create_dir_all(&self.cache)?;
            run(Command::new(self.windlass).env("XDG_CACHE_HOME", &self.cache).args(["image", "add", &reference]))?;
        }
        let record: serde_json::Value = serde_json::from_slice(&fs::read(&record)?)?;
        let id = record["id"].as_str().with_context(|| format!("the image {reference} has no id"))?;
        Ok(place.join("content").join(id).join("rootfs"))
    }
}
