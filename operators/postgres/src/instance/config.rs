//! The files that a server is told what to do with: settings, who may connect, whom to follow.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use super::quorum;
use crate::names::{self, POSTGRES_PORT, REPLICATION, slot};
use crate::parameters::{AT_LEAST_AS_PRIMARY, effective};
use crate::wire::{Plan, Quorum};

/// Where the server's socket is.
pub(crate) const SOCKETS: &str = "/run/postgresql";
/// Where the password to the primary is: in the settings it would be in the log whenever they change.
const PASSWORD_FILE: &str = "/run/postgresql/replication.pgpass";

/// What is written is in the archive after this time, unless people say otherwise.
const ARCHIVE_TIMEOUT: &str = "60s";

/// What the settings of a server follow from.
pub(crate) struct Settings<'a> {
    /// This member.
    pub(crate) me: &'a str,
    /// What is wanted.
    pub(crate) plan: &'a Plan,
    /// The rule of acknowledgement, should this server be the primary.
    pub(crate) rule: Option<&'a Quorum>,
    /// What brings a file of the log into the archive, if there is one.
    pub(crate) archive: Option<&'a str>,
    /// Where the primary is.
    pub(crate) upstream: Option<&'a str>,
    /// What the primary had of the settings that a standby needs as much of, by the control file.
    pub(crate) floor: &'a BTreeMap<String, u64>,
}

/// Who may connect. The socket is reached from inside of the Pod alone.
const HBA: &str = "local all all trust\nhost replication streaming_replica all scram-sha-256\n\
                   host all all all scram-sha-256\n";

/// Writes the files into a data directory; `true` if something is different now.
pub(crate) fn write(data: &Path, settings: &Settings<'_>) -> io::Result<bool> {
    let files = [
        ("postgresql.conf", render(settings)),
        ("pg_hba.conf", HBA.to_owned()),
        // What ALTER SYSTEM wrote would win over all of this, on one member alone.
        ("postgresql.auto.conf", String::new()),
    ];
    let mut is_changed = false;
    for (name, text) in files {
        let path = data.join(name);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        let new = data.join(format!("{name}.new"));
        fs::write(&new, text)?;
        fs::rename(new, path)?;
        is_changed = true;
    }
    Ok(is_changed)
}

/// The settings as a file.
fn render(settings: &Settings<'_>) -> String {
    let mut all = effective(&settings.plan.parameters);
    if settings.archive.is_some() {
        all.entry("archive_timeout".into()).or_insert_with(|| ARCHIVE_TIMEOUT.into());
    }
    for name in AT_LEAST_AS_PRIMARY {
        let asked = all.get(name).and_then(|value| value.parse::<u64>().ok());
        if let Some(floor) = settings.floor.get(name).filter(|floor| asked.is_none_or(|asked| asked < **floor)) {
            all.insert(name.to_owned(), floor.to_string());
        }
    }
    let fixed = [
        ("listen_addresses", "*".to_owned()),
        ("port", POSTGRES_PORT.to_string()),
        ("unix_socket_directories", SOCKETS.to_owned()),
        ("cluster_name", settings.me.to_owned()),
        // A name of our own: by it the server says which settings it has read.
        (names::SETTINGS, settings.plan.settings()),
        // Standbys archive, too: what a primary that is lost had not brought there is not lost with it.
        ("archive_mode", if settings.archive.is_some() { "always" } else { "off" }.into()),
        ("archive_command", settings.archive.unwrap_or_default().to_owned()),
        ("hot_standby", "on".into()),
        ("wal_log_hints", "on".into()),
        ("logging_collector", "off".into()),
        ("recovery_target_timeline", "latest".into()),
        ("synchronous_standby_names", quorum::setting(settings.rule)),
        ("primary_slot_name", slot(settings.me)),
        ("primary_conninfo", settings.upstream.map(|host| connection(settings.me, host)).unwrap_or_default()),
    ];
    all.extend(fixed.map(|(name, value)| (name.to_owned(), value)));
    let line = |(name, value): (&String, &String)| format!("{name} = '{}'\n", value.replace('\'', "''"));
    format!("# Written by the supervisor: say spec.parameters.\n{}", all.iter().map(line).collect::<String>())
}

/// How a standby reaches its primary. A primary that is gone is noticed within seconds.
fn connection(me: &str, host: &str) -> String {
    format!(
        "host={host} port={POSTGRES_PORT} user={REPLICATION} passfile={PASSWORD_FILE} application_name={me} \
         connect_timeout=3 keepalives_idle=5 keepalives_interval=2 keepalives_count=3 tcp_user_timeout=10000"
    )
}

/// Writes down the password to the primary, for nobody else to read.
pub(crate) fn write_password(password: &str) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let escaped = password.replace('\\', "\\\\").replace(':', "\\:");
    let new = format!("{PASSWORD_FILE}.new");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    writeln!(file, "*:*:*:{REPLICATION}:{escaped}")?;
    fs::rename(new, PASSWORD_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(parameters: &[(&str, &str)], floor: &[(&str, u64)]) -> String {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let plan = Plan { parameters, ..Plan::default() };
        let floor = floor.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        render(&Settings {
            me: "db-1",
            plan: &plan,
            rule: None,
            archive: None,
            upstream: Some("db-2-0"),
            floor: &floor,
        })
    }

    #[test]
    fn a_standby_has_at_least_what_its_primary_had() {
        let rows = [
            (None, None, "100"),
            (None, Some(150), "150"),
            (Some("50"), None, "50"),
            (Some("50"), Some(100), "100"),
            (Some("200"), Some(100), "200"),
        ];
        for (asked, floor, expected) in rows {
            let asked: Vec<(&str, &str)> = asked.map(|value| ("max_connections", value)).into_iter().collect();
            let floor: Vec<(&str, u64)> = floor.map(|value| ("max_connections", value)).into_iter().collect();
            let text = text(&asked, &floor);
            let line = text.lines().find_map(|line| line.strip_prefix("max_connections = '"));
            assert_eq!(line.map(|line| line.trim_end_matches('\'')), Some(expected));
        }
    }

    #[test]
    fn what_people_write_is_quoted_and_the_operator_has_the_last_word() {
        let text = text(&[("search_path", "it's"), ("port", "1")], &[]);
        assert!(text.contains("search_path = 'it''s'\n") && text.contains("port = '5432'\n"), "{text}");
        assert!(text.contains("primary_conninfo = 'host=db-2-0 port=5432"), "{text}");
    }
}
