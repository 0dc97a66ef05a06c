//! Runs conformance cases: files of cases as data, one file an area.
//!
//! Owns how a file is read, which area it belongs to, and how a difference is shown. Each area's own module only
//! hands a case's input to the code under test. Refuses to know any case: a folder of other files of the same
//! kind runs as well. An area that is not known is an error, never skipped.

mod context;
mod files;
mod pairs;
mod prefix;
mod text;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use similar::{ChangeTag, TextDiff};

/// Why no case was run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder cannot be read.
    #[error(
        "no conformance cases in {}: {source}\nhint: set KLBR_CONFORMANCE_DIR to a folder of case files, or KLBR_SHARED to the folder that has `conformance/`",
        folder.display()
    )]
    Folder {
        /// Where the cases were looked for.
        folder: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// The folder has no case files.
    #[error("no *.json in {}\nhint: KLBR_CONFORMANCE_DIR names a folder of case files, one an area", .0.display())]
    Empty(PathBuf),
    /// A file cannot be read as cases.
    #[error("{} is not a file of cases: {message}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A file belongs to no area that is known here.
    #[error("unknown area {area:?}\nhint: the areas are {}", AREAS.map(|(name, _)| name).join(", "))]
    UnknownArea {
        /// The file's name without its extension.
        area: String,
    },
}

/// What the cases of a folder showed.
#[derive(Debug, Default)]
pub struct Report {
    /// The areas by name.
    pub areas: Vec<Area>,
}

/// What the cases of one file showed. Displayed, it is one line, and what failed below it.
#[derive(Debug)]
pub struct Area {
    /// The file's name without its extension.
    pub name: String,
    /// How many cases the file has.
    pub total: usize,
    /// The cases that failed.
    pub failures: Vec<Failure>,
}

/// A case that failed.
#[derive(Debug)]
pub struct Failure {
    /// Its place in the file, counting from 1.
    pub number: usize,
    /// What it says that it is about; empty when it says nothing.
    pub about: String,
    /// Why it could not be run, or the lines in which expected and got differ.
    pub difference: String,
}

impl Report {
    /// Whether every case of every area passed.
    pub fn passed(&self) -> bool {
        self.areas.iter().all(|area| area.failures.is_empty())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.areas.iter().try_for_each(|area| area.fmt(f))
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}/{}", self.name, self.total - self.failures.len(), self.total)?;
        for Failure { number, about, difference } in &self.failures {
            let about = if about.is_empty() { "(says nothing about itself)" } else { about };
            writeln!(f, "  case {number}: {about}")?;
            difference.lines().try_for_each(|line| writeln!(f, "    {line}"))?;
        }
        Ok(())
    }
}

/// Where the cases are: `KLBR_CONFORMANCE_DIR`, else `conformance` in the shared folder, which is `KLBR_SHARED` or
/// stands beside the workspace.
pub fn folder(lookup: impl Fn(&str) -> Option<String>) -> PathBuf {
    match lookup("KLBR_CONFORMANCE_DIR") {
        Some(folder) => folder.into(),
        None => shared(lookup).join("conformance"),
    }
}

/// The folder that is shared beside the workspace.
fn shared(lookup: impl Fn(&str) -> Option<String>) -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    lookup("KLBR_SHARED").map_or_else(beside, PathBuf::from)
}

/// Runs every file of a folder.
///
/// # Errors
///
/// Fails when the folder or a file cannot be read, or a file belongs to no known area.
pub fn run(folder: &Path) -> Result<Report, Error> {
    let unreadable = |source| Error::Folder { folder: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Error::Empty(folder.to_owned()));
    }
    let areas = files.iter().map(|file| {
        let unreadable =
            |source: std::io::Error| Error::File { file: file.clone(), message: source.to_string() };
        let area = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        run_area(&area, &std::fs::read_to_string(file).map_err(unreadable)?).map_err(|error| match error {
            Error::File { message, .. } => Error::File { file: file.clone(), message },
            other => other,
        })
    });
    Ok(Report { areas: areas.collect::<Result<_, _>>()? })
}

/// Runs the text of one file as an area.
///
/// # Errors
///
/// Fails when the area is not known, or the text is not a file of cases.
pub fn run_area(area: &str, text: &str) -> Result<Area, Error> {
    let Some((_, run)) = AREAS.iter().find(|(name, _)| *name == area) else {
        return Err(Error::UnknownArea { area: area.to_owned() });
    };
    let unreadable = |error: serde_json::Error| Error::File { file: area.into(), message: error.to_string() };
    let file: File<'_> = serde_json::from_str(text).map_err(unreadable)?;
    let mut failures = Vec::new();
    for (number, raw) in (1..).zip(&file.cases) {
        let head: Head = serde_json::from_str(raw.get()).map_err(unreadable)?;
        let difference = match run(raw.get()) {
            Ok(got) if got == head.expect => continue,
            Ok(got) => difference(&head.expect, &got),
            Err(problem) => problem,
        };
        failures.push(Failure { number, about: head.about, difference });
    }
    Ok(Area { name: area.to_owned(), total: file.cases.len(), failures })
}

/// Takes the text of a case; answers what the code under test makes of it, or why the case cannot be run.
type Run = fn(&str) -> Result<Value, String>;

const AREAS: [(&str, Run); 8] = [
    ("chunk_tokens", files::chunk_tokens),
    ("context", context::run),
    ("fs_access", files::fs_access),
    ("instructions", files::instructions),
    ("levels", text::levels),
    ("paths", text::paths),
    ("prefix", prefix::run),
    ("reasoning", text::reasoning),
];

#[derive(Deserialize)]
struct File<'f> {
    #[serde(borrow)]
    cases: Vec<&'f RawValue>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    about: String,
    expect: Value,
}

/// Reads a case as its area wants it.
fn read<'c, T: Deserialize<'c>>(case: &'c str) -> Result<T, String> {
    serde_json::from_str(case).map_err(|error| format!("this case cannot be read: {error}"))
}

/// The lines in which two values differ, texts with their own line breaks.
fn difference(expected: &Value, got: &Value) -> String {
    let (expected, got) = (readable(expected), readable(got));
    let mut out = String::from("- expected\n+ got\n");
    for change in TextDiff::from_lines(&expected, &got).iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        out.push_str(&format!("{sign} {}\n", change.value().trim_end_matches('\n')));
    }
    out
}

fn readable(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).expect("a value is JSON");
    text.replace("\\n", "\\n\n    ")
}
