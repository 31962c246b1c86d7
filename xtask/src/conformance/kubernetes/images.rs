//! The images of the tests' Pods, made of programs that are built from their Go modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::tools;
use crate::workspace::run;

/// An image of one program.
struct Image {
    /// The name by which the tests of the pinned release ask for it.
    name: &'static str,
    /// Where the program is in it.
    place: &'static str,
    arguments: &'static [&'static str],
    program: fn() -> Result<PathBuf>,
}

const IMAGES: [Image; 4] = [
    Image {
        name: "registry.k8s.io/e2e-test-images/agnhost:2.63.0",
        place: "agnhost",
        arguments: &["pause"],
        program: tools::agnhost,
    },
    // agnhost can wait as well as the program that does nothing else.
    Image { name: "registry.k8s.io/pause:3.10.2", place: "agnhost", arguments: &["pause"], program: tools::agnhost },
    Image {
        name: "registry.k8s.io/e2e-test-images/sample-apiserver:1.29.2",
        place: "sample-apiserver",
        arguments: &[],
        program: tools::sample_apiserver,
    },
    Image { name: "registry.k8s.io/etcd:3.6.8-0", place: "usr/local/bin/etcd", arguments: &[], program: tools::etcd },
];

/// Puts the images into the store of images below `cache`.
pub(super) fn add(windlass: &Path, scratch: &Path, cache: &Path) -> Result<()> {
    for (number, image) in IMAGES.iter().enumerate() {
        let folder = scratch.join("images").join(number.to_string());
        let rootfs = folder.join("rootfs");
        let program = rootfs.join(image.place);
        for directory in [&rootfs.join("tmp"), &rootfs.join("etc"), program.parent().unwrap_or(&rootfs)] {
            fs::create_dir_all(directory)?;
        }
        fs::copy((image.program)()?, &program)?;
        let config = serde_json::json!({
            "entrypoint": [format!("/{}", image.place)], "cmd": image.arguments, "env": [], "workdir": "/", "user": "",
            "stop_signal": null,
        });
        fs::write(folder.join("image.json"), config.to_string())?;
        run(Command::new(windlass).env("XDG_CACHE_HOME", cache).args(["image", "add", image.name]).arg(&folder))?;
        fs::remove_dir_all(&folder)?;
    }
    Ok(())
}
