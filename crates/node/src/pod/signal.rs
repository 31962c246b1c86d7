//! Signals by the names that images give them.

/// The number of a signal that is given by name or number.
pub(super) fn number(name: &str) -> Option<i32> {
    match name.trim_start_matches("SIG") {
        "TERM" => Some(libc::SIGTERM),
        "INT" => Some(libc::SIGINT),
        "QUIT" => Some(libc::SIGQUIT),
        "HUP" => Some(libc::SIGHUP),
        "KILL" => Some(libc::SIGKILL),
        "USR1" => Some(libc::SIGUSR1),
        "USR2" => Some(libc::SIGUSR2),
        "WINCH" => Some(libc::SIGWINCH),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        let check = |name: &str, expect: Option<i32>| assert_eq!(number(name), expect, "{name}");
        check("SIGTERM", Some(15));
        check("QUIT", Some(3));
        check("12", Some(12));
        check("SIGNOTHING", None);
    }
}
