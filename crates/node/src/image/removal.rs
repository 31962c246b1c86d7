//! Removal of images, which those that run keep from happening.

use std::fs;
use std::io;
use std::path::Path;

use super::reference::Reference;
use super::store::{ImageError, ImageStore, doing};
use crate::tree;

/// What became of an image that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Its files are gone.
    Freed,
    /// Its files stay: another name has the same.
    Shared,
}

/// While this lives, the content of an image is in use. The kernel lets go of it with the process.
#[derive(Debug)]
pub(crate) struct Hold(#[expect(dead_code, reason = "held for its lock")] fs::File);

impl ImageStore {
    /// Keeps the content of an image from being removed; none for `host`, which has none.
    pub(crate) fn hold(&self, id: &str) -> io::Result<Option<Hold>> {
        if !self.content(id).is_dir() {
            return Ok(None);
        }
        let file = open(&self.use_path(id))?;
        file.lock_shared()?;
        Ok(Some(Hold(file)))
    }

    /// Removes an image, and its files unless another name has the same.
    ///
    /// # Errors
    /// When the store does not have it, or a container runs from it and `force` is not set.
    pub async fn remove(&self, name: &str, force: bool) -> Result<Removal, ImageError> {
        let reference: Reference = name.parse()?;
        let _lock = self.lock(&reference).await?;
        let Some(record) = self.stored(&reference)? else {
            return Err(ImageError::NotFound(format!(
                "image {name:?} is not in the store: `windlass image ls` shows what is"
            )));
        };
        let full_name = reference.to_string();
        let shared = self.list().iter().any(|image| image.id == record.id && image.name != full_name);
        let path = self.reference_path(&reference);
        if shared {
            fs::remove_file(&path).map_err(doing(format!("remove {}", path.display())))?;
            return Ok(Removal::Shared);
        }
        let use_path = self.use_path(&record.id);
        let file = open(&use_path).map_err(doing(format!("open {}", use_path.display())))?;
        if file.try_lock().is_err() && !force {
            return Err(ImageError::InUse(full_name));
        }
        fs::remove_file(&path).map_err(doing(format!("remove {}", path.display())))?;
        let (content, store) = (self.content(&record.id), self.clone());
        let removed = tokio::task::spawn_blocking(move || store.discard(&content)).await;
        removed.expect("removing does not panic").map_err(doing(format!("remove the files of {name}")))?;
        let _ = fs::remove_file(&use_path);
        Ok(Removal::Freed)
    }

    /// Removes content: out of sight at once, so that a crash leaves no half of it in its place.
    fn discard(&self, content: &Path) -> io::Result<()> {
        let building = self.directory().join("building");
        fs::create_dir_all(&building)?;
        let temporary = tempfile::Builder::new().prefix("removed").tempdir_in(&building)?;
        let place = temporary.path().join("content");
        fs::rename(content, &place)?;
        tree::remove(&place)
    }

    fn use_path(&self, id: &str) -> std::path::PathBuf {
        self.directory().join("locks").join(format!("used.{id}"))
    }
}

fn open(path: &Path) -> io::Result<fs::File> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store with one image under two names.
    async fn store() -> (tempfile::TempDir, ImageStore) {
        let directory = tempfile::tempdir().unwrap();
        let files = directory.path().join("files");
        fs::create_dir_all(files.join("bin")).unwrap();
        fs::write(files.join("bin/program"), "x").unwrap();
        let store = ImageStore::new(directory.path().join("store"));
        store.add("mine:1", &files).await.unwrap();
        let refs = store.directory().join("refs");
        fs::copy(refs.join("mine@1"), refs.join("mine@2")).unwrap();
        (directory, store)
    }

    #[tokio::test]
    async fn files_go_with_the_last_name() {
        let (_directory, store) = store().await;
        let content = store.content(&store.list()[0].id);
        assert_eq!(store.remove("mine:1", false).await.unwrap(), Removal::Shared);
        assert!(content.is_dir());
        assert_eq!(store.remove("mine:2", false).await.unwrap(), Removal::Freed);
        assert!(!content.exists() && store.list().is_empty());
        let missing = store.remove("mine:2", false).await.unwrap_err().to_string();
        assert!(missing.contains("windlass image ls"), "{missing}");
    }

    #[tokio::test]
    async fn an_image_in_use_stays_unless_forced() {
        let (_directory, store) = store().await;
        let id = store.list()[0].id.clone();
        store.remove("mine:1", false).await.unwrap();
        let held = store.hold(&id).unwrap();
        assert!(matches!(store.remove("mine:2", false).await, Err(ImageError::InUse(name)) if name == "mine:2"));
        assert_eq!(store.list().len(), 1);
        drop(held);
        let _held = store.hold(&id).unwrap();
        assert_eq!(store.remove("mine:2", true).await.unwrap(), Removal::Freed);
        assert!(!store.content(&id).exists());
    }
}
