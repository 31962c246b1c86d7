//! The image store: a directory that several instances share, safe against crashes and concurrent use.
//!
//! `refs/NAME@TAG` is a JSON record that names a directory `content/ID` with a `rootfs`. Both appear by rename, so
//! that a reader never sees half an image; content is never changed once it is there.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::layer::Budget;
use super::reference::{Reference, ReferenceError};
use super::{Progress, archive, debian};

/// What an image says about how it is run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConfig {
    /// The program that runs, before any arguments.
    pub entrypoint: Vec<String>,
    /// Its arguments, or the program if there is no entrypoint.
    pub cmd: Vec<String>,
    /// Its environment.
    pub env: Vec<(String, String)>,
    /// Its working directory.
    pub workdir: String,
    /// Who it runs as (`name`, `uid` or `user:group`); empty means root.
    pub user: String,
    /// The signal that asks it to end, if not SIGTERM.
    pub stop_signal: Option<String>,
    /// What its maker says about it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// An image that is ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// What identifies its content.
    pub id: String,
    /// Its files; none for `host`, which runs on the host's own.
    pub rootfs: Option<PathBuf>,
    /// How it is run.
    pub config: ImageConfig,
}

/// An image as the store's list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredImage {
    /// Its name with its tag.
    pub name: String,
    /// What identifies its content.
    pub id: String,
    /// Where it came from, for people.
    pub source: String,
}

/// When to look for a newer image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullPolicy {
    /// At every start of a container.
    Always,
    /// Only if the store does not have it.
    IfNotPresent,
    /// Never.
    Never,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The name is malformed.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// It is not there, and may not be pulled.
    #[error("Container image {0:?} is not present with pull policy of Never: add it with `windlass image add`")]
    NotPresent(String),
    /// It does not exist; the text says what does and what to do.
    #[error("{0}")]
    NotFound(String),
    /// A container runs from it.
    #[error(
        "image {0:?} is in use by a running Pod: delete that first, or remove the image with --force, which takes its files from under the Pod"
    )]
    InUse(String),
    /// What it is made from cannot be had now; the text says what to do.
    #[error("{0}")]
    Unreachable(String),
    /// A program that makes images failed.
    #[error("{step}: {output}")]
    Tool {
        /// What was being done.
        step: &'static str,
        /// What the program said.
        output: String,
    },
    /// The store's files could not be read or written.
    #[error("{step}: {source}")]
    Io {
        /// What was being done.
        step: String,
        /// Why it failed.
        source: io::Error,
    },
    /// An archive or directory is no image.
    #[error("{path}: {problem}")]
    Archive {
        /// The archive.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Says what was being done when a file operation failed.
pub(crate) fn doing(step: impl Into<String>) -> impl FnOnce(io::Error) -> ImageError {
    let step = step.into();
    move |source| ImageError::Io { step, source }
}

/// What `refs/` keeps about an image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) config: ImageConfig,
    /// Where it came from, for people.
    pub(crate) source: String,
}

/// The image store.
#[derive(Debug, Clone)]
pub struct ImageStore {
    directory: PathBuf,
    /// One maker per image at a time within this process; other processes are kept out by a file lock.
    makers: Arc<Mutex<HashMap<Reference, Arc<tokio::sync::Mutex<()>>>>>,
}

