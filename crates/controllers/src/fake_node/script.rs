//! Simple commands, followed without being run: `sleep`, `exit`, `true`, `false`, `echo`, and loops that never end.

use jiff::SignedDuration;

use super::rule::End;

/// The longest sleep, for those who say "infinity".
const SLEEP_SECONDS_MAX: i64 = 365 * 24 * 3600;

/// Shells whose scripts are read.
const SHELLS: [&str; 4] = ["sh", "bash", "ash", "dash"];

/// How a command goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    Ends(End),
    Serves,
}

/// Follows a command; `None` if it does more than this can follow.
pub(super) fn follow(words: &[&str]) -> Option<Course> {
    let (first, rest) = words.split_first()?;
    let name = first.rsplit('/').next().unwrap_or_default();
    if !SHELLS.contains(&name) {
        let mut course = State::default();
        course.step(name, rest)?;
        return Some(course.end());
    }
    let (flag, script) = rest.split_first()?;
    if !(flag.starts_with('-') && flag.ends_with('c')) {
        return None;
    }
    follow_script(script.first()?)
}

fn follow_script(script: &str) -> Option<Course> {
    let endless = ["while true", "while :", "while sleep", "tail -f", "sleep infinity"];
    if endless.iter().any(|words| script.contains(words)) {
        return Some(Course::Serves);
    }
    let mut course = State::default();
    for statement in script.split(['\n', ';']).flat_map(|part| part.split("&&")) {
        let words: Vec<&str> = statement.split_whitespace().collect();
        let Some((name, rest)) = words.split_first() else { continue };
        course.step(name, rest)?;
        if course.over {
            break;
        }
    }
    Some(course.end())
}

#[derive(Default)]
struct State {
    slept: i64,
    code: i32,
    over: bool,
}

impl State {
    fn step(&mut self, name: &str, rest: &[&str]) -> Option<()> {
        // A statement with more to it than words is for a shell.
        if rest.iter().any(|word| name != "echo" && word.contains(['$', '`', '|', '<', '>', '('])) {
            return None;
        }
        self.code = match name {
            "sleep" => {
                self.slept = self.slept.saturating_add(seconds(rest.first()?)?).min(SLEEP_SECONDS_MAX);
                0
            }
            "exit" => {
                self.over = true;
                rest.first().map_or(Some(self.code), |code| code.parse().ok())?
            }
            "true" | ":" | "echo" => 0,
            "false" => 1,
            _ => return None,
        };
        Some(())
    }

    fn end(&self) -> Course {
        if self.slept == SLEEP_SECONDS_MAX {
            return Course::Serves;
        }
        Course::Ends(End { after: SignedDuration::from_secs(self.slept), exit_code: self.code })
    }
}

/// The time that `sleep` is told; a fraction counts as a whole second.
fn seconds(time: &str) -> Option<i64> {
    if matches!(time, "infinity" | "inf") {
        return Some(SLEEP_SECONDS_MAX);
    }
    let (number, unit) = match time.char_indices().last()? {
        (at, 's') => (&time[..at], 1.0),
        (at, 'm') => (&time[..at], 60.0),
        (at, 'h') => (&time[..at], 3600.0),
        (at, 'd') => (&time[..at], 86400.0),
        _ => (time, 1.0),
    };
    let seconds: f64 = number.parse().ok().filter(|number: &f64| *number >= 0.0)?;
    // The bound makes the conversion exact.
    Some((seconds * unit).ceil().min(SLEEP_SECONDS_MAX as f64) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expect: &str) {
        let told = match follow(words) {
            None => "unknown".to_owned(),
            Some(Course::Serves) => "serves".to_owned(),
            Some(Course::Ends(end)) => format!("{} s, {}", end.after.as_secs(), end.exit_code),
        };
        assert_eq!(told, expect, "{words:?}");
    }

    #[test]
    fn simple_commands_are_followed() {
        check(&["/bin/false"], "0 s, 1");
        check(&["sleep", "1.5"], "2 s, 0");
        check(&["sleep", "2m"], "120 s, 0");
        check(&["sleep", "infinity"], "serves");
        check(&["/bin/sh", "-c", "echo $HOME; sleep 5s && exit 7; sleep 9"], "5 s, 7");
        check(&["sh", "-ec", "false\nexit"], "0 s, 1");
        check(&["sh", "-c", "while true; do sleep 1; done"], "serves");
    }

    #[test]
    fn what_needs_a_shell_is_not_guessed() {
        check(&[], "unknown");
        check(&["server", "--port", "80"], "unknown");
        check(&["sh", "-c", "if [ -r /data ]; then exit 0; fi; exit 1"], "unknown");
        check(&["sh", "-c", "exit $(( $RANDOM / 16384 ))"], "unknown");
        check(&["sh", "script.sh"], "unknown");
    }
}
