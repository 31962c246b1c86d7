//! The PostgreSQL operator as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    postgres_operator::app().main()
}
