//! The memcached operator as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    memcached_operator::app().main()
}
