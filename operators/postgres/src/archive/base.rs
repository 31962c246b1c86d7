//! A base backup: taken by a Pod of its own from one of the members, sealed when it is whole, and thinned out afterwards.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::process::Command;
use windlass::backup::{
    BackupOrder, BackupRecord, FORMAT_VERSION, Storage, StorageError, remove, seal, stored, surplus,
};
use windlass::runtime::Clock;

use super::layout::{Layout, segment_of};
use super::manifest::Manifest;
use crate::instance::{ToolError, run_tool};
use crate::names::{POSTGRES_PORT, REPLICATION};

/// The Job has the deadline that was asked for; this one is for whoever runs the command by hand.
const TAKE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// What a base backup consists of.
const FILES: [&str; 3] = [BASE, LOG, MANIFEST];
pub(crate) const BASE: &str = "base.tar.gz";
pub(crate) const LOG: &str = "pg_wal.tar.gz";
pub(crate) const MANIFEST: &str = "backup_manifest";

/// Whom a base backup is taken from, and where it goes.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct From {
    /// The address of the member
    #[arg(long)]
    pub(super) host: String,
    /// The member
    #[arg(long)]
    pub(super) member: String,
    /// The identity of its data
    #[arg(long)]
    pub(super) system_id: String,
    /// The version that it runs
    #[arg(long)]
    pub(super) server_version: String,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub(super) enum BaseError {
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("the backup cannot be read back: {0}")]
    Files(#[from] io::Error),
    #[error("its manifest cannot be read: {0}")]
    Manifest(#[from] serde_json::Error),
    #[error("its manifest does not say which log it needs")]
    NoRange,
    #[error("it has files that are not known here ({0}): tablespaces are not backed up")]
    Tablespaces(String),
}

/// Takes the backup, and says what it is. Where programs cannot write into the storage themselves, it is made in `scratch` first.
pub(super) async fn take(
    storage: &dyn Storage,
    scratch: &Path,
    layout: &Layout,
    from: &From,
    order: &BackupOrder,
) -> Result<BackupRecord, BaseError> {
    sweep(storage, layout)?;
    let location = layout.base(&order.id);
    let own = storage.place(&location)?;
    let place = own.clone().unwrap_or_else(|| scratch.join(&order.id));
    fs::create_dir_all(&place)?;
    let started_at = Clock::system().now();
    copy_data(&place, from, &order.id).await?;
    let completed_at = Clock::system().now();
    let (size_bytes, checksum) = weigh(&place)?;
    let manifest = Manifest::read(&fs::read_to_string(place.join(MANIFEST))?)?;
    let range = manifest.range().ok_or(BaseError::NoRange)?;
    if own.is_none() {
        bring(storage, &place, &location)?;
    }
    let record = BackupRecord {
        format_version: FORMAT_VERSION,
        id: order.id.clone(),
        backup: order.backup.clone(),
        schedule: order.schedule.clone(),
        method: order.method.clone(),
        started_at,
        completed_at,
        size_bytes,
        location,
        application_version: from.server_version.clone(),
        taken_from: from.member.clone(),
        data_id: from.system_id.clone(),
        timeline: range.timeline,
        begin: range.begin,
        end: range.end,
        checksum,
        configuration: order.configuration.clone(),
    };
    seal(storage, &record)?;
    Ok(record)
}

/// Has the member's data, and the log that makes it consistent, copied into a folder.
async fn copy_data(place: &Path, from: &From, label: &str) -> Result<(), ToolError> {
    let mut command = Command::new("pg_basebackup");
    command.arg("-D").arg(place).args(["-h", &from.host, "-p", &POSTGRES_PORT.to_string(), "-U", REPLICATION, "-w"]);
    command.args(["-F", "tar", "-X", "stream", "-c", "fast", "--compress=client-gzip:1"]);
    command.args(["--manifest-checksums=SHA256", "--label", label]).env("PGCONNECT_TIMEOUT", "5");
    run_tool("pg_basebackup", command, TAKE_MAX).await.map(drop)
}

/// Brings the files of a backup into the storage, and removes each when it is there.
fn bring(storage: &dyn Storage, place: &Path, location: &str) -> Result<(), BaseError> {
    for name in FILES {
        let file = place.join(name);
        storage.put(&format!("{location}/{name}"), &mut File::open(&file)?)?;
        fs::remove_file(file)?;
    }
    Ok(())
}

/// Removes what attempts that failed left: one backup is taken at a time, so nobody else works on it.
fn sweep(storage: &dyn Storage, layout: &Layout) -> Result<(), BaseError> {
    let (records, unreadable) = stored(storage, &layout.bases())?;
    if !unreadable.is_empty() {
        return Ok(());
    }
    for name in storage.list(&layout.bases())?.folders {
        if records.iter().all(|record| record.id != name) {
            tracing::info!(name, "Removing what a failed backup left");
            remove(storage, &layout.base(&name))?;
        }
    }
    Ok(())
}

/// The size of a backup, and a hash of the names and contents of its files.
fn weigh(place: &Path) -> Result<(u64, String), BaseError> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(place)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let strangers: Vec<&str> = names.iter().map(String::as_str).filter(|name| !FILES.contains(name)).collect();
    if !strangers.is_empty() {
        return Err(BaseError::Tablespaces(strangers.join(", ")));
    }
    let (mut size, mut all) = (0, Sha256::new());
    let mut chunk = vec![0; 1 << 16];
    for name in &names {
        let (mut file, mut own) = (File::open(place.join(name))?, Sha256::new());
        loop {
            let length = file.read(&mut chunk)?;
            if length == 0 {
                break;
            }
            own.update(&chunk[..length]);
            size += length as u64;
        }
        all.update(format!("{name} {}\n", hex::encode(own.finalize())));
    }
    Ok((size, format!("sha256:{}", hex::encode(all.finalize()))))
}

