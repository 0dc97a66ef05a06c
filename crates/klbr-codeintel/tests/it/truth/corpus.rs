//! The corpora that every machine with a toolchain has: Python's standard library and cargo's registry.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Says loudly that a proof did not run, and fails where it must.
pub(crate) fn skip(why: &str) {
    println!("SKIPPED: {why}");
    assert!(std::env::var_os("CI").is_none(), "CI must have what this proof needs: {why}");
}

/// `python3`'s standard library, or `None` without one.
pub(crate) fn standard_library() -> Option<PathBuf> {
    let program = "import sysconfig; print(sysconfig.get_path('stdlib'))";
    let output = Command::new("python3").args(["-c", program]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_dir().then_some(path)
}

/// The unpacked crates of the local registry, by name.
pub(crate) fn crates() -> Vec<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let Some(home) = home else { return Vec::new() };
    let registries = std::fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
    let mut crates: Vec<PathBuf> = registries
        .flat_map(|registry| std::fs::read_dir(registry.path()).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .collect();
    crates.sort();
    crates
}

/// The files below `root` with that ending, in order; links are not followed.
pub(crate) fn files(root: &Path, ending: &str) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            match entry.path() {
                path if kind.is_dir() => open.push(path),
                path if kind.is_file() && path.extension().is_some_and(|found| found == ending) => {
                    found.push(path)
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// A release build proves it over everything; a debug build, whose parser is ten times slower, over a part.
pub(crate) fn share<T>(all: Vec<T>) -> Vec<T> {
    let step = if cfg!(debug_assertions) { 8 } else { 1 };
    all.into_iter().step_by(step).collect()
}
