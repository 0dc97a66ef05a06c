//! `klbr hooks test`: one hook on what the agent was asked lately, in a process of its own, with no daemon.

use std::path::Path;
use std::sync::Arc;

use klbr_pyhost::{
    Known, Limits, Manifest, NoHost, Patience, Program, Questions, Reads, Refused, Sources, Trees, Trial,
};
use klbr_server::Home;
use klbr_server::api::Place;
use klbr_server::api::policy::Trial as Tried;
use klbr_server::config::{Python, PythonConfig};

use super::publish::{Decorated, decorated, manifest, unpublished};
use super::text;
use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::home;
use crate::offline::Offline;

/// How many recorded questions of its slot the hook is asked.
const ASKED: usize = 32;

/// Tries a function of a folder, published into a home that is gone afterwards.
pub(super) async fn run(context: &Context, run: &str, folder: &Path, bound: Option<&str>) -> Outcome {
    home::require(&context.home)?;
    let hook = hook(run, folder, bound)?;
    let scratch = Scratch::new()?;
    let trees = Trees::new(&scratch.0);
    let tree = trees.publish(folder).map_err(unpublished)?;
    let text = manifest(&tree.to_string(), &[hook]);
    let candidate = Manifest::parse(run, &text, &Known::default()).map_err(|error| {
        let place = |problem: klbr_pyhost::Problem| Place {
            file: run.to_owned(),
            line: 0,
            message: problem.message,
            hint: Some(problem.hint),
        };
        CommandError::user("it cannot be bound like that", "--as names what it answers").at(error
            .problems
            .into_iter()
            .map(place)
            .collect())
    })?;
    let config = context.config()?;
    let reads = Reads::over(Arc::new(NoHost));
    // Without an agent there is nothing to read, and a hook that tries is told so.
    if let Ok(kept) = Offline::open(context).await {
        reads.of(Arc::new(kept.store), kept.name);
    }
    let copied = trees.path(tree).display().to_string();
    let trial = trial(&scratch.0, &config.python, trees, reads)?;
    let agent = Home::new(&context.home).agent(&config.agent.name);
    let recorded = Questions::new(&agent).read(ASKED);
    let report = trial.run(run, &candidate, &Manifest::default(), &recorded).await;
    let report = report.map_err(|error| refused(error, &copied, folder))?;
    // Nothing is put in force here, so that nothing is restarted.
    let tried = Tried { affected: Default::default(), ..report.into() };
    context.print(&tried, || text::answers(&tried))
}

/// What the function is bound to: as it was said, or as its decorator says.
fn hook(run: &str, folder: &Path, bound: Option<&str>) -> Outcome<Decorated> {
    let own = decorated(folder)?.into_iter().find(|hook| hook.run == run);
    let run = run.to_owned();
    match (bound, own) {
        (None, Some(own)) => Ok(own),
        (Some(name), Some(own)) => Ok(Decorated { name: name.to_owned(), ..own }),
        (Some(name), None) => Ok(Decorated { run, kind: "slot", name: name.to_owned(), deadline: None }),
        (None, None) => Err(CommandError::user(
            format!("nothing says what {run} answers"),
            "decorate it, as in @hooks.slot(\"delivery.review\"), or say --as delivery.review; --tree names its folder",
        )),
    }
}

fn trial(scratch: &Path, python: &Python, trees: Trees, reads: Reads) -> Outcome<Trial> {
    let python = match python {
        Python::On(python) | Python::Unasked(python) => python.clone(),
        Python::Off => PythonConfig::default(),
    };
    let package = Sources.install(&scratch.join("package"))?;
    let program = Program {
        python: python.interpreter,
        package,
        environment: python.environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        directory: scratch.to_owned(),
        bytecode: None,
        limits: Limits { memory: Some(python.memory), cpu: python.cpu, files: Some(python.files) },
    };
    let variables = Arc::new(|_: &str| Err("is not set"));
    Ok(Trial { program, patience: Patience::default(), trees, host: Arc::new(reads), variables })
}

/// Why it was refused, with the places where its author wrote them.
fn refused(error: Refused, copied: &str, folder: &Path) -> CommandError {
    let hint = "correct the code, and try again";
    let own = |text: &str| text.replace(copied, &folder.display().to_string());
    match error {
        Refused::Hooks(failed) => {
            let place = |hook: &klbr_pyhost::FailedHook| Place {
                file: own(hook.error.file.as_deref().unwrap_or(&hook.run)),
                line: hook.error.line.unwrap_or(0),
                message: format!("{}: {}", hook.error.exception, hook.error.message),
                hint: None,
            };
            CommandError::user("the hook could not be loaded", hint).at(failed.iter().map(place).collect())
        }
        Refused::Manifest(_) | Refused::Worker { .. } | Refused::Failed { .. } => {
            CommandError::user(own(&error.to_string()), hint)
        }
    }
}

/// A folder that is gone when this is dropped.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Outcome<Self> {
        let path = std::env::temp_dir().join(crate::client::fresh_key("klbr-hook"));
        std::fs::create_dir(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left behind, it is in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
