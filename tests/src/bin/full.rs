//! `full [--release-dir FOLDER]`: the large numbers: 10,000 seeds of the simulator, 3,000 kills and 1,000 more on Discord,
//! 10,000 deaths of a required hook, ten minutes of a gateway that is cut, 1,000 trees, every row of the bench.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use klbr_tests::{bench, crash, hooks, simulator};

/// How long the soak lasts.
const SOAK: Duration = Duration::from_secs(600);

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
    let matrix = |world, trials| crash::Plan { world, trials, seed: 1, lanes: 2, folder: folder.clone() };
    let killed = matrix(crash::World::Operator, 3_000).execute().await?;
    let on_discord = matrix(crash::World::Discord, 1_000).execute().await?;
    let trials = hooks::trials::Plan { folder: folder.clone(), ..hooks::trials::Plan::default() };
    let tried = trials.execute().await?;
    let soaked = crash::Soak { lasts: SOAK, seed: 1, folder: folder.clone() }.execute().await?;
    let rows = bench::Row::ALL.into_iter().chain(bench::Row::LONG).collect();
    let (met, bars) = bench::Plan { rows, runs: 500, trees: 1_000, folder, json: false }.execute().await?;
    let verdict = |is_right: bool| if is_right { "without a violation" } else { "VIOLATED" };
    println!(
        "full: commit {}: simulator {}, crash matrix {}, on Discord {}, hooks {}, soak {}, {met} of {bars} bars met",
        klbr_tests::commit(),
        verdict(simulated.is_ok()),
        verdict(killed),
        verdict(on_discord),
        verdict(tried),
        verdict(soaked),
    );
    Ok(simulated.is_ok() && killed && on_discord && tried && soaked && met == bars)
}
