//! `crash-matrix [--world operator|discord] [--trials N] [--seed S] [--lanes N] [--release-dir FOLDER]`: kills the daemon, and judges.

use std::io::Write as _;
use std::process::ExitCode;

use klbr_tests::crash::Plan;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let plan = match Plan::parse(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "crash-matrix: {reason}");
            return ExitCode::from(2);
        }
    };
    match plan.execute().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "crash-matrix: {error}; it was {plan}");
            ExitCode::from(2)
        }
    }
}
