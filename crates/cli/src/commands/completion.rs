//! `windlass completion`: shell completion from the definition of the arguments.

use clap::CommandFactory;

use crate::arguments::Arguments;

/// Prints the script of a shell.
pub(crate) fn print(shell: clap_complete::Shell) {
    clap_complete::generate(shell, &mut Arguments::command(), "windlass", &mut std::io::stdout());
}
