//! Where a project finds the crates of Windlass, which no registry has yet.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The repository of this program.
pub(crate) const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The source of Windlass, as a project names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A git repository.
    Git(String),
}

impl Source {
    /// What `--windlass` says; else the folder that this program was built from, if it is still there; else git.
    pub(crate) fn choose(asked: Option<&str>) -> Result<Self, Failure> {
        match asked {
            Some("git") => Ok(Self::Git(REPOSITORY.to_owned())),
            Some(url) if url.contains("://") => Ok(Self::Git(url.to_owned())),
            Some(path) => Self::folder(Path::new(path)).ok_or_else(|| {
                Failure::new(format!(
                    "{path}: not the source of Windlass, which has crates/windlass and crates/testkit"
                ))
                .advice("write --windlass with the folder of the source, the URL of a repository, or git")
            }),
            None => Ok(built_from().unwrap_or_else(|| Self::Git(REPOSITORY.to_owned()))),
        }
    }

    fn folder(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let has = |name: &str| path.join("crates").join(name).join("Cargo.toml").is_file();
        // A path that TOML, a Dockerfile and a shell would read in three ways is better not written down.
        let is_plain = path.to_str().is_some_and(|text| !text.contains(['"', '\\', '\n', ' ']));
        (has("windlass") && has("testkit") && is_plain).then_some(Self::Folder(path))
    }

    /// The fields of a dependency on one of the crates.
    pub(crate) fn dependency(&self, folder: &str) -> String {
        match self {
            Self::Folder(path) => format!("path = \"{}\"", path.join("crates").join(folder).display()),
            Self::Git(url) => format!("git = \"{url}\""),
        }
    }

    /// The versions of all dependencies that Windlass itself is tested with; only a folder has them at hand.
    pub(crate) fn lock(&self) -> Option<String> {
        match self {
            Self::Folder(path) => std::fs::read_to_string(path.join("Cargo.lock")).ok(),
            Self::Git(_) => None,
        }
    }
}

fn built_from() -> Option<Source> {
    let cli = Path::new(env!("CARGO_MANIFEST_DIR"));
    Source::folder(cli.parent()?.parent()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_what_was_asked_for_or_what_there_is() {
        assert_eq!(Source::choose(Some("git")).unwrap(), Source::Git(REPOSITORY.to_owned()));
        let fork = "https://git.example.com/fork";
        assert_eq!(Source::choose(Some(fork)).unwrap().dependency("windlass"), format!("git = \"{fork}\""));
        let here = Source::choose(None).unwrap();
        assert!(here.dependency("testkit").ends_with("/crates/testkit\""), "{here:?}");
        assert!(here.lock().is_some_and(|lock| lock.contains("name = \"k8s-openapi\"")));
        assert!(Source::choose(Some("/nowhere")).is_err());
    }
}
