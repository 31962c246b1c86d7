//! What libFuzzer says at the end of a run.

use std::fmt;

/// How the run of one target went.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    executions: u64,
    /// The edges of the program that were reached.
    edges: u64,
    /// Why the run ended before its time, if it did, and the input with which it did.
    finding: Option<(String, String)>,
}

impl Outcome {
    /// Reads the log of a run.
    pub(super) fn read(log: &str, succeeded: bool) -> Self {
        let after = |line: &str, word: &str| -> Option<u64> {
            line.split(word).nth(1)?.split_whitespace().next()?.parse().ok()
        };
        let last = |word: &str| log.lines().rev().find_map(|line| after(line, word)).unwrap_or_default();
        let reason = || {
            let lines = || log.lines().filter(|line| !line.trim().is_empty());
            let panic = lines().skip_while(|line| !line.contains("panicked at")).take(2).collect::<Vec<_>>();
            let error = lines().find(|line| line.contains("ERROR: ")).map(str::to_owned);
            if panic.is_empty() { error.unwrap_or_else(|| "the program failed".to_owned()) } else { panic.join(" ") }
        };
        let input = || {
            let written = log.lines().find_map(|line| line.split("Test unit written to ").nth(1));
            written.unwrap_or("no input; see the log").to_owned()
        };
        Self {
            executions: last("stat::number_of_executed_units:"),
            edges: last(" cov: "),
            finding: (!succeeded).then(|| (reason(), input())),
        }
    }

    pub(super) fn is_finding(&self) -> bool {
        self.finding.is_some()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:>9} inputs, {:>6} edges", self.executions, self.edges)?;
        match &self.finding {
            Some((reason, input)) => write!(formatter, "; FOUND {reason}\n             {input}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_run_is_read() {
        let log = "#2 INITED cov: 12 ft: 13\n#9 DONE   cov: 345 ft: 600 corp: 7/1b\n\
                   stat::number_of_executed_units: 4242\nstat::average_exec_per_sec:     70\n";
        assert_eq!(Outcome::read(log, true), Outcome { executions: 4242, edges: 345, finding: None });
    }

    #[test]
    fn a_finding_names_its_input() {
        let log = "#9 NEW cov: 3 ft: 4\n\nthread 'x' panicked at src/a.rs:1:2:\nno\nartifact_prefix='/a/'; Test unit written to /a/crash-1\n";
        let outcome = Outcome::read(log, false);
        assert!(outcome.is_finding());
        assert!(outcome.to_string().ends_with("thread 'x' panicked at src/a.rs:1:2: no\n             /a/crash-1"));
        let slow = Outcome::read("==1== ERROR: libFuzzer: timeout after 11 seconds\n", false);
        assert!(slow.to_string().contains("timeout after 11 seconds"));
    }
}
