//! A page of the book as steps, and a reader who does them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::support::console::fits;

/// The longest that a step may take: the crates of Windlass may have to be built first.
const PATIENCE: Duration = Duration::from_secs(900);
/// The line that means that Ctrl-C is pressed.
const INTERRUPT: &str = "^C";

/// One step of a page.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Commands of a shell.
    Run(String),
    /// Lines that the commands before print, in this order; `…` stands for any text.
    Expect(String),
    /// Changes of a file, each from one text to another, saved at once.
    Edit { file: String, hunks: Vec<(String, String)> },
}

/// The fenced blocks of a page: `sh` are commands, `text` is output, `diff` is an edit.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match language {
            "sh" => steps.push(Step::Run(block.join("\n"))),
            "text" => steps.push(Step::Expect(block.join("\n"))),
            "diff" => steps.push(edit(&block)),
            other => panic!("the page has a block of {other:?}: nobody knows what to do with it"),
        }
    }
    steps
}

/// `--- FILE`, then lines with `-`, `+` or a blank before them; `@@` between what is not together in the file.
fn edit(block: &[&str]) -> Step {
    let (head, rest) = block.split_first().expect("an edit is not empty");
    let file = head.strip_prefix("--- ").expect("an edit begins with `--- FILE`").to_owned();
    let side = |hunk: &[&str], sign: char, other: char| -> String {
        let lines = hunk.iter().filter(|line| !line.starts_with(other));
        lines.map(|line| format!("{}\n", line.strip_prefix([sign, ' ']).unwrap_or(line))).collect()
    };
    let hunks = rest.split(|line| line.starts_with("@@"));
    Step::Edit { file, hunks: hunks.map(|hunk| (side(hunk, '-', '+'), side(hunk, '+', '-'))).collect() }
}

/// Somebody who follows the page in a folder of their own.
pub(crate) struct Reader {
    _dir: tempfile::TempDir,
    folder: PathBuf,
    /// What the last commands printed, and whether they succeeded.
    last: Option<(String, bool)>,
    dev: Option<Dev>,
    /// Whether the next output is that of `windlass dev`.
    looks_at_dev: bool,
}

/// A `windlass dev` that runs.
struct Dev {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Reader {
    /// In an empty folder, outside of the source: Cargo would take the project for a part of it.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path().to_path_buf();
        Self { _dir: dir, folder, last: None, dev: None, looks_at_dev: false }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.clone()
    }

    pub(crate) fn dev_has_ended(&self) -> bool {
        self.dev.is_none()
    }

    /// Does one step.
    pub(crate) fn take(&mut self, step: &Step) {
        match step {
            Step::Run(commands) => commands.lines().for_each(|line| self.run(line)),
            Step::Expect(text) if self.looks_at_dev => self.follow(text),
            Step::Expect(text) if text.starts_with(INTERRUPT) => self.follow(text),
            Step::Expect(text) => self.compare(text),
            Step::Edit { file, hunks } => self.edit(file, hunks),
        }
    }

    /// A command with this program in the PATH, and what Cargo built already.
    pub(crate) fn command(&self, line: &str) -> Command {
        let windlass = Path::new(env!("CARGO_BIN_EXE_windlass"));
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
        let path = std::env::var("PATH").unwrap_or_default();
        // What is one command is to be the process itself, so that signals reach it.
        let line = if line.contains('|') { line.to_owned() } else { format!("exec {line}") };
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(&self.folder).stdin(Stdio::null());
        command.env("PATH", format!("{}:{path}", windlass.parent().expect("a folder").display()));
        command.env("CARGO_TARGET_DIR", target).env("CARGO_NET_OFFLINE", "true").env_remove("CARGO");
        command.env_remove("KUBECONFIG");
        // What Cargo told this test of its own package would make build scripts run anew, and all that comes after them.
        for (name, _) in
            std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
        command
    }

    fn run(&mut self, line: &str) {
        if let Some((printed, succeeded)) = &self.last {
            assert!(succeeded, "nobody said that a command of the page fails, but it did:\n{printed}");
        }
        if let Some(folder) = line.strip_prefix("cd ") {
            self.folder.push(folder);
            return;
        }
        self.looks_at_dev = line == "windlass dev" || line.starts_with("windlass dev ");
        if self.looks_at_dev {
            return self.dev = Some(Dev::start(self.command(line)));
        }
        let output = self.command(line).output().unwrap_or_else(|error| panic!("{line}: {error}"));
        let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        eprintln!("$ {line}\n{printed}");
        self.last = Some((printed, output.status.success()));
    }

    fn compare(&mut self, expected: &str) {
        let (printed, succeeded) = self.last.take().expect("output comes after commands");
        assert_eq!(succeeded, !expected.starts_with("error:"), "{printed}");
        let mut lines = printed.lines();
        for line in expected.lines() {
            // Tests run side by side: the order of their lines is any.
            let found = if line.starts_with("test ") {
                printed.lines().any(|it| fits(it, line))
            } else {
                lines.any(|it| fits(it, line))
            };
            assert!(found, "the page says {line:?}, but this was printed:\n{printed}");
        }
        self.last = Some((printed, true));
    }

    fn follow(&mut self, expected: &str) {
        let mut dev = self.dev.take().expect("`windlass dev` runs");
        for line in expected.lines() {
            match line {
                INTERRUPT => dev.interrupt(),
                line => dev.until(line),
            }
        }
        if expected.starts_with(INTERRUPT) {
            dev.end();
            self.looks_at_dev = false;
        } else {
            self.dev = Some(dev);
        }
    }

    fn edit(&mut self, file: &str, hunks: &[(String, String)]) {
        let path = self.folder.join(file);
        let mut text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        for (from, to) in hunks {
            assert_eq!(text.matches(from).count(), 1, "{file} has this not once:\n{from}\n{text}");
            text = text.replace(from, to);
        }
        std::fs::write(&path, text).expect("it can be written");
        self.looks_at_dev = true;
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(dev) = &mut self.dev {
            dev.interrupt();
            let _ = dev.child.wait();
        }
    }
}

impl Dev {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("windlass dev starts");
        let output = child.stdout.take().expect("stdout was asked for");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                eprintln!("dev> {line}");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// Reads on until a line fits.
    fn until(&mut self, expected: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if fits(&line, expected) => return,
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Timeout) => panic!("{expected:?} did not come: {}", self.seen.join("\n")),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("windlass dev ended before it said {expected:?}: {}", self.seen.join("\n"))
                }
            }
        }
    }

    fn interrupt(&self) {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().expect("kill runs");
    }

    /// Waits for its end, after which nothing that it started is left.
    fn end(mut self) {
        let started: Vec<u32> = self
            .seen
            .iter()
            .filter_map(|line| line.strip_prefix("operator: started, process ")?.parse().ok())
            .collect();
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
        assert!(!started.is_empty(), "{:?}", self.seen);
        for pid in started {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the operator {pid} still runs");
        }
    }
}
