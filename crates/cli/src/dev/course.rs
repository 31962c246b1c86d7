//! What `windlass dev` does next: a function of what happened, without any doing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::install::Installed;
use super::resources::Row;

/// Lines of the operator's log that are kept.
const LOG_LINES_MAX: usize = 400;
/// Lines of the compiler that are kept: the first ones, which matter most.
const COMPILER_LINES_MAX: usize = 400;
/// How long an operator that ended by itself is left alone, at first and at most.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(30);

/// What happened. What an operator's process does has the number of its run: that of an earlier one no longer counts.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// Code was changed.
    SourcesChanged,
    /// Samples were changed.
    SamplesChanged,
    /// Cargo printed a line.
    BuildSaid(String),
    /// A build ended: how long it took, or why there was none.
    Built(Result<Duration, Option<String>>),
    /// The cluster has, or has not, what the program needs.
    Installed(Result<Arc<Installed>, String>),
    /// The operator runs.
    Started(u32, u32),
    /// The operator printed a line.
    Said(u32, String),
    /// The operator is ready.
    Ready(u32),
    /// The operator ended by itself.
    Ended(u32, String),
    /// It is time to start it again.
    Again(u32),
    /// The samples were applied, or not.
    Applied(Result<Vec<String>, String>),
    /// The resources as they are now.
    Seen(Vec<Row>),
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Build the program.
    Build,
    /// Put what the program needs into the cluster.
    Install,
    /// Stop the operator, if one runs, and start the program as this run.
    Start(u32),
    /// Say `Again` for this run after a while.
    Pause(u32, Duration),
    /// Apply the samples.
    Apply,
}

/// How the program is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// Being built; what Cargo says.
    Running(String),
    /// Built in this time.
    Done(Duration),
    /// Not built.
    Failed,
}

/// How the operator is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// Not started yet.
    Absent,
    /// Started as this process.
    Starting(u32),
    /// At work as this process.
    Ready(u32),
    /// Ended by itself.
    Ended(String),
}

/// The state of the loop.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) build: Build,
    pub(crate) compiler: Vec<String>,
    pub(crate) operator: Operator,
    pub(crate) log: VecDeque<String>,
    pub(crate) rows: Vec<Row>,
    /// What a person has to look at, besides the compiler.
    pub(crate) trouble: Option<String>,
    pub(crate) installed: Option<Arc<Installed>>,
    run: u32,
    is_dirty: bool,
    pause: Duration,
}

impl Course {
    /// The beginning, and what to do first.
    pub(crate) fn begin() -> (Self, Vec<Order>) {
        let course = Self {
            build: Build::Running(String::new()),
            compiler: Vec::new(),
            operator: Operator::Absent,
            log: VecDeque::new(),
            rows: Vec::new(),
            trouble: None,
            installed: None,
            run: 0,
            is_dirty: false,
            pause: RESTART_PAUSE,
        };
        (course, vec![Order::Build])
    }

    /// Takes in what happened and says what is to be done about it.
    pub(crate) fn take(&mut self, event: Event) -> Vec<Order> {
        match event {
            Event::SourcesChanged if matches!(self.build, Build::Running(_)) => {
                self.is_dirty = true;
                Vec::new()
            }
            Event::SourcesChanged => self.rebuild(),
            Event::BuildSaid(line) => self.hear_cargo(line),
            Event::Built(result) => self.built(result),
            Event::Installed(Ok(installed)) => {
                self.trouble = installed
                    .kinds
                    .is_empty()
                    .then(|| "no kind yet: `windlass create api --group G --version v1 --kind K` adds one".to_owned());
                self.installed = Some(installed);
                self.pause = RESTART_PAUSE;
                self.start()
            }
            Event::Installed(Err(why)) | Event::Applied(Err(why)) => {
                self.trouble = Some(why);
                Vec::new()
            }
            Event::Applied(Ok(_)) => {
                self.trouble = None;
                Vec::new()
            }
            Event::SamplesChanged if matches!(self.operator, Operator::Ready(_)) => vec![Order::Apply],
            Event::Seen(rows) => {
                self.rows = rows;
                Vec::new()
            }
            Event::SamplesChanged => Vec::new(), // They are applied when the operator is ready.
            of_a_run => self.take_of_run(of_a_run),
        }
    }

    fn take_of_run(&mut self, event: Event) -> Vec<Order> {
        match event {
            Event::Started(run, pid) if run == self.run => self.operator = Operator::Starting(pid),
            Event::Said(run, line) if run == self.run => {
                self.log.push_back(line);
                while self.log.len() > LOG_LINES_MAX {
                    self.log.pop_front();
                }
            }
            Event::Ready(run) if run == self.run => {
                if let Operator::Starting(pid) = self.operator {
                    self.operator = Operator::Ready(pid);
                    return vec![Order::Apply];
                }
            }
            Event::Ended(run, how) if run == self.run => {
                self.operator = Operator::Ended(how);
                let pause = self.pause;
                self.pause = (pause * 2).min(RESTART_PAUSE_MAX);
                return vec![Order::Pause(run, pause)];
            }
            Event::Again(run) if run == self.run => return self.start(),
            _ => {} // Of a run that is over.
        }
        Vec::new()
    }

