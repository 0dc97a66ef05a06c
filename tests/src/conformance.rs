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
    /// The files that could not be run.
    pub errors: Vec<Error>,
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
    /// Whether every file could be run, and every case of it passed.
    pub fn passed(&self) -> bool {
        self.errors.is_empty() && self.areas.iter().all(|area| area.failures.is_empty())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.areas.iter().try_for_each(|area| area.fmt(f))?;
        self.errors.iter().try_for_each(|error| writeln!(f, "{error}"))
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
/// Fails when the folder cannot be read or has no cases. What is wrong with one file stands in the report.
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
    let mut report = Report::default();
    for file in files {
        match run_file(&file) {
            Ok(area) => report.areas.push(area),
            Err(error) => report.errors.push(error),
        }
    }
    Ok(report)
}

fn run_file(file: &Path) -> Result<Area, Error> {
    let area = file.file_stem().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Error::File { file: file.to_owned(), message: error.to_string() })?;
    run_area(&area, &text).map_err(|error| match error {
        Error::File { message, .. } => Error::File { file: file.to_owned(), message },
        other => other,
    })
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Runs cases that were written here; every one must pass.
    #[track_caller]
    fn check(area: &str, cases: &str) {
        let area = run_area(area, &format!("{{\"about\": \"\", \"cases\": {cases}}}")).unwrap();
        assert!(area.failures.is_empty(), "{area}");
    }

    fn environment(name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    #[test]
    fn the_shared_cases_pass() {
        let folder = folder(environment);
        match run(&folder) {
            Ok(report) => assert!(report.passed(), "{report}"),
            Err(error) if environment("CI").is_some() => panic!("{error}"),
            // Past the capture of the test's output, so that it is seen.
            Err(error) => writeln!(std::io::stderr(), "SKIPPED: {error}").unwrap(),
        }
    }

    #[test]
    fn a_folder_is_found_by_its_variable_else_in_the_shared_one() {
        let set = |names: &'static [(&str, &str)]| {
            folder(move |name| names.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(
            set(&[("KLBR_CONFORMANCE_DIR", "/cases"), ("KLBR_SHARED", "/shared")]),
            Path::new("/cases")
        );
        assert_eq!(set(&[("KLBR_SHARED", "/shared")]), Path::new("/shared/conformance"));
        assert!(set(&[]).ends_with("../shared/conformance"));
    }

    #[test]
    fn what_cannot_be_run_is_an_error_with_a_hint() {
        let missing = run(Path::new("/nowhere/at/all")).unwrap_err().to_string();
        assert!(missing.contains("/nowhere/at/all") && missing.contains("hint: set KLBR_CONFORMANCE_DIR"));
        let empty = run(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap_err().to_string();
        assert!(empty.contains("hint"));
        let unknown = run_area("weather", r#"{"cases": []}"#).unwrap_err().to_string();
        assert!(
            unknown.contains("\"weather\"") && unknown.contains("hint: the areas are chunk_tokens, context,")
        );
        assert!(run_area("paths", r#"{"about": "no cases"}"#).is_err());
        assert!(
            run_area("paths", r#"{"cases": [{"op": "env"}]}"#).is_err(),
            "a case has to expect something"
        );
    }

    #[test]
    fn a_difference_is_shown_with_what_the_case_is_about() {
        let cases = r#"{"cases": [
            {"about": "dots", "op": "resolve", "root": "/a", "path": "..", "expect": "/a"},
            {"op": "unheard", "expect": null},
            {"op": "resolve", "root": "/a", "path": ".", "expect": "/a"}
        ]}"#;
        let text = run_area("paths", cases).unwrap().to_string();
        assert!(
            text.starts_with(
                "paths 1/3\n  case 1: dots\n    - expected\n    + got\n    - \"/a\"\n    + \"/\"\n"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "case 2: (says nothing about itself)\n    this case cannot be read: unknown variant `unheard`"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_note_quotes_the_text_of_a_mode_up_to_its_next_block() {
        check(
            "prefix",
            r#"[{
            "start": {"date": "2026-01-01", "mode": "manual", "could": ["plan", "forge"], "met": [],
                      "files": {"z.md": "z", "a.md": "a"}, "memory": "m", "mcp": {}, "plan": "", "personality": ""},
            "tools": ["read", "commit", "python", "plan_submit"],
            "steps": [
                {"op": "user"}, {"op": "call", "tool": "commit"}, {"op": "set", "met": ["forge"]},
                {"op": "call", "tool": "commit"},
                {"op": "set", "mode": "plan", "memory": "", "files": {"z.md": "z2", "a.md": "a2"}},
                {"op": "wrapup"}, {"op": "user"}, {"op": "set", "plan": "p", "by": "model"}, {"op": "compact"},
                {"op": "set", "date": "2026-01-02"}, {"op": "user"}
            ],
            "expect": [
                {"system": 1, "tools": ["read", "commit", "plan_submit"], "note": "<session-note>\nToday is 2026-01-01.\n</session-note>"},
                "No repository.", null, null, null,
                {"system": 1, "tools": ["read", "commit", "plan_submit"], "note": null},
                {"system": 1, "tools": ["read", "commit", "plan_submit"],
                 "note": "<session-note>\nThe permission mode is now plan:\nOne.\n\nTwo.\n\nThe person changed what is remembered; it is now:\n(none)\n\nz.md changed; it now reads:\nz2\n\na.md changed; it now reads:\na2\n</session-note>"},
                null,
                {"system": 1, "tools": ["read", "commit", "plan_submit"], "ask": "Summarise."},
                null,
                {"system": 2, "tools": ["read", "commit", "plan_submit"], "note": "<session-note>\nToday is 2026-01-02.\n</session-note>"}
            ]
        }]"#,
        );
    }

    #[test]
    fn options_of_a_case_reach_the_code() {
        check(
            "context",
            r##"[{
            "limits": {"max_lines": 3, "head_lines": 1, "tail_lines": 1},
            "steps": [
                {"op": "output", "id": "#00ff", "tool": "grep", "args": {"b": 1, "a": 2}, "text": "1\n2\n3\n4"},
                {"op": "output", "id": "#0100", "tool": "grep", "args": {"a": 2, "b": 1}, "text": "1\n2\n3\n4"},
                {"op": "recall", "id": "#0101", "target": "100", "offset": 4},
                {"op": "recall", "id": "#0102", "target": "#beef"},
                {"op": "compact"}
            ],
            "expect": [
                "[#00ff]\n1\n[2 lines elided, full output #00ff]\n4",
                "[#0100] Same result as #00ff.",
                "[#0101 recall #0100 lines 4-4 of 4]\n4",
                "[#0102] No stored result #beef in this session.",
                ""
            ]
        }]"##,
        );
        check(
            "reasoning",
            r#"[{
            "messages": [
                {"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "reasoning": "r"},
                {"role": "user", "content": "c", "turn": false}, {"role": "assistant", "content": "d", "reasoning": "s"}
            ],
            "expect": [
                {"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "reasoning_content": "r"},
                {"role": "user", "content": "c"}, {"role": "assistant", "content": "d", "reasoning_content": "s"}
            ]
        }]"#,
        );
        check(
            "fs_access",
            r#"[
            {"tree": ["/a/", "/a/b"], "grants": {"/": "ro"}, "op": "read", "path": "a", "expect": {"entries": ["b"]}},
            {"tree": ["/a/"], "grants": {"/": "commit"}, "floor": {"/a": "none"}, "op": "level", "cwd": "/a", "path": ".",
             "expect": {"level": "none", "passage": false}}
        ]"#,
        );
        check(
            "chunk_tokens",
            r#"[{"tokenizer": "words", "size": 1, "overlap": 9, "text": "a\r\nb", "expect": ["a\nb"]}]"#,
        );
    }
}
