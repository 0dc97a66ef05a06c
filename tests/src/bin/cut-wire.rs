//! Stands in Python's place between the host and Python, and cuts; how is in `klbr_tests::hooks::cut`.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    match klbr_tests::hooks::cut::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cut-wire: {error}");
            ExitCode::FAILURE
        }
    }
}
