//! What a server is asked and told in SQL, over its socket.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use tokio_postgres::{Client, Config, NoTls};

use super::config::SOCKETS;
use crate::names::{APPLICATION, REPLICATION, SUPERUSER, slot};

/// A server that does not answer by then does not answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// What changes something may take longer.
const WORK_MAX: Duration = Duration::from_secs(60);

/// Why a server was not asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqlError {
    #[error("the server refuses: {0}")]
    Refused(#[from] tokio_postgres::Error),
    #[error("the server does not answer within {0:?}")]
    Silent(Duration),
}

impl SqlError {
    /// Whether the server said that it is on its way, or is not there to say anything.
    pub(crate) fn is_not_yet(&self) -> bool {
        match self {
            Self::Refused(error) => error.as_db_error().is_none_or(|it| it.code().code() == "57P03"),
            Self::Silent(_) => false,
        }
    }
}

/// What a server says of itself.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact by itself, not a state of one thing")]
pub(crate) struct Answer {
    pub(crate) in_recovery: bool,
    pub(crate) lsn: u64,
    /// The timeline that is received, if one is.
    pub(crate) received_timeline: Option<u32>,
    /// The timeline of the last checkpoint.
    pub(crate) checkpoint_timeline: u32,
    pub(crate) receiving: bool,
    pub(crate) streaming: bool,
    pub(crate) version: String,
    pub(crate) pending_restart: bool,
    /// The settings in its file that it does not take, and would not start with.
    pub(crate) refused: Option<String>,
    /// The settings that it has read, by their hash.
    pub(crate) settings: Option<String>,
    /// Of a server that archives: the file that went last, and the one that does not go.
    pub(crate) archiver: Option<(Option<String>, Option<String>)>,
    /// Of a primary: how far those that receive are behind, and how far they have the log.
    pub(crate) lags: BTreeMap<String, u64>,
    pub(crate) flushed: BTreeMap<String, u64>,
}

/// A server goes on saying that a setting waits for a restart after it was taken back, if it is in the file no more and never
/// was in force: that waits for nothing.
const VITALS: &str = "select pg_is_in_recovery(), \
    (case when pg_is_in_recovery() then coalesce(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0') \
     else pg_current_wal_flush_lsn() end - '0/0')::bigint, \
    (select received_tli from pg_stat_wal_receiver), \
    (select timeline_id from pg_control_checkpoint()), \
    exists (select from pg_stat_wal_receiver), \
    exists (select from pg_stat_wal_receiver where status = 'streaming'), \
    split_part(current_setting('server_version'), ' ', 1), \
    exists (select from pg_settings as it where pending_restart and (source = 'configuration file' \
        or exists (select from pg_file_settings as file where file.name = it.name))), \
    (select string_agg(concat_ws(': ', name, error), ', ') from pg_file_settings as file where error is not null \
        and not exists (select from pg_settings as it where it.name = file.name and pending_restart)), \
    current_setting('windlass.settings', true)";
const STANDBYS: &str = "select application_name, greatest(pg_current_wal_flush_lsn() - replay_lsn, 0)::bigint, \
    (flush_lsn - '0/0')::bigint from pg_stat_replication \
    where state = 'streaming' and replay_lsn is not null and flush_lsn is not null";

const ARCHIVER: &str = "select last_archived_wal, \
    case when last_failed_time > coalesce(last_archived_time, '-infinity') then last_failed_wal end \
    from pg_stat_archiver where current_setting('archive_mode') <> 'off'";

/// Asks a server how it is. The connection is a new one each time: it also tells whether the server takes them.
pub(crate) async fn ask() -> Result<Answer, SqlError> {
    within(ANSWER_MAX, async {
        let client = connect("postgres").await?;
        let row = client.query_one(VITALS, &[]).await?;
        let mut answer = Answer {
            in_recovery: row.get(0),
            lsn: row.get::<_, i64>(1).unsigned_abs(),
            received_timeline: row.get::<_, Option<i32>>(2).map(i32::unsigned_abs),
            checkpoint_timeline: row.get::<_, i32>(3).unsigned_abs(),
            receiving: row.get(4),
            streaming: row.get(5),
            version: row.get(6),
            pending_restart: row.get(7),
            refused: row.get(8),
            settings: row.get(9),
            ..Answer::default()
        };
        answer.archiver = client.query_opt(ARCHIVER, &[]).await?.map(|row| (row.get(0), row.get(1)));
        if !answer.in_recovery {
            let rows = client.query(STANDBYS, &[]).await?;
            let column =
                |index| rows.iter().map(move |row| (row.get(0), row.get::<_, i64>(index).unsigned_abs())).collect();
            (answer.lags, answer.flushed) = (column(1), column(2));
        }
        Ok(answer)
    })
    .await
}

