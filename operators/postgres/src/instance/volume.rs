//! What is on a member's volume: the data directory, and what is left of work that a crash cut off.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::observed::{Control, Data};

/// The folders of a member's volume. A data directory is made beside, and takes its place by one rename when it is whole: so
/// what is there is whole, whenever a crash comes.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    top: PathBuf,
}

impl Volume {
    pub(crate) fn at(top: impl Into<PathBuf>) -> Self {
        Self { top: top.into() }
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.top.join("pgdata")
    }

    /// Where a data directory is made.
    pub(crate) fn draft(&self) -> PathBuf {
        self.top.join("pgdata.draft")
    }

    /// One that is whole and about to take the place of another.
    fn next(&self) -> PathBuf {
        self.top.join("pgdata.next")
    }

    fn last(&self) -> PathBuf {
        self.top.join("pgdata.last")
    }

    /// What the server said that brought restored data to its time.
    pub(crate) fn recovery_log(&self) -> PathBuf {
        self.top.join("recovery.log")
    }

    /// Where it is remembered that the data was restored.
    pub(crate) fn restored(&self) -> PathBuf {
        self.top.join("restored.json")
    }

    /// Finishes what a crash cut off: what was whole takes its place, what was not goes.
    pub(crate) fn settle(&self) -> io::Result<()> {
        remove(&self.draft())?;
        if self.next().exists() {
            if self.data().exists() {
                remove(&self.last())?;
                fs::rename(self.data(), self.last())?;
            }
            fs::rename(self.next(), self.data())?;
            sync(&self.top)?;
        }
        remove(&self.last())
    }

    /// The draft is whole: it takes the place of what is there.
    pub(crate) fn adopt_draft(&self) -> io::Result<()> {
        sync(&self.draft())?;
        remove(&self.next())?;
        fs::rename(self.draft(), self.next())?;
        sync(&self.top)?;
        self.settle()
    }

    /// Whether there is a data directory.
    pub(crate) fn has_data(&self) -> bool {
        self.data().join("PG_VERSION").is_file() && self.data().join("global/pg_control").is_file()
    }

    /// The highest timeline that the log on this volume is of; the control file follows only with the next checkpoint.
    pub(crate) fn log_timeline(&self) -> u32 {
        let entries = fs::read_dir(self.data().join("pg_wal")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| segment_timeline(&name)).max().unwrap_or(0)
    }

    /// Whether the server, when it starts, is to be in recovery.
    pub(crate) fn mark_standby(&self, is_standby: bool) -> io::Result<()> {
        let path = self.data().join(STANDBY);
        match is_standby {
            true => fs::write(path, ""),
            false => fs::remove_file(path).or_else(absent_is_fine),
        }
    }

    /// The same for a draft, which is a copy of a primary's.
    pub(crate) fn mark_draft(&self) -> io::Result<()> {
        fs::write(self.draft().join(STANDBY), "")
    }

    /// What the data is of. A copy of a primary's data has its control file: the mark says that it is one of a standby.
    pub(crate) fn judge(&self, control: &ControlFile) -> Data {
        match control.data() {
            Data::Present(control) => {
                let is_standby = self.data().join(STANDBY).exists();
                Data::Present(Control { was_primary: control.was_primary && !is_standby, ..control })
            }
            Data::Empty => Data::Empty,
        }
    }
}

/// The file that has PostgreSQL start in recovery and stay there.
const STANDBY: &str = "standby.signal";

/// The timeline of `000000020000000000000003`.
fn segment_timeline(name: &str) -> Option<u32> {
    let is_segment = name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_segment.then(|| u32::from_str_radix(&name[..8], 16).ok()).flatten()
}

fn remove(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path).or_else(absent_is_fine)
}

