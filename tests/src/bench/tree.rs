//! From an operator's message until the whole tree of a command's processes is gone.

use serde_json::json;

use super::interrupt::Times;
use super::rig::{Rig, WATCHDOG, always, script};
use super::{Bar, BenchError, Figure, Line, Plan};
use crate::proc_tree;

/// The bar, in milliseconds.
const P99: f64 = 250.0;

pub(super) async fn measure(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let mut rig = Rig::start(plan, json!([])).await?;
    let file = rig.dir.join("tree");
    let program = crate::process::beside("proc-tree", plan.folder.as_deref())?;
    let command = format!(
        "rm -f '{0}'; '{1}' --pids '{0}' --children 2 --grandchildren 1 --orphans 1 --ignore-term --new-session",
        file.display(),
        program.display()
    );
    let call = json!({"call": {"name": "process", "arguments": {"command": command}}});
    rig.model.control().load(&script(always(json!([call])))).await?;
    rig.say("begin").await?;
    let (mut times, mut survivors, mut processes) = (Times::default(), 0, 0);
    for _ in 0..plan.trees {
        let members = proc_tree::grown(&file, WATCHDOG).await.map_err(BenchError::Absent)?;
        processes += members.len();
        let gone = tokio::task::spawn_blocking(move || proc_tree::gone(&members, WATCHDOG / 6));
        let said = rig.say("something else").await?;
        match gone.await.map_err(BenchError::inside)? {
            Ok(ended) => times.add(said, ended),
            Err(left) => survivors += left.len(),
        }
        rig.forget().await?;
    }
    let end = "the last process's end in /proc; a shell's tree of children that ignore SIGTERM, one in a session of \
               its own, and an orphan";
    let mut line = times.line("tree", "a whole tree of processes gone", end, (P99, P99));
    line.figures[0].bar = None;
    line.figures.push(Figure::plain("survivors", survivors as f64, "processes").against(Bar::AtMost(0.0)));
    line.figures.push(Figure::plain("killed", processes as f64, "processes"));
    Ok(vec![line])
}
