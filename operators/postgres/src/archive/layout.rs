//! Where things are in an archive.

use windlass::backup::Attachment;

/// Where members have the storage of their own archive, and where that which they recover from, read-only.
pub(crate) const STORAGE: &str = "/archive";
pub(crate) const RECOVERY: &str = "/recovery";
/// How Pods have them.
pub(crate) const ARCHIVE: Attachment<'static> = Attachment { name: "archive", path: STORAGE, read_only: false };
pub(crate) const ORIGIN: Attachment<'static> = Attachment { name: "recovery", path: RECOVERY, read_only: true };

/// The folder of all archives of one resource.
pub(crate) fn prefix(namespace: &str, cluster: &str, uid: &str) -> String {
    format!("{namespace}/{cluster}/{uid}")
}

/// The archive of one resource with one set of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    top: String,
}

impl Layout {
    /// The archive of the data `system_id` below the resource's own folder.
    pub(crate) fn of(prefix: &str, system_id: &str) -> Self {
        Self { top: format!("{prefix}/{system_id}") }
    }

    /// The archive at this path.
    pub(crate) fn at(top: &str) -> Self {
        Self { top: top.trim_end_matches('/').to_owned() }
    }

    /// The archive that a base backup at `location` is in.
    pub(crate) fn around(location: &str) -> Option<Self> {
        let (top, _) = location.trim_end_matches('/').rsplit_once("/base/")?;
        Some(Self::at(top))
    }

    pub(crate) fn top(&self) -> &str {
        &self.top
    }

    /// The folder of base backups.
    pub(crate) fn bases(&self) -> String {
        format!("{}/base", self.top)
    }

    /// The folder of a base backup.
    pub(crate) fn base(&self, id: &str) -> String {
        format!("{}/{id}", self.bases())
    }

    /// The folder of the log.
    pub(crate) fn log(&self) -> String {
        format!("{}/wal", self.top)
    }

    /// The place of a file of the log; `None` if it is not the name of one.
    pub(crate) fn log_file(&self, name: &str) -> Option<String> {
        let (stem, rest) = name.split_once('.').unwrap_or((name, ""));
        let is_hex = stem.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte));
        let is_known = match (stem.len(), rest) {
            (24, "" | "partial") => true,
            (24, label) => label.strip_suffix(".backup").is_some_and(|it| it.len() == 8),
            (8, "history") => true,
            _ => false,
        };
        let folder = if stem.len() == 24 { format!("{}/{}", self.log(), &stem[..16]) } else { self.log() };
        (is_hex && is_known).then(|| format!("{folder}/{name}.gz"))
    }
}

/// The segment, without its timeline, in which a position is: `0/3000028` is in `0000000000000003`.
pub(crate) fn segment_of(position: &str) -> Option<String> {
    let (high, low) = position.split_once('/')?;
    let (high, low) = (u32::from_str_radix(high, 16).ok()?, u32::from_str_radix(low, 16).ok()?);
    Some(format!("{high:08X}{:08X}", low >> SEGMENT_BITS))
}

/// Segments have 16 MiB: `initdb` is told nothing else.
const SEGMENT_BITS: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_log_have_places_and_nothing_else_has() {
        let layout = Layout::of(&prefix("shop", "db", "u-1"), "7");
        let rows = [
            ("000000010000000000000003", Some("shop/db/u-1/7/wal/0000000100000000/000000010000000000000003.gz")),
            (
                "000000010000000000000003.partial",
                Some("shop/db/u-1/7/wal/0000000100000000/000000010000000000000003.partial.gz"),
            ),
            (
                "000000010000000000000003.00000028.backup",
                Some("shop/db/u-1/7/wal/0000000100000000/000000010000000000000003.00000028.backup.gz"),
            ),
            ("00000002.history", Some("shop/db/u-1/7/wal/00000002.history.gz")),
            ("../../etc/passwd", None),
            ("000000010000000000000003.exe", None),
            ("00000001000000000000000g", None),
        ];
        for (name, expected) in rows {
            assert_eq!(layout.log_file(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn the_archive_of_a_backup_is_found_from_where_it_is() {
        let layout = Layout::of("shop/db/u-1", "7");
        assert_eq!(Layout::around(&layout.base("nightly-1")), Some(layout));
        assert_eq!(Layout::around("shop/db"), None);
    }

    #[test]
    fn a_position_is_in_a_segment() {
        for (position, segment) in [("0/3000028", "0000000000000003"), ("1A/FF000000", "0000001A000000FF")] {
            assert_eq!(segment_of(position).as_deref(), Some(segment));
        }
        assert_eq!(segment_of("x"), None);
    }
}
