//! `full [--release-dir FOLDER]`: the large numbers: 10,000 seeds of the simulator, 3,000 kills, 1,000 trees, every
//! row of the bench.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use klbr_tests::{bench, crash, simulator};

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "full: {error}");
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stdout, reason = "what it prints is what it is for")]
async fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder: Option<PathBuf> = match arguments.as_slice() {
        [] => None,
        [option, folder] if option == "--release-dir" => Some(folder.into()),
        _ => return Err("usage: full [--release-dir FOLDER]".into()),
    };
    let simulated = simulator::run_many(0..10_000);
    match &simulated {
        Ok(line) => println!("{line}"),
        Err(violation) => println!("{violation}"),
    }
    let killed = crash::Plan {
        world: crash::World::Operator,
        trials: 3_000,
        seed: 1,
        lanes: 2,
        folder: folder.clone(),
    }
    .execute()
    .await?;
    let rows = bench::Row::ALL.to_vec();
    let (met, bars) = bench::Plan { rows, runs: 500, trees: 1_000, folder, json: false }.execute().await?;
    println!(
        "full: commit {}: simulator {}, crash matrix {}, {met} of {bars} bars met",
        klbr_tests::commit(),
        if simulated.is_ok() { "without a violation" } else { "VIOLATED" },
        if killed { "without a violation" } else { "VIOLATED" },
    );
    Ok(simulated.is_ok() && killed && met == bars)
}
