//! The data of a new cluster from a backup: unpacked beside its place, compared with its manifest, brought to the wanted time by a
//! server that nobody else can reach, and only then put in its place.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use flate2::bufread::MultiGzDecoder;
use tokio::process::{Child, Command};
use windlass::backup::{BackupRecord, SelectionError, Storage, StorageError, Timestamp, open, select, stored};

use super::config::SOCKETS;
use super::postgres::{Postgres, ToolError, end_of, run};
use super::sql;
use super::volume::{ControlFile, Volume};
use crate::archive::{self, BASE, LOG, Layout, MANIFEST};
use crate::supervisor::{Supervisor, quoted};
use crate::wire::{Origin, Restored};

/// To replay a log may take long; a server that is stuck for ever is not waited for.
const REPLAY_MAX: Duration = Duration::from_secs(24 * 3600);
/// To compare a whole cluster with its manifest.
const VERIFY_MAX: Duration = Duration::from_secs(6 * 3600);
/// Between two questions to the server.
const ASK: Duration = Duration::from_millis(200);
/// A server that did not end in order by then is ended otherwise, and the work begins again.
const END_MAX: Duration = Duration::from_secs(60);
/// The end of what the server said is read from its log.
const LOG_BYTES_MAX: u64 = 64 << 10;

/// Why there is no data.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecoverError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error("{0:?} is not a time")]
    Time(String),
    #[error("the backup {0} is not in an archive")]
    Misplaced(String),
    #[error("{0} of the backup is not there")]
    Missing(&'static str),
    #[error("{0} of the backup cannot be unpacked: {1}")]
    Unpack(&'static str, #[source] io::Error),
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error("the volume cannot be written: {0}")]
    Volume(#[from] io::Error),
    #[error("the server ended before it was as of the wanted time: {0}")]
    Ended(String),
    #[error("the log was not replayed within {0:?}")]
    Late(Duration),
}

/// Makes the data of a new cluster from a backup.
pub(crate) async fn recover(postgres: &Postgres, storage: &Path, origin: &Origin) -> Result<(), RecoverError> {
    let volume = &postgres.volume;
    volume.settle()?;
    let at = match &origin.time {
        Some(text) => Some(text.parse().map_err(|_| RecoverError::Time(text.clone()))?),
        None => None,
    };
    let record = find(storage, &origin.path, at).await?;
    let layout = Layout::around(&record.location).ok_or_else(|| RecoverError::Misplaced(record.location.clone()))?;
    tracing::info!(backup = record.id, location = record.location, "Restoring");
    let (draft, source, location) = (volume.draft(), storage.to_owned(), record.location.clone());
    apart(move || unpack(&*open(&source)?, &location, &draft)).await?;
    let mut verify = Command::new("pg_verifybackup");
    verify.arg("--quiet").arg(volume.draft());
    run("pg_verifybackup", verify, VERIFY_MAX).await?;
    let control = postgres.control_of(&volume.draft()).await?;
    let fetch = fetch_command(storage, &layout);
    prepare(volume, &control, fetch, at)?;
    let recovered_to = replay(volume).await?;
    remember(volume, &record, recovered_to)?;
    Ok(volume.adopt_draft()?)
}

/// The backup to begin with.
async fn find(storage: &Path, path: &str, at: Option<Timestamp>) -> Result<BackupRecord, RecoverError> {
    let (storage, path) = (storage.to_owned(), path.to_owned());
    apart(move || {
        let (records, _) = stored(&*open(&storage)?, &path)?;
        Ok(select(&records, &path, None, at)?.clone())
    })
    .await
}

/// Does what blocks where it blocks nobody.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RecoverError> + Send + 'static,
) -> Result<T, RecoverError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(RecoverError::Volume(io::Error::other(error))))
}