fn absent_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn sync(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

/// What `pg_controldata` prints, by its names.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlFile(BTreeMap<String, String>);

impl ControlFile {
    pub(crate) fn parse(text: &str) -> Self {
        let pair =
            |line: &str| line.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
        Self(text.lines().filter_map(pair).collect())
    }

    /// The identity of the data.
    pub(crate) fn system_id(&self) -> Option<&String> {
        self.0.get("Database system identifier")
    }

    /// What counts for a decision; nothing, if it is not the output of `pg_controldata`.
    fn data(&self) -> Data {
        let text = |name: &str| self.0.get(name).cloned();
        let Some(system_id) = text("Database system identifier") else { return Data::Empty };
        let timeline = text("Latest checkpoint's TimeLineID").and_then(|it| it.parse().ok()).unwrap_or(0);
        let state = text("Database cluster state").unwrap_or_default();
        let was_primary = !matches!(state.as_str(), "in archive recovery" | "shut down in recovery");
        Data::Present(Control { system_id, timeline, was_primary })
    }

    /// Where the last checkpoint of a server that ended in order is: nothing follows it.
    pub(crate) fn clean_end(&self) -> Option<u64> {
        let place = self.0.get("Latest checkpoint location")?;
        let (high, low) = place.split_once('/')?;
        let of = |text: &str| u64::from_str_radix(text, 16).ok();
        let is_clean = self.0.get("Database cluster state").is_some_and(|state| state == "shut down");
        is_clean.then_some((of(high)? << 32) | of(low)?)
    }

    /// The settings of the primary that a standby needs as much of.
    pub(crate) fn floor(&self) -> BTreeMap<String, u64> {
        let names = [
            ("max_connections setting", "max_connections"),
            ("max_worker_processes setting", "max_worker_processes"),
            ("max_wal_senders setting", "max_wal_senders"),
            ("max_prepared_xacts setting", "max_prepared_transactions"),
            ("max_locks_per_xact setting", "max_locks_per_transaction"),
        ];
        let value = |name: &str| self.0.get(name).and_then(|value| value.parse().ok());
        names.into_iter().filter_map(|(name, setting)| Some((setting.to_owned(), value(name)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> (tempfile::TempDir, Volume) {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::at(folder.path());
        (folder, volume)
    }

    fn fill(path: &Path, content: &str) {
        fs::create_dir_all(path.join("global")).unwrap();
        fs::write(path.join("PG_VERSION"), content).unwrap();
        fs::write(path.join("global/pg_control"), "").unwrap();
    }

    fn content(volume: &Volume) -> Option<String> {
        fs::read_to_string(volume.data().join("PG_VERSION")).ok()
    }

    #[test]
    fn a_crash_at_any_point_leaves_what_was_whole() {
        // What is there, what follows: the states between the steps of adopting a draft.
        let rows: [(&[&str], Option<&str>); 7] = [
            (&[], None),
            (&["pgdata.draft"], None),
            (&["pgdata", "pgdata.draft"], Some("pgdata")),
            (&["pgdata.next"], Some("pgdata.next")),
            (&["pgdata", "pgdata.next"], Some("pgdata.next")),
            (&["pgdata.last", "pgdata.next"], Some("pgdata.next")),
            (&["pgdata", "pgdata.last"], Some("pgdata")),
        ];
        for (there, expected) in rows {
            let (folder, volume) = volume();
            there.iter().for_each(|name| fill(&folder.path().join(name), name));
            volume.settle().unwrap();
            assert_eq!(content(&volume).as_deref(), expected, "{there:?}");
            let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
            assert_eq!(left.len(), usize::from(expected.is_some()), "{there:?} leaves {left:?}");
        }
    }

    #[test]
    fn a_draft_takes_the_place_of_what_is_there() {
        let (_folder, volume) = volume();
        fill(&volume.data(), "old");
        fill(&volume.draft(), "new");
        volume.adopt_draft().unwrap();
        assert_eq!((content(&volume).as_deref(), volume.has_data()), (Some("new"), true));
    }

    #[test]
    fn the_timeline_of_the_log_is_that_of_its_latest_segment() {
        let (_folder, volume) = volume();
        assert_eq!(volume.log_timeline(), 0);
        fs::create_dir_all(volume.data().join("pg_wal")).unwrap();
        for name in ["000000010000000000000002", "000000030000000000000003", "00000009.history", "archive_status"] {
            fs::write(volume.data().join("pg_wal").join(name), "").unwrap();
        }
        assert_eq!(volume.log_timeline(), 3);
    }

    #[test]
    fn the_control_file_says_who_wrote_last() {
        for (state, was_primary) in [("in production", true), ("shut down", true), ("shut down in recovery", false)] {
            let text = format!(
                "Database system identifier:           7\nDatabase cluster state:               {state}\n\
                 Latest checkpoint's TimeLineID:       2\nLatest checkpoint location:           1/F\nmax_connections setting:              90\n"
            );
            let control = ControlFile::parse(&text);
            assert_eq!(control.data(), Data::Present(Control { system_id: "7".into(), timeline: 2, was_primary }));
            assert_eq!(control.clean_end(), (state == "shut down").then_some((1 << 32) + 15));
            assert_eq!(control.floor(), BTreeMap::from([("max_connections".to_owned(), 90)]));
        }
        assert_eq!(ControlFile::parse("").data(), Data::Empty);
    }

    #[test]
    fn a_copy_of_a_primary_is_a_standby() {
        let (_folder, volume) = volume();
        fill(&volume.draft(), "15");
        volume.mark_draft().unwrap();
        volume.adopt_draft().unwrap();
        let control = ControlFile::parse("Database system identifier: 7\nDatabase cluster state: in production\n");
        let was_primary = || matches!(volume.judge(&control), Data::Present(control) if control.was_primary);
        assert!(!was_primary());
        volume.mark_standby(false).unwrap();
        assert!(was_primary());
    }
}
