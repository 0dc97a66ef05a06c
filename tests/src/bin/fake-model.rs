//! The scripted model server as a process; what it serves stands in `klbr_tests::fake_model`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use klbr_tests::fake_model::{self, Options};
use klbr_tests::process;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "fake-model: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> io::Result<()> {
    let asked_to_end = process::asked_to_end()?;
    let options = Options::parse(std::env::args().skip(1)).map_err(io::Error::other)?;
    let served = fake_model::serve(options, |ready| {
        writeln!(io::stdout(), "{}", serde_json::to_string(ready)?)?;
        io::stdout().flush()
    });
    tokio::select! {
        served = served => served,
        () = asked_to_end => Ok(()),
    }
}
