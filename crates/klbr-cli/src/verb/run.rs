//! `klbr run`: the daemon in the foreground.

use std::io::{self, Write as _};

use klbr_server::{Daemon, Running};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::context::Context;
use crate::error::Outcome;
use crate::wiring;

/// Runs until a signal or a client ends it; a second signal ends it at once (`B-ID-3`).
pub(super) async fn run(context: &Context) -> Outcome {
    // Before anything is held, so that no signal finds the process unprepared.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let config = context.config()?;
    wiring::log(&context.home)?;
    let running = Daemon::new(config).start().await?;
    announce(context, &running)?;
    let outcome = tokio::select! {
        () = either(&mut terminate, &mut interrupt) => Ok(()),
        () = running.stop_requested() => Ok(()),
        error = running.failed() => Err(error.into()),
    };
    tokio::select! {
        () = running.shutdown() => outcome,
        () = either(&mut terminate, &mut interrupt) => std::process::exit(130),
    }
}

fn announce(context: &Context, running: &Running) -> Outcome {
    let line = json!({
        "addr": running.addr(),
        "pid": std::process::id(),
        "home": running.home().dir(),
        "token_path": running.token_path(),
    });
    let mut stdout = io::stdout().lock();
    if context.json {
        writeln!(stdout, "{line}")?;
    } else {
        let home = running.home().dir().display();
        writeln!(stdout, "the daemon listens on http://{} for {home}", running.addr())?;
        writeln!(stdout, "klbr chat talks to its agent, klbr stop stops it")?;
    }
    Ok(stdout.flush()?)
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
