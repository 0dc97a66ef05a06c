//! Python out of the layers: whether it is on, which interpreter, what its processes may use.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use klbr_core::config::Toolset;

use super::layers::{Layers, Value};
use super::{
    ConfigError, PYTHON, PYTHON_ACTIONS, PYTHON_CPU, PYTHON_ENABLED, PYTHON_FILES, PYTHON_MEMORY,
    PYTHON_SELF_ACTIVATION,
};

/// How Python is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonConfig {
    /// The interpreter.
    pub interpreter: PathBuf,
    /// The most memory that one process may have, in bytes.
    pub memory: u64,
    /// The most processor time that one process may use over its whole life; without a limit of its own when absent.
    pub cpu: Option<Duration>,
    /// The most files that one process may have open.
    pub files: u64,
    /// How the model acts.
    pub actions: Toolset,
    /// Whether the agent may put policy in force that it wrote itself.
    pub self_activation: SelfActivation,
    /// The environment of its processes.
    pub environment: Vec<(String, String)>,
}

impl Default for PythonConfig {
    fn default() -> Self {
        PythonConfig {
            interpreter: "python3".into(),
            memory: 2 << 30,
            cpu: None,
            files: 1024,
            actions: Toolset::Tools,
            self_activation: SelfActivation::Ask,
            environment: Vec::new(),
        }
    }
}

/// Whether the agent may put policy in force that it wrote itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelfActivation {
    /// The operator decides each time.
    #[default]
    Ask,
    /// It may.
    Allow,
}

impl FromStr for SelfActivation {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "ask" => Ok(SelfActivation::Ask),
            "allow" => Ok(SelfActivation::Allow),
            _ => Err(()),
        }
    }
}

/// Memory of a process in bytes, read from mebibytes.
struct Memory(u64);

impl Memory {
    /// Less than this, and no interpreter starts.
    const LEAST: u64 = 64;
    const MOST: u64 = 1 << 20;

    fn expected() -> String {
        format!("a whole number of mebibytes, from {} to {}", Memory::LEAST, Memory::MOST)
    }
}

impl FromStr for Memory {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mebibytes: u64 = text.parse().map_err(drop)?;
        (Memory::LEAST..=Memory::MOST).contains(&mebibytes).then_some(Memory(mebibytes << 20)).ok_or(())
    }
}

/// The variables of the host that Python gets unasked.
const INHERITED: [&str; 7] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER"];

/// How Python is used; `None` when it is off.
pub(super) fn python(home: &Path, layers: &Layers<'_>) -> Result<Option<PythonConfig>, ConfigError> {
    let settings = [PYTHON, PYTHON_MEMORY, PYTHON_CPU, PYTHON_FILES, PYTHON_ACTIONS, PYTHON_SELF_ACTIVATION];
    let first = settings.iter().find_map(|name| layers.get(name));
    let enabled: Option<bool> = layers.parse(PYTHON_ENABLED, "true or false")?;
    if !enabled.unwrap_or(first.is_some()) {
        return Ok(None);
    }
    let mut python = PythonConfig::default();
    let memory = layers.parse::<Memory>(PYTHON_MEMORY, &Memory::expected())?;
    python.memory = memory.map_or(python.memory, |memory| memory.0);
    python.cpu = layers.parse(PYTHON_CPU, "a whole number of seconds")?.map(Duration::from_secs);
    layers.set(PYTHON_FILES, &mut python.files, "a whole number of open files")?;
    layers.set(PYTHON_ACTIONS, &mut python.actions, "tools, python or both")?;
    layers.set(PYTHON_SELF_ACTIVATION, &mut python.self_activation, "ask or allow")?;
    python.environment = environment(layers);
    let path = layers.in_environment("PATH").unwrap_or_default();
    let named = layers.get(PYTHON);
    let sought = named.as_ref().map_or("python3", |named| named.text.trim());
    python.interpreter = find(home, &path, sought).ok_or_else(|| {
        let origin = named.clone().or(first).or_else(|| layers.get(PYTHON_ENABLED));
        let origin = origin.map_or_else(|| PYTHON.to_owned(), |Value { origin, .. }| origin);
        let problem = match sought.contains('/') {
            true => format!("there is no interpreter at {}", home.join(sought).display()),
            false => {
                format!("there is no {sought} on PATH ({path}): name the interpreter with python.interpreter")
            }
        };
        ConfigError::Value { origin, problem }
    })?;
    Ok(Some(python))
}

/// What there is of Python where nobody configured it: for a policy that is in force all the same.
pub(super) fn unconfigured(home: &Path, layers: &Layers<'_>) -> PythonConfig {
    let path = layers.in_environment("PATH").unwrap_or_default();
    let python = PythonConfig { environment: environment(layers), ..PythonConfig::default() };
    let interpreter = find(home, &path, "python3").unwrap_or_else(|| python.interpreter.clone());
    PythonConfig { interpreter, ..python }
}

fn environment(layers: &Layers<'_>) -> Vec<(String, String)> {
    let set = |name: &&str| Some(((*name).to_owned(), layers.in_environment(name)?));
    INHERITED.iter().filter_map(set).collect()
}

/// An interpreter by its path, relative to the home where it is relative, or by its name in `path`.
fn find(home: &Path, path: &str, name: &str) -> Option<PathBuf> {
    let is_program = |candidate: &PathBuf| {
        use std::os::unix::fs::PermissionsExt as _;
        candidate.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    match name.contains('/') {
        true => Some(home.join(name)).filter(is_program),
        false => std::env::split_paths(path).map(|folder| folder.join(name)).find(is_program),
    }
}
