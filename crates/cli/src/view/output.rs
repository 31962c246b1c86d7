//! Printing that ends the program quietly when nobody reads any more, as in `windlass get pods | head -1`.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints like `println!`.
macro_rules! say {
    ($($argument:tt)*) => { $crate::view::output::write(format_args!("{}\n", format_args!($($argument)*))) };
}

/// Prints like `print!`.
macro_rules! show {
    ($($argument:tt)*) => { $crate::view::output::write(format_args!($($argument)*)) };
}

pub(crate) use {say, show};

/// Writes to standard output.
pub(crate) fn write(text: Arguments<'_>) {
    let mut output = std::io::stdout().lock();
    match output.write_fmt(text).and_then(|()| output.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            eprintln!("error: cannot print: {error}");
            std::process::exit(1)
        }
    }
}
