//! The home: its folder, who holds it, its token, its database.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use klbr_server::Home;
use klbr_store::upkeep;

use super::Finding;
use crate::context::Context;
use crate::error::CommandError;
use crate::home::{Holder, holder, require};

/// Looks at the home.
pub(super) fn look(context: &Context) -> Vec<Finding> {
    if let Err(error) = require(&context.home) {
        return vec![Finding::of("home", &error)];
    }
    let home = Home::new(&context.home);
    vec![folder(&context.home), held(&context.home), token(&home.token()), database(&home.database())]
}

fn mode(path: &Path) -> Option<u32> {
    Some(std::fs::metadata(path).ok()?.permissions().mode() & 0o777)
}

fn folder(dir: &Path) -> Finding {
    let shown = dir.display();
    match mode(dir) {
        Some(mode) if mode & 0o077 != 0 => Finding::note(
            "home",
            format!("{shown} can be looked into by others (mode {mode:03o})"),
            format!("chmod 700 {shown}"),
        ),
        Some(_) => Finding::good("home", format!("{shown}, yours alone")),
        None => Finding::bad("home", format!("{shown} cannot be looked into"), "make it yours"),
    }
}

fn held(dir: &Path) -> Finding {
    match holder(dir) {
        Ok(Holder::Daemon(address)) => Finding::good(
            "lock",
            format!("held by the daemon, process {}, on {}", address.pid, address.root()),
        ),
        Ok(Holder::Nobody) => Finding::good("lock", "free: no daemon runs"),
        Err(error) => Finding::of("lock", &error),
    }
}

fn token(path: &Path) -> Finding {
    let shown = path.display();
    let Ok(metadata) = std::fs::metadata(path) else {
        return Finding::note(
            "token",
            format!("{shown} is not there yet"),
            "klbr init or the first start makes it",
        );
    };
    let own = std::fs::metadata("/proc/self").map_or(metadata.uid(), |process| process.uid());
    match metadata.permissions().mode() & 0o777 {
        mode if mode & 0o077 != 0 => Finding::bad(
            "token",
            format!("{shown} can be read by others (mode {mode:03o}): whoever reads it is the operator"),
            format!("chmod 600 {shown}; if someone may have read it, delete it and restart the daemon"),
        ),
        _ if metadata.uid() != own => Finding::bad(
            "token",
            format!("{shown} belongs to another user"),
            "run klbr as the user whose home it is",
        ),
        _ => Finding::good("token", format!("{shown}, readable by you alone")),
    }
}

fn database(path: &Path) -> Finding {
    if !path.exists() {
        return Finding::good("database", "none yet: nothing has happened");
    }
    match upkeep::check(path) {
        Ok(report) if report.faults.is_empty() => {
            let records: u64 = report.agents.iter().map(|agent| agent.records).sum();
            Finding::good(
                "database",
                format!("whole: {} agents, {records} records, every ledger balances", report.agents.len()),
            )
        }
        Ok(report) => Finding::bad(
            "database",
            format!("{} faults, the first: {}", report.faults.len(), report.faults[0]),
            "keep a copy of it, then klbr store restore BACKUP",
        ),
        Err(error) => Finding::of("database", &CommandError::from(error)),
    }
}
