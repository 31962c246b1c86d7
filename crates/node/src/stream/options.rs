//! What a client wants of a stream, as kubelet's paths and parameters say it.

/// What a client wants of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the query parameters of the API")]
pub(super) struct Options {
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) tty: bool,
}

impl Options {
    /// Reads the parameters of a request.
    ///
    /// # Errors
    /// The sentence that says what is missing.
    pub(super) fn parse(query: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let flag = matches!(&*value, "1" | "true");
            match &*name {
                "command" => options.command.push(value.into_owned()),
                "input" => options.stdin = flag,
                "output" => options.stdout = flag,
                "error" => options.stderr = flag,
                "tty" => options.tty = flag,
                _ => {}
            }
        }
        // A terminal has one output.
        options.stderr &= !options.tty;
        if options.stdin || options.stdout || options.stderr {
            Ok(options)
        } else {
            Err("you must specify at least 1 of stdin, stdout, stderr".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read() {
        let options =
            Options::parse("command=sh&command=-c&command=a+%26%3D+b&input=1&output=1&error=1&tty=1").unwrap();
        assert_eq!(options.command, ["sh", "-c", "a &= b"]);
        assert!(options.stdin && options.stdout && options.tty && !options.stderr);
        assert!(Options::parse("command=sh").is_err());
    }
}
