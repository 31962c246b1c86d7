//! Fills a folder with the programs that envtest looks for in `KUBEBUILDER_ASSETS`.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::arguments::EnvtestOptions;
use crate::envtest::NAMES;
use crate::failure::Failure;

/// The kubectl that `cargo xtask tools` builds, below the user's cache.
const BUILT_KUBECTL: &str = "windlass/tools/kubectl-1.36.3";

/// Runs the command; the last line of output is for `export`.
pub(crate) fn run(options: &EnvtestOptions) -> Result<(), Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
    fs::create_dir_all(&options.dir).map_err(|error| unusable(&options.dir, &error))?;
    let folder = options.dir.canonicalize().map_err(|error| unusable(&options.dir, &error))?;
    let kubectl = match &options.kubectl {
        Some(path) if !path.is_file() => return Err(Failure::new(format!("there is no {}", path.display()))),
        Some(path) => Some(path.clone()),
        None => kubectl(&folder),
    };
    for name in NAMES {
        let source = kubectl.as_ref().filter(|_| name == "kubectl").unwrap_or(&program);
        place(source, &folder.join(name))?;
    }
    match &kubectl {
        Some(path) => eprintln!("kube-apiserver, etcd and kubectl ({}) are in {}", path.display(), folder.display()),
        None => {
            eprintln!("kube-apiserver and etcd are in {}", folder.display());
            eprintln!("no kubectl was found: the one there is this program, which knows its main commands");
        }
    }
    // The reader of this line may have seen enough.
    writeln!(std::io::stdout(), "KUBEBUILDER_ASSETS={}", quoted(&folder.display().to_string())).ok();
    Ok(())
}

/// The kubectl of the pinned release if it was built, else the first on the PATH that is not in `folder` itself.
fn kubectl(folder: &Path) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()).or(home);
    let built = cache.map(|cache| cache.join(BUILT_KUBECTL));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let elsewhere = std::env::split_paths(&path).filter(|dir| dir.canonicalize().is_ok_and(|dir| dir != folder));
    let candidates = built.into_iter().chain(elsewhere.map(|dir| dir.join("kubectl")));
    candidates.into_iter().filter_map(|path| path.canonicalize().ok()).find(|path| path.is_file())
}

/// A second name for `source`; a copy where the file system cannot give one.
///
/// Neither breaks when the original is moved, replaced or deleted, and the folder can be copied elsewhere as it is.
fn place(source: &Path, target: &Path) -> Result<(), Failure> {
    let mut partial = target.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(partial);
    let linked = fs::hard_link(source, &partial).or_else(|error| match error.kind() {
        ErrorKind::NotFound => Err(error),
        _ => fs::copy(source, &partial).map(drop),
    });
    let placed = linked.and_then(|()| fs::rename(&partial, target));
    // Renaming one name of a file over another name of it does nothing, so the first may be left.
    fs::remove_file(&partial).ok();
    placed.map_err(|error| unusable(target, &error))
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

/// A word that a shell reads as it is.
fn quoted(text: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-+@".contains(character);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_shells() {
        assert_eq!(quoted("/a/b-1.x"), "/a/b-1.x");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
