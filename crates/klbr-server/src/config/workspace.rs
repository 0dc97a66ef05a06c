//! The folders out of the layers: where the agent works, and the code that it may work on.

use std::path::{Path, PathBuf};

use super::layers::{Layers, Value};
use super::{
    CODE_ENABLED, CODE_ROOT, CODE_WRITE, CodeConfig, ConfigError, WORKSPACE_ROOT, WORKSPACE_START,
    WorkspaceConfig,
};

/// Where the agent works: the folder that is named, else that of the code.
pub(super) fn workspace(
    home: &Path,
    layers: &Layers<'_>,
    code: Option<&CodeConfig>,
) -> Result<Option<WorkspaceConfig>, ConfigError> {
    let root = match named(home, layers)? {
        Some(root) => Some(root),
        None => code.map(|code| code.root.clone()),
    };
    let start = layers.get(WORKSPACE_START);
    let (root, start) = match (root, start) {
        (Some(root), None) => return Ok(Some(WorkspaceConfig { start: root.clone(), root })),
        (None, None) => return Ok(None),
        (Some(root), Some(start)) => (root, start),
        (None, Some(start)) => {
            return Err(refused(start, "it is within workspace.root, which is not set".into()));
        }
    };
    let path = folder(&root, &start, "a folder")?;
    let lies_within = match (root.canonicalize(), path.canonicalize()) {
        (Ok(root), Ok(path)) => path.starts_with(root),
        (Err(_), _) | (_, Err(_)) => false,
    };
    match lies_within {
        true => Ok(Some(WorkspaceConfig { root, start: path })),
        false => Err(refused(start, format!("{} is not within {}", path.display(), root.display()))),
    }
}

/// The code that is named, else everything where the agent works; unless it is switched off.
pub(super) fn code(home: &Path, layers: &Layers<'_>) -> Result<Option<CodeConfig>, ConfigError> {
    let (mut enabled, mut write) = (true, false);
    layers.set(CODE_ENABLED, &mut enabled, "true or false")?;
    layers.set(CODE_WRITE, &mut write, "true or false")?;
    if !enabled {
        return Ok(None);
    }
    let root = match layers.get(CODE_ROOT) {
        Some(root) => Some(folder(home, &root, "a folder of code")?),
        None => named(home, layers)?,
    };
    Ok(root.map(|root| CodeConfig { root, write }))
}

fn named(home: &Path, layers: &Layers<'_>) -> Result<Option<PathBuf>, ConfigError> {
    layers.get(WORKSPACE_ROOT).map(|root| folder(home, &root, "a folder")).transpose()
}

fn folder(base: &Path, named: &Value, expected: &str) -> Result<PathBuf, ConfigError> {
    let path = base.join(named.text.trim());
    match path.is_dir() {
        true => Ok(path),
        false => {
            let problem = format!("expected {expected}, and there is none at {}", path.display());
            Err(refused(named.clone(), problem))
        }
    }
}

fn refused(named: Value, problem: String) -> ConfigError {
    ConfigError::Value { origin: named.origin, problem }
}
