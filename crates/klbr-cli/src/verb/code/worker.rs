//! `klbr code worker`: parses for another process, which can kill it.

use std::io;

use crate::error::Outcome;

/// Serves until the input ends.
pub(super) fn run() -> Outcome {
    Ok(klbr_codeintel::isolate::serve(io::stdin().lock(), io::stdout().lock())?)
}
