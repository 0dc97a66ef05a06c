//! Runs the conformance cases of a folder: one line an area, and what differs below it.

use std::io::Write;
use std::process::ExitCode;

use klbr_tests::conformance::{folder, run};

fn main() -> ExitCode {
    let folder = folder(|name| std::env::var(name).ok());
    let (text, code) = match run(&folder) {
        Ok(report) if report.passed() => (report.to_string(), ExitCode::SUCCESS),
        Ok(report) => (report.to_string(), ExitCode::FAILURE),
        Err(error) => (format!("{error}\n"), ExitCode::from(2)),
    };
    // Nobody is left to tell when the output is closed.
    std::io::stdout().write_all(text.as_bytes()).ok();
    code
}
