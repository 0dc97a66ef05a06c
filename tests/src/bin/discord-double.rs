//! The double of Discord as a process; what it serves stands in `klbr_tests::discord_double`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use klbr_tests::discord_double::{self, Options};
use klbr_tests::process;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "discord-double: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> io::Result<()> {
    let asked_to_end = process::asked_to_end()?;
    let options = Options::parse(std::env::args().skip(1)).map_err(io::Error::other)?;
    let served = discord_double::serve(options, |ready| {
        writeln!(io::stdout(), "{}", serde_json::to_string(ready)?)?;
        io::stdout().flush()
    });
    tokio::select! {
        served = served => served,
        () = asked_to_end => Ok(()),
    }
}
