//! Starts: what `--version` takes, and how soon a daemon is ready.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::rig::{Rig, WATCHDOG, always, wait};
use super::{BenchError, Line, Plan, spread};
use crate::clock::Stamp;

pub(super) async fn measure(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let mut lines = Vec::new();
    for name in ["klbr", "klbrd"] {
        match crate::process::beside(name, plan.folder.as_deref()) {
            Ok(program) => lines.push(version(name, &program, plan.runs)?),
            Err(error) => lines.push(Line {
                row: "cold",
                what: format!("{name} --version"),
                method: format!("not measured: {error}"),
                n: 0,
                figures: Vec::new(),
            }),
        }
    }
    lines.push(ready(plan).await?);
    Ok(lines)
}

fn version(name: &str, program: &Path, runs: usize) -> Result<Line, BenchError> {
    // A program that the page cache has, as one that is in use; and what any process costs here, beside it.
    let run = |program: &Path, argument: &str| -> Result<Duration, BenchError> {
        let begun = Instant::now();
        std::process::Command::new(program).arg(argument).output()?;
        Ok(begun.elapsed())
    };
    let mut times = Vec::new();
    let mut bare = Vec::new();
    run(program, "--version")?;
    for _ in 0..runs {
        times.push(run(program, "--version")?);
        bare.push(run(Path::new("true"), "--version")?);
    }
    let mut figures = spread(&times, Some(5.0), None);
    figures.truncate(2);
    for mut figure in spread(&bare, None, None).into_iter().take(2) {
        figure.name = format!("{} of `true`", figure.name);
        figures.push(figure);
    }
    Ok(Line {
        row: "cold",
        what: format!("{name} --version"),
        method: "from before the start to the end of the process and of its output, warm page cache"
            .to_owned(),
        n: runs,
        figures,
    })
}

async fn ready(plan: &Plan) -> Result<Line, BenchError> {
    let mut rig = Rig::start(plan, always(json!([wait()]))).await?;
    let mut times = Vec::new();
    for _ in 0..plan.runs.div_ceil(5) {
        let begun = rig.again(plan).await?;
        rig.api().ready(WATCHDOG).await?;
        times.push(Stamp::now().since(begun));
    }
    Ok(Line {
        row: "cold",
        what: "daemon ready".to_owned(),
        method: "from before the start to a status that says ready, on a home that has lived; the one before was killed"
            .to_owned(),
        n: times.len(),
        figures: spread(&times, Some(100.0), None),
    })
}