    fn rebuild(&mut self) -> Vec<Order> {
        self.build = Build::Running(String::new());
        self.compiler.clear();
        self.is_dirty = false;
        vec![Order::Build]
    }

    fn start(&mut self) -> Vec<Order> {
        self.run += 1;
        vec![Order::Start(self.run)]
    }

    fn hear_cargo(&mut self, line: String) -> Vec<Order> {
        if is_progress(&line) {
            self.build = Build::Running(line.trim().to_owned());
        } else if self.compiler.len() < COMPILER_LINES_MAX {
            self.compiler.push(line);
        }
        Vec::new()
    }

    fn built(&mut self, result: Result<Duration, Option<String>>) -> Vec<Order> {
        self.build = match result {
            Ok(took) => Build::Done(took),
            Err(why) => {
                self.compiler.extend(why);
                Build::Failed
            }
        };
        match self.build {
            _ if self.is_dirty => self.rebuild(),
            Build::Done(_) => vec![Order::Install],
            _ => Vec::new(), // The operator that runs goes on.
        }
    }
}

/// Whether a line of Cargo says how far it is: its first word stands to the right of a margin.
pub(crate) fn is_progress(line: &str) -> bool {
    const WORDS: [&str; 12] = [
        "Blocking",
        "Building",
        "Checking",
        "Compiling",
        "Downloaded",
        "Downloading",
        "Finished",
        "Fresh",
        "Locking",
        "Removing",
        "Updating",
        "Adding",
    ];
    line.starts_with(' ') && line.split_whitespace().next().is_some_and(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed() -> Event {
        Event::Installed(Ok(Arc::new(Installed::default())))
    }

    fn running() -> Course {
        let (mut course, first) = Course::begin();
        assert_eq!(first, [Order::Build]);
        assert_eq!(course.take(Event::Built(Ok(Duration::ZERO))), [Order::Install]);
        assert_eq!(course.take(installed()), [Order::Start(1)]);
        assert_eq!(course.take(Event::Started(1, 77)), []);
        assert_eq!(course.take(Event::Ready(1)), [Order::Apply]);
        course
    }

    #[test]
    fn a_change_is_built_installed_and_started() {
        let mut course = running();
        assert_eq!(course.take(Event::SourcesChanged), [Order::Build]);
        assert_eq!(course.take(Event::Built(Ok(Duration::ZERO))), [Order::Install]);
        assert_eq!(course.take(installed()), [Order::Start(2)]);
        // What the one before still says no longer counts.
        assert_eq!(course.take(Event::Ended(1, "killed".into())), []);
        assert_eq!(course.take(Event::Ready(1)), []);
        assert_eq!(course.take(Event::Started(2, 78)), []);
        assert_eq!(course.operator, Operator::Starting(78));
    }

    #[test]
    fn a_build_that_fails_leaves_the_operator_alone() {
        let mut course = running();
        course.take(Event::SourcesChanged);
        course.take(Event::BuildSaid("   Compiling shop v0.1.0".into()));
        course.take(Event::BuildSaid("error[E0308]: mismatched types".into()));
        assert_eq!(course.take(Event::Built(Err(None))), []);
        assert_eq!((&course.build, &course.operator), (&Build::Failed, &Operator::Ready(77)));
        assert_eq!(course.compiler, ["error[E0308]: mismatched types"]);
        assert_eq!(course.take(Event::SourcesChanged), [Order::Build]);
        assert!(course.compiler.is_empty());
    }

    #[test]
    fn a_change_during_a_build_is_built_after_it() {
        let mut course = running();
        course.take(Event::SourcesChanged);
        assert_eq!(course.take(Event::SourcesChanged), []);
        assert_eq!(course.take(Event::Built(Ok(Duration::ZERO))), [Order::Build]);
        assert_eq!(course.take(Event::Built(Ok(Duration::ZERO))), [Order::Install]);
    }

    #[test]
    fn what_cannot_be_installed_leaves_the_operator_alone() {
        let mut course = running();
        course.take(Event::SourcesChanged);
        course.take(Event::Built(Ok(Duration::ZERO)));
        assert_eq!(course.take(Event::Installed(Err("refused".into()))), []);
        assert_eq!((course.trouble.as_deref(), &course.operator), (Some("refused"), &Operator::Ready(77)));
    }

    #[test]
    fn an_operator_that_ends_is_started_again_ever_more_slowly() {
        let mut course = running();
        let mut pauses = Vec::new();
        for run in 1..8 {
            let orders = course.take(Event::Ended(run, "exit status: 1".into()));
            let [Order::Pause(_, pause)] = orders[..] else { panic!("{orders:?}") };
            pauses.push(pause.as_secs());
            assert_eq!(course.take(Event::Again(run)), [Order::Start(run + 1)]);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn samples_wait_for_the_operator() {
        let (mut course, _) = Course::begin();
        assert_eq!(course.take(Event::SamplesChanged), []);
        assert_eq!(running().take(Event::SamplesChanged), [Order::Apply]);
    }

    #[test]
    fn the_log_is_bounded() {
        let mut course = running();
        (0..1000).for_each(|number| drop(course.take(Event::Said(1, number.to_string()))));
        assert_eq!((course.log.len(), course.log.back().map(String::as_str)), (LOG_LINES_MAX, Some("999")));
    }
}
