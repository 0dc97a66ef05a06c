//! `bench ROW...|all [--runs N] [--trees N] [--release-dir FOLDER] [--json]`: measures, and says what is missed.

use std::io::Write as _;
use std::process::ExitCode;

use klbr_tests::bench::Plan;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let plan = match Plan::parse(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "bench: {reason}");
            return ExitCode::from(2);
        }
    };
    match plan.execute().await {
        Ok((met, bars)) if met == bars => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "bench: {error}");
            ExitCode::from(2)
        }
    }
}
