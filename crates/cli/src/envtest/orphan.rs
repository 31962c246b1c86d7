//! A test that is killed does not stop what it started; these programs notice and end by themselves.

use std::time::Duration;

use rustix::process::getppid;

/// How long a program may outlive whoever started it.
const INTERVAL: Duration = Duration::from_secs(1);

/// Ends this process when its parent is gone. Whoever has none from the start stays.
pub(super) fn end_with_parent() {
    let Some(parent) = getppid().filter(|parent| !parent.is_init()) else { return };
    std::thread::spawn(move || {
        while getppid() == Some(parent) {
            std::thread::sleep(INTERVAL);
        }
        std::process::exit(0);
    });
}
