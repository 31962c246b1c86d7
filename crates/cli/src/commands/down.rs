//! `windlass down`: stops the embedded cluster and every process it runs.

use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::arguments::{DownOptions, Target};
use crate::connection::dir;
use crate::failure::Failure;
use crate::view::output::say;

/// Pods get their grace period; after this time the command gives up waiting.
const STOP_WAIT: Duration = Duration::from_secs(60);
const STOP_POLL: Duration = Duration::from_millis(50);

/// Runs the command.
pub(crate) async fn run(options: &DownOptions, target: &Target) -> Result<(), Failure> {
    let dir = dir(target);
    if !dir.is_dir() {
        return Err(
            Failure::no_cluster(format!("no cluster in {}", dir.display())).advice("name its folder with --dir")
        );
    }
    let holder = windlass_cluster::holder(&dir);
    if let Some(pid) = holder {
        stop(pid, &dir).await?;
    }
    // After a stop as well: a process that was killed holds the folder until the kernel is done with it, and ends no Pod.
    let word = if holder.is_some() { "stopped" } else { "not running" };
    match windlass_cluster::end_survivors(&dir) {
        0 => say!("{word}"),
        ended => say!("{word}; ended {ended} containers that a killed cluster had left"),
    }
    if options.purge {
        purge(&dir)?;
    }
    Ok(())
}

/// Deletes the folder, if it is one of ours.
fn purge(dir: &Path) -> Result<(), Failure> {
    if !dir.join("lock").is_file() {
        return Err(Failure::new(format!("{} does not hold a cluster, so it is not deleted", dir.display())));
    }
    windlass_node::tree::remove(dir).map_err(|error| Failure::new(format!("{}: {error}", dir.display())))?;
    say!("deleted {}", dir.display());
    Ok(())
}

async fn stop(pid: u32, dir: &Path) -> Result<(), Failure> {
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| Failure::new(format!("{} names no process", dir.display())))?;
    match kill_process(process, Signal::TERM) {
        // It ended by itself meanwhile.
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => return Err(Failure::new(format!("cannot stop process {pid}: {error}"))),
    }
    let deadline = tokio::time::Instant::now() + STOP_WAIT;
    while windlass_cluster::holder(dir).is_some() {
        if tokio::time::Instant::now() > deadline {
            return Err(Failure::timed_out(format!("process {pid} has not ended yet")).advice(format!(
                "its Pods may need long to end; `kill -9 {pid}` and `windlass down` end all of it at once, no data is lost"
            )));
        }
        tokio::time::sleep(STOP_POLL).await;
    }
    Ok(())
}
