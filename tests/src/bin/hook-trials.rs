//! `hook-trials [--trials N] [--kills N] [--seed S] [--lanes N] [--release-dir FOLDER]`: a required hook dies in mid-call,
//! and nothing runs that it has not allowed.

use std::io::Write as _;
use std::process::ExitCode;

use klbr_tests::hooks::trials::Plan;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let plan = match Plan::parse(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "hook-trials: {reason}");
            return ExitCode::from(2);
        }
    };
    match plan.execute().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "hook-trials: {error}; it was {plan}");
            ExitCode::from(2)
        }
    }
}
