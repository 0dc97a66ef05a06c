//! The scripted model server as a process; what it serves stands in `klbr_tests::fake_model`.

use std::io::Write as _;
use std::process::ExitCode;

use klbr_tests::fake_model::{self, Options};
use klbr_tests::process;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let served = async {
        let options = Options::parse(std::env::args().skip(1)).map_err(std::io::Error::other)?;
        fake_model::serve(options, |ready| {
            writeln!(std::io::stdout(), "{}", serde_json::to_string(ready)?)?;
            std::io::stdout().flush()
        })
        .await
    };
    tokio::select! {
        served = served => match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "fake-model: {error}");
                ExitCode::FAILURE
            }
        },
        _ = process::asked_to_end() => ExitCode::SUCCESS,
    }
}
