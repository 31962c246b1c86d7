//! The settings of a server: which are people's, which are the operator's, and why.

use std::collections::BTreeMap;

/// Settings that the operator makes, with the reason that people are told.
const FIXED: [(&str, &str); 26] = [
    ("archive_cleanup_command", "it would remove what a restore needs"),
    ("archive_command", "the operator archives"),
    ("archive_library", "the operator archives"),
    ("archive_mode", "the operator archives"),
    ("cluster_name", "it is the name of the member"),
    ("config_file", "the operator writes the settings"),
    ("data_directory", "it is on the member's volume"),
    ("external_pid_file", "the supervisor knows the process"),
    ("hba_file", "the operator decides who may connect"),
    ("hot_standby", "standbys answer queries"),
    ("ident_file", "the operator decides who may connect"),
    ("listen_addresses", "Services lead to every address of the Pod"),
    ("port", "Services lead to port 5432"),
    ("primary_conninfo", "it follows the primary"),
    ("primary_slot_name", "each member has a slot of its own"),
    ("promote_trigger_file", "only the holder of the lease is promoted"),
    ("recovery_end_command", "the operator leads recoveries"),
    ("recovery_target_timeline", "standbys follow every new primary"),
    ("restore_command", "the operator leads recoveries"),
    ("ssl", "the operator makes certificates"),
    ("ssl_cert_file", "the operator makes certificates"),
    ("ssl_key_file", "the operator makes certificates"),
    ("synchronous_standby_names", "say spec.synchronous"),
    ("unix_socket_directories", "the supervisor uses the socket"),
    ("wal_log_hints", "a former primary could not be led back"),
    ("full_page_writes", "data would not survive a crash"),
];

/// Settings that would break what the cluster promises, whatever their value.
const BLOCKED: [(&str, &str); 9] = [
    ("fsync", "data would not survive a crash"),
    ("ignore_checksum_failure", "broken data would spread"),
    ("ignore_system_indexes", "it is for repairs by hand"),
    ("allow_in_place_tablespaces", "it is for the developers of PostgreSQL"),
    ("zero_damaged_pages", "it destroys data"),
    ("recovery_min_apply_delay", "a standby that is late on purpose could never take over"),
    ("log_destination", "the log is the Pod's"),
    ("logging_collector", "the log is the Pod's"),
    ("restart_after_crash", "the supervisor relies on it"),
];

/// What is so unless people say otherwise.
const DEFAULTS: [(&str, &str); 15] = [
    ("hot_standby_feedback", "on"),
    // PostgreSQL's own: a setting that goes from the file would ask for a restart, even if it stays the same.
    ("max_connections", "100"),
    ("max_locks_per_transaction", "64"),
    ("max_prepared_transactions", "0"),
    ("max_worker_processes", "8"),
    ("max_replication_slots", "20"),
    // A member that is away holds back no more of the log than this; it is cloned anew then.
    ("max_slot_wal_keep_size", "1GB"),
    ("max_wal_senders", "20"),
    ("password_encryption", "scram-sha-256"),
    ("wal_keep_size", "128MB"),
    ("wal_level", "replica"),
    ("wal_receiver_status_interval", "1s"),
    ("wal_receiver_timeout", "10s"),
    // A new primary makes the slots of the others a moment after it leads: until then they try again.
    ("wal_retrieve_retry_interval", "500ms"),
    ("wal_sender_timeout", "10s"),
];

/// The settings of which a standby needs at least what the primary has, or it stops.
pub(crate) const AT_LEAST_AS_PRIMARY: [&str; 5] = [
    "max_connections",
    "max_worker_processes",
    "max_wal_senders",
    "max_prepared_transactions",
    "max_locks_per_transaction",
];

/// Why a setting cannot be chosen, for people; `None` if it can.
pub(crate) fn objection(name: &str, value: &str, is_synchronous: bool) -> Option<String> {
    let is_named_well = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.'));
    if !is_named_well {
        return Some("is not the name of a setting: write it in lowercase, as in pg_settings".into());
    }
    if value.chars().any(char::is_control) {
        return Some("has a line break or another control character in it".into());
    }
    let of = |table: &[(&str, &'static str)]| table.iter().find(|(known, _)| *known == name).map(|(_, why)| *why);
    if let Some(why) = of(&FIXED) {
        return Some(format!("is set by the operator: {why}"));
    }
    if let Some(why) = of(&BLOCKED) {
        return Some(format!("cannot be set: {why}"));
    }
    let is_weak = matches!(value, "off" | "local" | "false" | "no" | "0");
    (name == "synchronous_commit" && is_synchronous && is_weak)
        .then(|| "would acknowledge commits that spec.synchronous promises to be on standbys: set it in the sessions that can lose them".into())
}

/// The settings that follow from what people ask for: theirs win over the defaults.
pub(crate) fn effective(asked: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let defaults = DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut all: BTreeMap<String, String> = defaults.collect();
    all.extend(asked.iter().map(|(name, value)| (name.clone(), value.clone())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_not_peoples_are_refused_with_the_reason() {
        let rows = [
            ("work_mem", "8MB", false, None),
            ("pg_stat_statements.max", "10", false, None),
            ("port", "1", false, Some("is set by the operator: Services lead to port 5432")),
            ("fsync", "off", false, Some("cannot be set: data would not survive a crash")),
            ("Work_Mem", "1", false, Some("is not the name of a setting")),
            ("work_mem", "1\nfsync = off", false, Some("has a line break")),
            ("synchronous_commit", "off", false, None),
            ("synchronous_commit", "off", true, Some("would acknowledge commits")),
            ("synchronous_commit", "remote_apply", true, None),
        ];
        for (name, value, is_synchronous, expected) in rows {
            let objection = objection(name, value, is_synchronous);
            match expected {
                None => assert_eq!(objection, None, "{name}"),
                Some(beginning) => assert!(objection.is_some_and(|it| it.starts_with(beginning)), "{name}"),
            }
        }
    }

    #[test]
    fn what_people_ask_for_wins_over_defaults() {
        let asked = BTreeMap::from([("wal_level".to_owned(), "logical".to_owned())]);
        let all = effective(&asked);
        assert_eq!((all["wal_level"].as_str(), all["max_wal_senders"].as_str()), ("logical", "20"));
    }
}
