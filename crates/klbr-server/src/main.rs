//! `klbrd`: the daemon.

mod wiring;

use std::process::ExitCode;

fn main() -> ExitCode {
    wiring::main()
}