/// Unpacks a base backup, and the log that makes it consistent.
fn unpack(storage: &dyn Storage, location: &str, draft: &Path) -> Result<(), RecoverError> {
    fs::DirBuilder::new().mode(0o700).create(draft)?;
    let file = |name: &'static str| storage.open(&format!("{location}/{name}"))?.ok_or(RecoverError::Missing(name));
    for (name, to) in [(BASE, draft.to_owned()), (LOG, draft.join("pg_wal"))] {
        // pg_basebackup ends a gzip stream at each file of the log, and begins another one.
        let mut archive = tar::Archive::new(MultiGzDecoder::new(BufReader::new(file(name)?)));
        archive.unpack(to).map_err(|error| RecoverError::Unpack(name, error))?;
    }
    let copied = io::copy(&mut file(MANIFEST)?, &mut File::create(draft.join(MANIFEST))?);
    copied.map(drop).map_err(|error| RecoverError::Unpack(MANIFEST, error))
}

/// What brings a file of the log back from an archive.
fn fetch_command(storage: &Path, layout: &Layout) -> String {
    let program = Supervisor::of_this_process().shell_command(archive::COMMAND);
    let (storage, archive) = (quoted(&storage.to_string_lossy()), quoted(layout.top()));
    format!("{program} --storage {storage} --archive {archive} fetch %f \"%p\"")
}

/// Writes what the server that replays the log is told. It archives nothing: what it reads belongs to another cluster.
fn prepare(volume: &Volume, control: &ControlFile, fetch: String, at: Option<Timestamp>) -> Result<(), RecoverError> {
    let draft = volume.draft();
    fs::create_dir_all(sockets())?;
    let mut settings = vec![
        ("listen_addresses", String::new()),
        ("unix_socket_directories", sockets().display().to_string()),
        ("archive_mode", "off".into()),
        ("hot_standby", "on".into()),
        ("restore_command", fetch),
        ("recovery_target_timeline", "latest".into()),
        ("recovery_target_action", "promote".into()),
    ];
    settings.extend(at.map(|at| ("recovery_target_time", target_time(at))));
    let floor = control.floor();
    settings.extend(floor.iter().map(|(name, value)| (name.as_str(), value.to_string())));
    let line = |(name, value): &(&str, String)| format!("{name} = '{}'\n", value.replace('\'', "''"));
    fs::write(draft.join("postgresql.conf"), settings.iter().map(line).collect::<String>())?;
    fs::write(draft.join("postgresql.auto.conf"), "")?;
    fs::write(draft.join("pg_hba.conf"), "local all all trust\n")?;
    let _ = fs::remove_file(draft.join("standby.signal"));
    Ok(fs::write(draft.join("recovery.signal"), "")?)
}

/// A time as settings take it: names of zones, `Z` among them, are not known while they are read.
fn target_time(at: Timestamp) -> String {
    format!("{}+00", at.to_string().trim_end_matches('Z'))
}

/// Runs a server on the draft until it takes writes, and ends it; gives the time of the last commit that was replayed.
async fn replay(volume: &Volume) -> Result<Option<String>, RecoverError> {
    let log = volume.recovery_log();
    let mut command = Command::new("postgres");
    command.arg("-D").arg(volume.draft()).current_dir(volume.draft()).stdin(Stdio::null()).kill_on_drop(true);
    command.stderr(File::create(&log)?).stdout(Stdio::null());
    let mut child = command.spawn().map_err(|source| ToolError::Run { tool: "postgres", source })?;
    let replayed = tokio::time::timeout(REPLAY_MAX, follow(&mut child)).await;
    match replayed.unwrap_or(Err(RecoverError::Late(REPLAY_MAX))) {
        Ok(recovered_to) => {
            end(&mut child, &log).await?;
            let _ = fs::remove_file(&log);
            Ok(recovered_to)
        }
        Err(RecoverError::Ended(_)) => Err(RecoverError::Ended(complaint(&log))),
        Err(error) => {
            let _ = child.kill().await;
            Err(error)
        }
    }
}

async fn follow(child: &mut Child) -> Result<Option<String>, RecoverError> {
    loop {
        if child.try_wait()?.is_some() {
            return Err(RecoverError::Ended(String::new()));
        }
        match sql::recovery(&sockets()).await {
            Ok((false, recovered_to)) => return Ok(recovered_to),
            Ok((true, _)) => {}
            Err(error) if error.is_not_yet() => {}
            Err(error) => tracing::info!(%error, "The server that replays the log was not asked"),
        }
        tokio::time::sleep(ASK).await;
    }
}