impl ImageStore {
    /// A store in `directory`, which is made on first use.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, makers: Arc::default() }
    }

    /// Where the store is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The image of a name: from the store, or made from the Debian package of that name.
    pub async fn ensure(&self, name: &str, policy: PullPolicy, progress: Progress<'_>) -> Result<Image, ImageError> {
        let reference: Reference = name.parse()?;
        if reference.name() == "host" {
            return Ok(Image { id: "host".to_owned(), rootfs: None, config: ImageConfig::default() });
        }
        // An image that another release made otherwise is made anew, unless there is nothing to make it from.
        let is_current = |record: &Record| !debian::made(record) || debian::is_current(&reference, record);
        let stored = self.stored(&reference)?;
        match (policy, stored) {
            (PullPolicy::Never, Some(record)) => return Ok(self.image(record)),
            (PullPolicy::IfNotPresent, Some(record)) if is_current(&record) => return Ok(self.image(record)),
            (PullPolicy::Never, None) => return Err(ImageError::NotPresent(name.to_owned())),
            // What a person put there has no other origin to look at.
            (PullPolicy::Always, Some(record)) if !debian::made(&record) => return Ok(self.image(record)),
            _ => {}
        }
        let maker = self.maker(&reference);
        let _only = maker.lock().await;
        let _lock = self.lock(&reference).await?;
        // Somebody else may have made it while this task waited.
        let stored = self.stored(&reference)?;
        if let (Some(record), PullPolicy::IfNotPresent) = (&stored, policy)
            && is_current(record)
        {
            return Ok(self.image(record.clone()));
        }
        let made = debian::make(self, &reference, progress).await;
        match (made, stored) {
            (Ok(record), _) => {
                self.remember(&reference, &record)?;
                Ok(self.image(record))
            }
            (Err(error), Some(record)) => {
                tracing::info!(%error, image = %reference, "no newer image can be had; the stored one is used");
                Ok(self.image(record))
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Adds an image from an OCI layout, an OCI or Docker archive, or a plain directory of files.
    pub async fn add(&self, name: &str, path: &Path) -> Result<Image, ImageError> {
        let reference: Reference = name.parse()?;
        let _lock = self.lock(&reference).await?;
        let (store, path) = (self.clone(), path.to_owned());
        let added = tokio::task::spawn_blocking(move || archive::add(&store, &path, Budget::default())).await;
        let record = added.expect("unpacking does not panic")?;
        self.remember(&reference, &record)?;
        Ok(self.image(record))
    }

    /// The images that the store has, by name.
    pub fn list(&self) -> Vec<StoredImage> {
        let entries = fs::read_dir(self.directory.join("refs")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let name = |file: String| file.replace("%2F", "/").replacen('@', ":", 1);
        let mut names: Vec<String> = names.filter(|file| !file.starts_with('.')).map(name).collect();
        names.sort();
        let stored = |name: String| {
            let record = self.stored(&name.parse().ok()?).ok()??;
            Some(StoredImage { name, id: record.id, source: record.source })
        };
        names.into_iter().filter_map(stored).collect()
    }

    /// Tags that the store has of an image.
    pub(crate) fn tags(&self, name: &str) -> Vec<String> {
        let prefix = format!("{name}:");
        self.list().iter().filter_map(|image| image.name.strip_prefix(&prefix).map(str::to_owned)).collect()
    }

    pub(super) fn image(&self, record: Record) -> Image {
        Image { rootfs: Some(self.content(&record.id).join("rootfs")), id: record.id, config: record.config }
    }

    pub(super) fn stored(&self, reference: &Reference) -> Result<Option<Record>, ImageError> {
        let path = self.reference_path(reference);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(doing(format!("read {}", path.display()))(error)),
        };
        let record: Option<Record> = serde_json::from_slice(&text).ok();
        Ok(record.filter(|record| self.content(&record.id).join("rootfs").is_dir()))
    }

    pub(super) fn remember(&self, reference: &Reference, record: &Record) -> Result<(), ImageError> {
        let path = self.reference_path(reference);
        let text = serde_json::to_vec_pretty(record).expect("records are plain data");
        let temporary = path.with_file_name(format!(".{}.{}", reference.file_name(), std::process::id()));
        fs::create_dir_all(self.directory.join("refs"))
            .and_then(|()| fs::write(&temporary, text))
            .and_then(|()| fs::rename(&temporary, &path))
            .map_err(doing(format!("write {}", path.display())))
    }

    pub(super) fn reference_path(&self, reference: &Reference) -> PathBuf {
        self.directory.join("refs").join(reference.file_name())
    }

    pub(crate) fn content(&self, id: &str) -> PathBuf {
        self.directory.join("content").join(id)
    }

    /// The image whose files are at a path, if it is one of the store.
    pub(crate) fn id_at(&self, path: &Path) -> Option<String> {
        let inside = path.strip_prefix(self.directory.join("content")).ok()?;
        inside.iter().next()?.to_str().map(str::to_owned)
    }

    /// Fills a new content directory and puts it in place at once; one that is there already is kept.
    pub(crate) fn publish(
        &self,
        id: &str,
        fill: impl FnOnce(&Path) -> Result<(), ImageError>,
    ) -> Result<(), ImageError> {
        let place = self.content(id);
        if place.join("rootfs").is_dir() {
            return Ok(());
        }
        let building = self.directory.join("building");
        fs::create_dir_all(&building).map_err(doing(format!("create {}", building.display())))?;
        let parent = self.directory.join("content");
        fs::create_dir_all(&parent).map_err(doing(format!("create {}", parent.display())))?;
        let temporary = tempfile::Builder::new()
            .prefix(id)
            .tempdir_in(&building)
            .map_err(doing("create a directory for the image"))?;
        let rootfs = temporary.path().join("rootfs");
        fs::create_dir(&rootfs).map_err(doing(format!("create {}", rootfs.display())))?;
        fill(&rootfs)?;
        let opened = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(temporary.path(), opened).map_err(doing("open the image to its users"))?;
        match fs::rename(temporary.path(), &place) {
            Ok(()) => drop(temporary.keep()),
            // Another process was faster; its content is the same.
            Err(_) if place.join("rootfs").is_dir() => {}
            Err(error) => return Err(doing(format!("put the image at {}", place.display()))(error)),
        }
        Ok(())
    }

    fn maker(&self, reference: &Reference) -> Arc<tokio::sync::Mutex<()>> {
        let mut makers = self.makers.lock().expect("the lock is never held across a panic");
        makers.retain(|_, maker| Arc::strong_count(maker) > 1);
        Arc::clone(makers.entry(reference.clone()).or_default())
    }

    /// Keeps other processes from making the same image; released when the file is closed, even by a crash.
    pub(super) async fn lock(&self, reference: &Reference) -> Result<fs::File, ImageError> {
        self.lock_file(&reference.file_name()).await
    }

    /// Locks a file of the store by name.
    pub(crate) async fn lock_file(&self, name: &str) -> Result<fs::File, ImageError> {
        let path = self.directory.join("locks").join(name);
        let lock = move || {
            fs::create_dir_all(path.parent().expect("a lock is inside the store"))?;
            let file = fs::File::create(&path)?;
            file.lock()?;
            Ok(file)
        };
        let locked = tokio::task::spawn_blocking(lock).await.expect("locking does not panic");
        locked.map_err(doing(format!("lock {name} in {}", self.directory.display())))
    }
}
