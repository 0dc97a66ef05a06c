//! `klbr workbench`: the Python process that runs the model's cells.

use klbr_pyhost::Variable;
use klbr_server::api::policy::{Variables, WorkbenchStatus};
use klbr_server::api::{Done, path};

use crate::args::Workbench;
use crate::client::fresh_key;
use crate::context::Context;
use crate::error::Outcome;
use crate::text::{clean_line, fit};
use crate::verb::hooks::process;

/// Looks at it, starts it over. It lives in the daemon.
pub(super) async fn run(context: &Context, workbench: &Workbench) -> Outcome {
    let client = context.require_daemon()?;
    match workbench {
        Workbench::Status => {
            let status: WorkbenchStatus = client.get(path::WORKBENCH, &()).await?;
            context.print(&status, || {
                let life = status.generation.map(|life| format!(", life {life}")).unwrap_or_default();
                format!("the workbench {}{life}", process(&status.process))
            })
        }
        Workbench::Vars => {
            let Variables { variables } = client.get(path::WORKBENCH_VARS, &()).await?;
            context.print(&serde_json::json!({ "variables": variables }), || match variables[..] {
                [] => "no cell has left a variable".to_owned(),
                _ => variables.iter().map(row).collect(),
            })
        }
        Workbench::Restart => {
            let done: Done = client.post(path::WORKBENCH_RESTART, &fresh_key("cli"), &()).await?;
            context.print(&done, || done.done.clone())
        }
    }
}

fn row(variable: &Variable) -> String {
    let Variable { name, type_name, bytes, start } = variable;
    format!(
        "{:<20} {:<12} {bytes:>9} B  {}\n",
        clean_line(name),
        clean_line(type_name),
        fit(&clean_line(start), 60)
    )
}
