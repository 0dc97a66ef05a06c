//! `simulate [SEEDS]`: runs the world of many seeds, or the one of `KLBR_SEED`.

use std::process::ExitCode;
use std::time::Instant;

use klbr_tests::simulator::{Outcome, run};

#[expect(clippy::print_stdout, reason = "what it prints is what it is for")]
fn main() -> ExitCode {
    let seeds = match std::env::var("KLBR_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10_000),
    };
    let (began, count) = (Instant::now(), seeds.end - seeds.start);
    let mut total = Outcome::default();
    for seed in seeds {
        match run(seed) {
            Ok(outcome) => total = total + outcome,
            Err(violation) => {
                println!("{violation}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!(
        "simulator: {count} seeds, 0 violations in {:.1} s: {} records, {} requests, {} crashes, {} events \
         admitted, {} turns",
        began.elapsed().as_secs_f64(),
        total.records,
        total.requests,
        total.crashes,
        total.admitted,
        total.turns
    );
    ExitCode::SUCCESS
}
