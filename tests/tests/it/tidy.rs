//! What lints cannot check: the absences of ARCHITECTURE.md, the shape of files, and what the README promises.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the workspace, with its code apart from its tests.
struct File {
    path: PathBuf,
    text: String,
}

impl File {
    /// The lines in front of the file's own tests.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = self.text.lines().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(usize::MAX);
        self.text.lines().enumerate().take(tests).map(|(n, line)| (n + 1, line))
    }

    fn is_under(&self, place: &str) -> bool {
        self.path.starts_with(root().join(place))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package stands in the workspace").to_owned()
}

fn sources(place: &str) -> Vec<File> {
    let mut files = Vec::new();
    let mut open = vec![root().join(place)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("the folder exists").map(|entry| entry.unwrap().path()) {
            if entry.is_dir() && !entry.ends_with("target") {
                open.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                files.push(File { text: fs::read_to_string(&entry).unwrap(), path: entry });
            }
        }
    }
    files
}

/// Sources of the libraries: no binaries' wiring, no tests, no programs.
fn libraries() -> Vec<File> {
    let is_library = |file: &File| {
        let text = file.path.to_string_lossy();
        text.contains("/src/")
            && !text.contains("/src/bin/")
            && !text.ends_with("main.rs")
            && !text.ends_with("wiring.rs")
            && !file.is_under("crates/klbr-cli")
    };
    sources("crates").into_iter().filter(is_library).collect()
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// The lines of code, comments left out, in which one of `words` stands.
fn finds(files: &[File], words: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files {
        for (n, line) in file.code().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            if let Some(word) = words.iter().find(|word| line.contains(*word)) {
                faults.push(format!("{}:{n}: {word}: {}", file.path.display(), line.trim()));
            }
        }
    }
    faults
}

#[test]
fn the_core_outside_the_runtime_is_pure() {
    let is_pure = |file: &File| {
        let core = "crates/klbr-core/src/";
        file.is_under(core)
            && !["runtime", "testkit"].iter().any(|part| {
                let text = file.path.to_string_lossy();
                text.contains(&format!("{core}{part}/")) || text.ends_with(&format!("{core}{part}.rs"))
            })
    };
    let files: Vec<File> = libraries().into_iter().filter(is_pure).collect();
    assert!(files.len() > 30, "the core was not found");
    report(&finds(
        &files,
        &[
            "async fn",
            ".await",
            "tokio::",
            "std::fs",
            "std::env",
            "std::net",
            "std::process",
            "SystemTime",
            "Instant::",
            "rand::",
            "getrandom",
            "thread::",
        ],
    ));
}

#[test]
fn turns_and_context_never_see_a_port() {
    let pure = |file: &File| {
        file.is_under("crates/klbr-core/src/agent") || file.is_under("crates/klbr-core/src/context")
    };
    let files: Vec<File> = libraries().into_iter().filter(pure).collect();
    report(&finds(&files, &["crate::runtime", "dyn Store", "dyn Model", "dyn Channel"]));
}

#[test]
fn libraries_read_no_environment_and_detach_nothing() {
    report(&finds(
        &libraries(),
        &[
            "env::var",
            "env::vars",
            "env::current_dir",
            "env::home_dir",
            "set_global_default",
            "anyhow::",
            "#[ctor",
            "inventory::",
        ],
    ));
}

#[test]
fn foreign_types_stay_inside_the_crate_that_adapts_them() {
    let foreign = [
        "rusqlite::",
        "reqwest::",
        "rustls::",
        "axum::",
        "tree_sitter::",
        "ra_ap_parser::",
        "ruff_python_",
        "hyper::",
        "pyo3::",
    ];
    let mut faults = finds(&libraries(), &foreign);
    faults.retain(|fault| {
        let code = fault.rsplit(": ").next().unwrap_or_default();
        code.starts_with("pub ") && !code.starts_with("pub(")
    });
    report(&faults);
}

#[test]
fn every_file_is_short_and_says_what_it_owns() {
    let mut faults = Vec::new();
    for file in sources("crates").iter().chain(&sources("tests")).chain(&sources("examples")) {
        if !file.text.starts_with("//!")
            && !file.path.ends_with("build.rs")
            && !file.path.to_string_lossy().contains("/fixtures/")
        {
            faults.push(format!("{}: begins without a line of //!", file.path.display()));
        }
        let is_test =
            file.path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "benches");
        let lines = file.code().count();
        if lines > 600 && (!is_test || file.is_under("tests/src")) {
            faults.push(format!("{}: {lines} lines without its tests", file.path.display()));
        }
        if file.path.ends_with("mod.rs") {
            faults.push(format!("{}: a module's file is named after it", file.path.display()));
        }
    }
    report(&faults);
}

/// A loop that looks every few milliseconds at something observable, under a watchdog, is no such sleep.
#[test]
fn no_test_sleeps_to_synchronise() {
    let files: Vec<File> =
        sources("crates").into_iter().filter(|f| f.path.to_string_lossy().contains("/tests/")).collect();
    report(&finds(&files, &["sleep(Duration::from_secs", "sleep(std::time::Duration::from_secs"]));
}

#[test]
fn every_test_file_is_part_of_a_test() {
    let mut faults = Vec::new();
    for package in fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .chain([root().join("tests")])
    {
        let tests = package.join("tests");
        let Ok(entries) = fs::read_dir(&tests) else { continue };
        let roots: String =
            ["it.rs", "it/main.rs"].iter().filter_map(|f| fs::read_to_string(tests.join(f)).ok()).collect();
        for path in entries
            .map(|entry| entry.unwrap().path())
            .chain(fs::read_dir(tests.join("it")).into_iter().flatten().map(|e| e.unwrap().path()))
        {
            let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            let is_module = path.extension().is_some_and(|e| e == "rs") && !["it", "main"].contains(&stem);
            if is_module && !roots.contains(&format!("mod {stem};")) {
                faults.push(format!("{} is in no test", path.display()));
            }
        }
    }
    report(&faults);
}

#[test]
fn the_readme_names_what_exists() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut faults = Vec::new();
    for line in readme.lines().map(str::trim) {
        for (flag, kind) in [("-p ", "package"), ("--bin ", "program")] {
            for name in line.split(flag).skip(1).filter_map(|rest| rest.split_whitespace().next()) {
                let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
                if !line.starts_with("cargo ") {
                    continue;
                }
                let is_known = match kind {
                    "package" => {
                        ["crates", "."].iter().any(|place| root().join(place).join(name).is_dir())
                            || ["klbr-tests", "klbr-examples"].contains(&name)
                    }
                    _ => ["tests/src/bin", "examples"].iter().any(|place| {
                        let place = root().join(place);
                        place.join(format!("{name}.rs")).is_file() || place.join(name).is_dir()
                    }),
                };
                if !is_known {
                    faults.push(format!("README.md names the {kind} {name}, which does not exist"));
                }
            }
        }
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !link.contains("://") && !link.starts_with('#') && !root().join(link).exists() {
                faults.push(format!("README.md links to {link}, which does not exist"));
            }
        }
    }
    report(&faults);
}
