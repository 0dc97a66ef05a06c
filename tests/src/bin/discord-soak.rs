//! `discord-soak [--seconds N] [--seed S] [--release-dir FOLDER]`: cuts the gateway again and again, and judges.

use std::io::Write as _;
use std::process::ExitCode;

use klbr_tests::crash::Soak;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let soak = match Soak::parse(std::env::args().skip(1)) {
        Ok(soak) => soak,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "discord-soak: {reason}");
            return ExitCode::from(2);
        }
    };
    match soak.execute().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "discord-soak: {error}; it was {soak}");
            ExitCode::from(2)
        }
    }
}
