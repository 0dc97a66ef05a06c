//! A tree of processes that is hard to kill; its shape stands in `klbr_tests::proc_tree`.

use std::io::Write as _;
use std::process::ExitCode;

use klbr_tests::proc_tree::Shape;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let grown = match Shape::parse(std::env::args().skip(1)) {
        Ok(shape) => shape.grow().await.map_err(|error| error.to_string()),
        Err(reason) => Err(reason),
    };
    match grown {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "proc-tree: {reason}");
            ExitCode::FAILURE
        }
    }
}