/// Removes the backups that the schedule does not keep, and the log that no backup needs.
pub(super) fn thin_out(storage: &dyn Storage, layout: &Layout, order: &BackupOrder) -> Result<(), BaseError> {
    let (Some(schedule), Some(keep)) = (&order.schedule, order.keep) else { return Ok(()) };
    let (records, unreadable) = stored(storage, &layout.bases())?;
    if !unreadable.is_empty() {
        tracing::warn!("Nothing is removed: a newer operator has written into this archive");
        return Ok(());
    }
    let surplus = surplus(&records, schedule, keep);
    for record in &surplus {
        tracing::info!(id = record.id, "Removing a backup that is not kept");
        remove(storage, &record.location)?;
    }
    let kept = records.iter().filter(|record| surplus.iter().all(|gone| gone.id != record.id));
    let Some(first) = kept.filter_map(|record| segment_of(&record.begin)).min() else { return Ok(()) };
    remove_log(storage, &layout.log(), &first)
}

/// Removes the segments before `first`, whatever their timeline: nothing is restored from before the first backup. Histories of
/// timelines stay: they are small, and tell how timelines are related.
fn remove_log(storage: &dyn Storage, log: &str, first: &str) -> Result<(), BaseError> {
    for group in storage.list(log)?.folders {
        let group = format!("{log}/{group}");
        let is_old = |name: &&String| name.get(8..24).is_some_and(|number| number < first);
        for name in storage.list(&group)?.files.iter().filter(is_old) {
            storage.delete(&format!("{group}/{name}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use windlass::backup::Folder;

    use super::*;

    fn archive() -> (tempfile::TempDir, Folder, Layout) {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::at(top.path());
        (top, folder, Layout::of("shop/db/u", "7"))
    }

    fn backup(folder: &Folder, layout: &Layout, id: &str, day: u32, begin: &str) {
        let at = format!("2026-01-0{day}T00:00:00Z").parse().unwrap();
        let location = layout.base(id);
        folder.put(&format!("{location}/{BASE}"), &mut "data".as_bytes()).unwrap();
        let record = BackupRecord {
            format_version: FORMAT_VERSION,
            id: id.into(),
            backup: "shop/b".into(),
            schedule: Some("nightly".into()),
            method: "basebackup".into(),
            started_at: at,
            completed_at: at,
            size_bytes: 4,
            location,
            application_version: "15".into(),
            taken_from: "db-1".into(),
            data_id: "7".into(),
            timeline: 1,
            begin: begin.into(),
            end: begin.into(),
            checksum: String::new(),
            configuration: Default::default(),
        };
        seal(folder, &record).unwrap();
    }

    #[test]
    fn the_log_goes_as_far_as_the_backups_that_stay_allow() {
        let (_top, folder, layout) = archive();
        for (day, begin) in [(1, "0/1000028"), (2, "0/3000028"), (3, "0/5000028")] {
            backup(&folder, &layout, &format!("b{day}"), day, begin);
        }
        let segments =
            ["000000010000000000000001", "000000010000000000000002", "000000020000000000000003", "00000002.history"];
        for name in segments {
            folder.put(&layout.log_file(name).unwrap(), &mut "wal".as_bytes()).unwrap();
        }
        let order = BackupOrder { schedule: Some("nightly".into()), keep: Some(2), ..BackupOrder::default() };
        thin_out(&folder, &layout, &order).unwrap();
        let left: Vec<String> = stored(&folder, layout.top()).unwrap().0.into_iter().map(|it| it.id).collect();
        assert_eq!(left, ["b2", "b3"]);
        let is_there = segments.map(|name| folder.open(&layout.log_file(name).unwrap()).unwrap().is_some());
        assert_eq!(is_there, [false, false, true, true]);
    }

    #[test]
    fn what_a_failed_backup_left_goes_before_the_next() {
        let (_top, folder, layout) = archive();
        backup(&folder, &layout, "whole", 1, "0/1000028");
        folder.put(&format!("{}/{BASE}", layout.base("cut-off")), &mut "half".as_bytes()).unwrap();
        sweep(&folder, &layout).unwrap();
        assert!(folder.open(&format!("{}/{BASE}", layout.base("whole"))).unwrap().is_some());
        assert!(!folder.place(&layout.base("cut-off")).unwrap().unwrap().exists());
    }

    #[test]
    fn what_was_made_elsewhere_is_brought_and_does_not_stay_there() {
        let (_top, folder, layout) = archive();
        let scratch = tempfile::tempdir().unwrap();
        for name in FILES {
            fs::write(scratch.path().join(name), name).unwrap();
        }
        bring(&folder, scratch.path(), &layout.base("b")).unwrap();
        assert_eq!(folder.list(&layout.base("b")).unwrap().files, ["backup_manifest", BASE, LOG]);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_that_are_not_known_make_no_backup() {
        let place = tempfile::tempdir().unwrap();
        for name in FILES {
            fs::write(place.path().join(name), name).unwrap();
        }
        let (size, checksum) = weigh(place.path()).unwrap();
        assert_eq!(size, FILES.iter().map(|name| name.len() as u64).sum::<u64>());
        fs::write(place.path().join(BASE), "other").unwrap();
        assert_ne!(weigh(place.path()).unwrap().1, checksum);
        fs::write(place.path().join("16384.tar.gz"), "").unwrap();
        assert!(matches!(weigh(place.path()), Err(BaseError::Tablespaces(_))));
    }
}