/// Whether a server whose socket is elsewhere is in recovery still, and the time of the last commit that it replayed.
pub(crate) async fn recovery(sockets: &Path) -> Result<(bool, Option<String>), SqlError> {
    within(ANSWER_MAX, async {
        let client = connect_at(sockets, "postgres").await?;
        let statement = "select pg_is_in_recovery(), \
            to_char(pg_last_xact_replay_timestamp() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), \
            (select count(*) from pg_database)";
        let row = client.query_one(statement, &[]).await?;
        Ok((row.get(0), row.get(1)))
    })
    .await
}

/// Makes the standby a primary, and waits for it.
pub(crate) async fn promote() -> Result<(), SqlError> {
    execute("select pg_promote(true, 50)").await
}

/// Writes all down, so that what comes next has little to do.
pub(crate) async fn checkpoint() -> Result<(), SqlError> {
    execute("checkpoint").await
}

/// Whether the server has read this rule of acknowledgement.
pub(crate) async fn enforced(setting: &str) -> Result<bool, SqlError> {
    within(ANSWER_MAX, async {
        let client = connect("postgres").await?;
        let row = client.query_one("select current_setting('synchronous_standby_names')", &[]).await?;
        Ok(row.get::<_, String>(0) == setting)
    })
    .await
}

/// Makes the slots of `members` those that are there; `false` if others are in use still.
pub(crate) async fn keep_slots(members: &BTreeSet<String>) -> Result<bool, SqlError> {
    let wanted: Vec<String> = members.iter().map(|member| slot(member)).collect();
    within(WORK_MAX, async {
        let client = connect("postgres").await?;
        let missing = "select pg_create_physical_replication_slot(name, true) from unnest($1::text[]) as name \
            where not exists (select from pg_replication_slots where slot_name = name)";
        client.execute(missing, &[&wanted]).await?;
        let surplus = "from pg_replication_slots \
            where slot_type = 'physical' and not temporary and not slot_name = any ($1::text[])";
        let unused = format!("select pg_drop_replication_slot(slot_name) {surplus} and not active");
        client.execute(&unused, &[&wanted]).await?;
        let left = client.query(&format!("select {surplus}"), &[&wanted]).await?;
        Ok(left.is_empty())
    })
    .await
}

/// The passwords of the roles that every cluster has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passwords {
    pub(crate) superuser: String,
    pub(crate) replication: String,
    pub(crate) application: String,
}

/// What a former primary needs to be led back.
const REWIND_FUNCTIONS: [&str; 4] = [
    "pg_ls_dir(text, boolean, boolean)",
    "pg_stat_file(text, boolean)",
    "pg_read_binary_file(text)",
    "pg_read_binary_file(text, bigint, bigint, boolean)",
];

/// Makes the roles and the database that every cluster has, with these passwords.
pub(crate) async fn provision(passwords: &Passwords) -> Result<(), SqlError> {
    within(WORK_MAX, async {
        let client = connect("postgres").await?;
        let roles = [
            (SUPERUSER, "superuser", &passwords.superuser),
            (REPLICATION, "replication", &passwords.replication),
            (APPLICATION, "nosuperuser", &passwords.application),
        ];
        // A statement that fails is not to be in the log: it has a password in it.
        client.batch_execute("set log_min_error_statement = panic; set log_statement = none").await?;
        for (role, attribute, password) in roles {
            let known = client.query_opt("select from pg_roles where rolname = $1", &[&role]).await?.is_some();
            let verb = if known { "alter" } else { "create" };
            let password = password.replace('\'', "''");
            client.batch_execute(&format!("{verb} role {role} login {attribute} password '{password}'")).await?;
        }
        for function in REWIND_FUNCTIONS {
            client.batch_execute(&format!("grant execute on function {function} to {REPLICATION}")).await?;
        }
        let known = client.query_opt("select from pg_database where datname = $1", &[&APPLICATION]).await?.is_some();
        if !known {
            client.batch_execute(&format!("create database {APPLICATION} owner {APPLICATION}")).await?;
        }
        Ok(())
    })
    .await
}

async fn execute(statement: &str) -> Result<(), SqlError> {
    within(WORK_MAX, async { Ok(connect("postgres").await?.batch_execute(statement).await?) }).await
}

async fn within<T>(max: Duration, work: impl Future<Output = Result<T, SqlError>>) -> Result<T, SqlError> {
    tokio::time::timeout(max, work).await.unwrap_or(Err(SqlError::Silent(max)))
}

async fn connect(database: &str) -> Result<Client, SqlError> {
    connect_at(Path::new(SOCKETS), database).await
}

async fn connect_at(sockets: &Path, database: &str) -> Result<Client, SqlError> {
    let mut config = Config::new();
    config.host_path(sockets).port(crate::names::POSTGRES_PORT).user(SUPERUSER).dbname(database);
    // What the supervisor writes waits for no standby: there may be none yet.
    config.application_name("supervisor").options("-c synchronous_commit=local");
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection); // Ends with the client.
    Ok(client)
}
