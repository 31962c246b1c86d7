//! How the program that supervises a server gets into its container.
//!
//! A server's image has PostgreSQL and nothing of ours. The supervisor is the operator's own program, mounted read-only: from the
//! operator's image as a volume, or, where the operator runs from the machine's files (image `host`), from its path there.

use std::ffi::OsString;
use std::path::PathBuf;

use windlass::k8s_openapi::api::core::v1::{HostPathVolumeSource, ImageVolumeSource, Volume, VolumeMount};

#[cfg(test)]
use crate::instance::COMMAND;

/// The environment variable that names the operator's image.
const IMAGE: &str = "WINDLASS_OPERATOR_IMAGE";
/// Where the program is in a member's container.
const PLACE: &str = "/supervisor";
const VOLUME: &str = "supervisor";

/// The program, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Supervisor {
    /// The operator's image; none if it runs from the machine's own files.
    image: Option<String>,
    /// Where the program is, in the image or on the machine.
    program: PathBuf,
    /// The words that make the program this operator.
    words: Vec<String>,
}

impl Supervisor {
    /// The program that runs now.
    pub(crate) fn of_this_process() -> Self {
        let program = std::env::current_exe().unwrap_or_default();
        let image = std::env::var(IMAGE).ok().filter(|image| !image.is_empty());
        Self { image, program, words: words(std::env::args_os().skip(1)) }
    }

    /// What a container runs: the program as the command `word`.
    pub(crate) fn command(&self, word: &str) -> Vec<String> {
        let program = match &self.image {
            Some(_) => format!("{PLACE}{}", self.program.display()),
            None => PLACE.to_owned(),
        };
        std::iter::once(program).chain(self.words.iter().cloned()).chain([word.to_owned()]).collect()
    }

    /// The program as it runs now, as the command `word`, for a shell: inside of a container, it is where it was mounted.
    pub(crate) fn shell_command(&self, word: &str) -> String {
        let program = self.program.display().to_string();
        let all = std::iter::once(program).chain(self.words.iter().cloned()).chain([word.to_owned()]);
        all.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
    }

    /// What its Pod mounts.
    pub(crate) fn volume(&self) -> Volume {
        let mut volume = Volume { name: VOLUME.into(), ..Volume::default() };
        match &self.image {
            Some(image) => {
                volume.image =
                    Some(ImageVolumeSource { reference: Some(image.clone()), ..ImageVolumeSource::default() });
            }
            None => {
                let path = self.program.display().to_string();
                volume.host_path = Some(HostPathVolumeSource { path, type_: Some("File".into()) });
            }
        }
        volume
    }

    /// Where its container mounts it.
    pub(crate) fn mount(&self) -> VolumeMount {
        VolumeMount { name: VOLUME.into(), mount_path: PLACE.into(), read_only: Some(true), ..VolumeMount::default() }
    }
}

/// A word that a shell takes as it is.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A program that carries several operators is told by its first words which one it is: `operator NAME`.
fn words(arguments: impl Iterator<Item = OsString>) -> Vec<String> {
    let words: Vec<String> = arguments.take(2).filter_map(|word| word.into_string().ok()).collect();
    if words.first().is_some_and(|word| word == "operator") { words } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(image: Option<&str>, arguments: &[&str], command: &[&str]) {
        let words = words(arguments.iter().map(OsString::from));
        let supervisor = Supervisor { image: image.map(Into::into), program: "/usr/bin/op".into(), words };
        assert_eq!(supervisor.command(COMMAND), command);
        assert_eq!(supervisor.volume().image.is_some(), image.is_some());
    }

    #[test]
    fn a_member_runs_the_program_of_its_operator() {
        check(None, &["run"], &["/supervisor", "instance"]);
        check(None, &["operator", "pg", "run"], &["/supervisor", "operator", "pg", "instance"]);
        check(Some("op:1"), &["run", "--leader-elect"], &["/supervisor/usr/bin/op", "instance"]);
    }
}
