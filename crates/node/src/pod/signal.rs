//! The names of signals, as images give them.

/// The signals without a meaning of their own.
const REAL_TIME_FIRST: i32 = 34;
const REAL_TIME_LAST: i32 = 64;

/// The number of a signal such as `SIGQUIT`, `QUIT` or `3`; none if the kernel has no such.
pub(crate) fn signal_number(name: &str) -> Option<i32> {
    match name.trim_start_matches("SIG") {
        "TERM" => Some(libc::SIGTERM),
        "INT" => Some(libc::SIGINT),
        "QUIT" => Some(libc::SIGQUIT),
        "HUP" => Some(libc::SIGHUP),
        "KILL" => Some(libc::SIGKILL),
        "USR1" => Some(libc::SIGUSR1),
        "USR2" => Some(libc::SIGUSR2),
        "WINCH" => Some(libc::SIGWINCH),
        "ABRT" => Some(libc::SIGABRT),
        "ALRM" => Some(libc::SIGALRM),
        "CONT" => Some(libc::SIGCONT),
        "STOP" => Some(libc::SIGSTOP),
        "PIPE" => Some(libc::SIGPIPE),
        "RTMIN" => Some(REAL_TIME_FIRST),
        other => {
            let number = match other.strip_prefix("RTMIN+") {
                Some(offset) => offset.parse::<i32>().ok().map(|offset| offset.saturating_add(REAL_TIME_FIRST)),
                None => other.parse().ok(),
            };
            number.filter(|number| (1..=REAL_TIME_LAST).contains(number))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        let check = |name: &str, expect: Option<i32>| assert_eq!(signal_number(name), expect, "{name}");
        check("SIGQUIT", Some(libc::SIGQUIT));
        check("QUIT", Some(libc::SIGQUIT));
        check("3", Some(3));
        check("SIGRTMIN+3", Some(37));
        check("0", None);
        check("SIGNONE", None);
    }
}
