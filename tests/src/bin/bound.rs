//! Becomes another program that dies with its parent: `bound PARENT_PID PROGRAM ARGUMENTS…`.
//!
//! The process id stays the same. Where the platform has no parent-death signal the program is started all the same.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(parent), Some(program)) = (arguments.next(), arguments.next()) else {
        let _ = writeln!(std::io::stderr(), "usage: bound PARENT_PID PROGRAM ARGUMENTS...");
        return ExitCode::FAILURE;
    };
    let error = match klbr_tests::process::die_with_parent(&parent.to_string_lossy()) {
        Ok(()) => Command::new(&program).args(arguments).exec(),
        Err(error) => error,
    };
    let _ = writeln!(std::io::stderr(), "bound: {}: {error}", program.display());
    ExitCode::FAILURE
}