async fn end(child: &mut Child, log: &Path) -> Result<(), RecoverError> {
    use rustix::process::{Pid, Signal, kill_process};
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
        let _ = kill_process(pid, Signal::INT);
    }
    match tokio::time::timeout(END_MAX, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(_) => Err(RecoverError::Ended(complaint(log))),
        Err(_) => Err(RecoverError::Late(END_MAX)),
    }
}

/// What a server said at last, without the lines that follow from it.
fn complaint(log: &Path) -> String {
    let text = end_of_file(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let is_fatal = |line: &&str| line.contains("FATAL:") || line.contains("PANIC:");
    // What it stumbled over is in the line before.
    match lines.iter().rposition(is_fatal) {
        Some(place) => end_of(&lines[place.saturating_sub(1)..=place].join("; ")),
        None => end_of(text.trim()),
    }
}

fn end_of_file(path: &Path) -> io::Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn remember(volume: &Volume, record: &BackupRecord, recovered_to: Option<String>) -> Result<(), RecoverError> {
    let restored = Restored { backup: record.id.clone(), recovered_to };
    let text = serde_json::to_string(&restored).map_err(io::Error::other)?;
    Ok(fs::write(volume.restored(), text)?)
}

/// Where nobody but this process looks for a server.
fn sockets() -> PathBuf {
    Path::new(SOCKETS).join("recovery")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use windlass::backup::Folder;

    use super::*;

    /// A tar whose every part is a gzip stream of its own, as pg_basebackup writes the log.
    fn packed(files: &[(&str, &str)]) -> Vec<u8> {
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for (name, content) in files {
            let mut header = tar::Header::new_ustar();
            header.set_path(name).unwrap();
            header.set_size(content.len() as u64);
            header.set_mode(0o600);
            header.set_cksum();
            let mut data = content.as_bytes().to_vec();
            data.resize(data.len().next_multiple_of(512), 0);
            parts.extend([header.as_bytes().to_vec(), data]);
        }
        parts.push(vec![0; 1024]);
        let streams = parts.iter().map(|part| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(part).unwrap();
            encoder.finish().unwrap()
        });
        streams.collect::<Vec<_>>().concat()
    }

    #[test]
    fn times_are_written_as_settings_take_them() {
        let at = "2026-01-01T12:00:00.25+01:00".parse().unwrap();
        assert_eq!(target_time(at), "2026-01-01T11:00:00.25+00");
    }

    #[test]
    fn a_server_that_ended_is_quoted_with_what_it_stumbled_over() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        fs::write(&log, "LOG:  starting\nLOG:  invalid value\nFATAL:  file contains errors\nLOG:  shut down\n")
            .unwrap();
        assert_eq!(complaint(&log), "LOG:  invalid value; FATAL:  file contains errors");
        fs::write(&log, "Killed\n").unwrap();
        assert_eq!(complaint(&log), "Killed");
    }

    #[test]
    fn a_backup_is_unpacked_with_all_of_its_log() {
        let place = tempfile::tempdir().unwrap();
        let (folder, draft) = (Folder::at(place.path()), place.path().join("draft"));
        let put = |name: &str, content: &[u8]| folder.put(&format!("base/b/{name}"), &mut &*content).map(drop);
        assert!(unpack(&folder, "base/b", &place.path().join("nothing")).is_err());
        put(BASE, &packed(&[("PG_VERSION", "15"), ("pg_wal/archive_status/x", "")])).unwrap();
        put(LOG, &packed(&[("000000010000000000000001", "one"), ("000000010000000000000002", "two")])).unwrap();
        put(MANIFEST, b"{}").unwrap();
        unpack(&folder, "base/b", &draft).unwrap();
        let read = |name: &str| fs::read_to_string(draft.join(name)).unwrap();
        assert_eq!((read("PG_VERSION").as_str(), read(MANIFEST).as_str()), ("15", "{}"));
        assert_eq!(read("pg_wal/000000010000000000000002"), "two");
        assert!(unpack(&folder, "base/b", &draft).is_err(), "nothing is unpacked over what is there");
    }
}
