//! A writer that knows what was acknowledged to it, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio_postgres::{Client, Config, NoTls};

/// A statement that is not answered by then is given up, and not known to be written.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Between two writes.
const PAUSE: Duration = Duration::from_millis(20);
const TABLE: &str =
    "create table if not exists log (id bigint primary key, timeline text not null, server text not null)";
/// Each row says on which timeline and by which server it was written.
const WRITE: &str = "insert into log values ($1, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), host(inet_server_addr())) \
                     returning timeline, server";

/// A write that was acknowledged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Acknowledged {
    pub(crate) id: i64,
    pub(crate) timeline: String,
    pub(crate) server: String,
    pub(crate) at: Instant,
}

/// Writes until it is stopped.
pub(crate) struct Writer {
    log: Arc<Mutex<Vec<Acknowledged>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    config: Config,
}

impl Writer {
    /// Begins to write.
    pub(crate) fn start(address: &str, password: &str) -> Self {
        let mut config = Config::new();
        config.host(address).port(5432).user("app").password(password).dbname("app");
        config.connect_timeout(Duration::from_secs(1));
        let (log, is_over): (Arc<Mutex<Vec<Acknowledged>>>, Arc<AtomicBool>) = Default::default();
        let (writing, stop, to) = (log.clone(), is_over.clone(), config.clone());
        let thread = std::thread::spawn(move || runtime().block_on(write(to, writing, stop)));
        let writer = Self { log, is_over, thread: Some(thread), config };
        writer.advance(1);
        writer
    }

    /// Waits until `more` writes are acknowledged.
    pub(crate) fn advance(&self, more: usize) {
        let goal = self.count() + more;
        super::support::eventually("writes are acknowledged", || {
            if self.count() >= goal { Ok(()) } else { Err(format!("{} of {goal}", self.count())) }
        });
    }

    fn count(&self) -> usize {
        self.log.lock().expect("the writer does not panic").len()
    }

    /// The ids of all writes that are acknowledged by now.
    pub(crate) fn acknowledged(&self) -> Vec<i64> {
        self.log.lock().expect("the writer does not panic").iter().map(|it| it.id).collect()
    }

    /// The longest time without an acknowledgement since `from`.
    pub(crate) fn gap_since(&self, from: Instant) -> Duration {
        let log = self.log.lock().expect("the writer does not panic");
        let first = log.iter().rposition(|it| it.at < from).unwrap_or(0);
        let times: Vec<Instant> = log[first..].iter().map(|it| it.at).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }

    /// Ends, and checks what is there against what was acknowledged: nothing is lost, and at no time were there two writers.
    pub(crate) fn verify(mut self) -> usize {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.take().expect("it is ended once").join().expect("the writer does not panic");
        let log = std::mem::take(&mut *self.log.lock().expect("the writer is done"));
        let rows = runtime().block_on(read(&self.config));
        for it in &log {
            let there = rows.get(&it.id);
            assert_eq!(there, Some(&(it.timeline.clone(), it.server.clone())), "{it:?} was acknowledged");
        }
        let mut servers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for it in &log {
            servers.entry(&it.timeline).or_default().insert(&it.server);
        }
        assert!(servers.values().all(|servers| servers.len() == 1), "one server for each timeline: {servers:?}");
        let is_ordered = log.windows(2).all(|pair| pair[0].timeline <= pair[1].timeline);
        assert!(is_ordered, "no write on a timeline after one on a later timeline");
        log.len()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

async fn connect(config: &Config) -> Option<Client> {
    let (client, connection) = tokio::time::timeout(ANSWER_MAX, config.connect(NoTls)).await.ok()?.ok()?;
    tokio::spawn(connection);
    Some(client)
}

async fn write(config: Config, log: Arc<Mutex<Vec<Acknowledged>>>, is_over: Arc<AtomicBool>) {
    let (mut client, mut id) = (None, 0);
    while !is_over.load(Ordering::SeqCst) {
        tokio::time::sleep(PAUSE).await;
        let Some(connected) = &client else {
            client = connect(&config).await;
            if let Some(connected) = &client {
                let _ = tokio::time::timeout(ANSWER_MAX, connected.batch_execute(TABLE)).await;
            }
            continue;
        };
        id += 1;
        match tokio::time::timeout(ANSWER_MAX, connected.query_one(WRITE, &[&id])).await {
            Ok(Ok(row)) => {
                let it = Acknowledged { id, timeline: row.get(0), server: row.get(1), at: Instant::now() };
                log.lock().expect("nobody panics with it").push(it);
            }
            _ => client = None,
        }
    }
}

async fn read(config: &Config) -> BTreeMap<i64, (String, String)> {
    for _ in 0..60 {
        if let Some(client) = connect(config).await
            && let Ok(rows) = client.query("select id, timeline, server from log", &[]).await
        {
            return rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("the rows cannot be read");
}
