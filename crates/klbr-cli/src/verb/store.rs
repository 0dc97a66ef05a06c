//! `klbr store`: looks after the database.

use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use klbr_server::home::Home;
use klbr_store::{HomeLock, upkeep};
use serde_json::json;

use crate::args::Store;
use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::home::{PROGRAM, require};

/// Checks, copies, restores, exports.
pub(super) fn run(context: &Context, store: &Store) -> Outcome {
    require(&context.home)?;
    let database = Home::new(&context.home).database();
    match store {
        Store::Check => check(context, &database),
        Store::Backup { file } => {
            upkeep::backup(&database, file)?;
            context.print(&json!({ "backup": file }), || format!("copied to {}", file.display()))
        }
        Store::Restore { file } => restore(context, file, &database),
        Store::Export { file } => export(context, file.as_deref(), &database),
    }
}

fn check(context: &Context, database: &Path) -> Outcome {
    let report = upkeep::check(database)?;
    let agents: Vec<_> = report
        .agents
        .iter()
        .map(|agent| json!({ "agent": agent.agent, "records": agent.records, "ledger": agent.ledger }))
        .collect();
    context.print(&json!({ "agents": agents, "faults": report.faults }), || {
        let agents = report
            .agents
            .iter()
            .map(|agent| format!("{}: {} records; {}\n", agent.agent, agent.records, agent.ledger));
        let faults = report.faults.iter().map(|fault| format!("fault: {fault}\n"));
        let end = if report.faults.is_empty() { "the database is whole\n" } else { "" };
        agents.chain(faults).chain([end.to_owned()]).collect()
    })?;
    match report.faults.len() {
        0 => Ok(()),
        count => Err(CommandError::config(
            format!("the database has {count} faults"),
            "keep a copy of it, then klbr store restore BACKUP",
        )),
    }
}

fn restore(context: &Context, from: &Path, database: &Path) -> Outcome {
    let _lock = HomeLock::acquire(&context.home, PROGRAM)?;
    let aside = upkeep::restore(from, database)?;
    context.print(&json!({ "restored": from, "set_aside": aside }), || {
        let aside = aside.as_ref().map(|path| format!("; what was there is now {}", path.display()));
        format!("restored from {}{}", from.display(), aside.unwrap_or_default())
    })
}

fn export(context: &Context, to: Option<&Path>, database: &Path) -> Outcome {
    let agent = context.agent()?;
    let Some(to) = to else {
        let mut stdout = BufWriter::new(io::stdout().lock());
        upkeep::export(database, &agent, &mut stdout)?;
        return Ok(stdout.flush()?);
    };
    let refused = |error: io::Error| {
        CommandError::user(format!("{} cannot be made", to.display()), "name a new file in a folder of yours")
            .because(error)
    };
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(to).map_err(refused)?;
    let records = upkeep::export(database, &agent, &mut BufWriter::new(file))?;
    let to: PathBuf = to.into();
    context.print(&json!({ "export": to, "records": records }), || {
        format!("{records} records written to {}", to.display())
    })
}
