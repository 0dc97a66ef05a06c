//! `simulate [SEEDS]`: runs the world of many seeds, or the one of `KLBR_SEED`.

use std::process::ExitCode;

use klbr_tests::simulator::run_many;

#[expect(clippy::print_stdout, reason = "what it prints is what it is for")]
fn main() -> ExitCode {
    let seeds = match std::env::var("KLBR_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10_000),
    };
    match run_many(seeds) {
        Ok(line) => println!("{line}"),
        Err(violation) => {
            println!("{violation}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
