//! `klbr code`: code by its symbols. The verbs, one file each; needs no home and starts no runtime.

mod diagnostics;
mod edit;
mod find;
mod index;
mod outline;
mod symbols;
mod worker;

use std::borrow::Cow;
use std::io::{self, BufWriter, Stdout, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use klbr_codeintel::{Cancel, Coverage, IndexError, IndexOptions, Surveyed, SymbolRole, survey};
use serde::Serialize;
use serde_json::json;

use crate::args::{Code, Over, Read};
use crate::error::{CommandError, Outcome};
use crate::{text, wiring};

/// How many bytes are printed at once.
const BUFFER: usize = 64 << 10;

/// Does what was asked for.
pub(super) fn run(code: &Code, json: bool) -> Outcome {
    match code {
        Code::Outline(over) => outline::run(over, json),
        Code::Symbols(symbols) => symbols::run(symbols, json),
        Code::Defs(find) => find::run(find, SymbolRole::Definition, json),
        Code::Refs(find) => find::run(find, SymbolRole::Reference, json),
        Code::Edit(edit) => edit::run(edit, json),
        Code::Diagnostics(over) => diagnostics::run(over, json),
        Code::Index(index) => index::run(index, json),
        Code::Worker => worker::run(),
    }
}

fn options(read: &Read) -> Outcome<IndexOptions> {
    Ok(IndexOptions {
        threads: read.threads,
        follow_links: read.follow,
        hidden: read.hidden,
        obey_ignore_files: !read.no_ignore,
        read_as: read.language,
        isolation: Some(wiring::parser()?),
        ..IndexOptions::default()
    })
}

/// Prints what is made of each file, in order, then what the answer rests on.
///
/// For people, `lines` writes; for programs, `value` is an entry of `files`. What either leaves out is no entry.
fn each<J: Serialize>(
    over: &Over,
    json: bool,
    lines: impl Fn(&str, &Surveyed<'_>, &mut Vec<u8>) + Sync,
    value: impl Fn(&str, &Surveyed<'_>) -> Option<J> + Sync,
) -> Outcome {
    let options = options(&over.read)?;
    let mut out =
        Out { stdout: BufWriter::with_capacity(BUFFER, io::stdout()), json, entries: 0, failed: None };
    if json {
        out.write(b"{\"files\":[");
    }
    let mut coverage = Coverage::default();
    for path in &over.paths {
        let make = |surveyed: &Surveyed<'_>| {
            let name = name(path, surveyed.path());
            let mut made = Vec::new();
            match json {
                true => {
                    if let Some(value) = value(&name, surveyed) {
                        serde_json::to_writer(&mut made, &value)?;
                    }
                }
                false => lines(&name, surveyed, &mut made),
            }
            Ok(made)
        };
        let part = survey(path, &options, &|_| true, &Cancel::new(), make, |made| out.entry(made))?;
        add(&mut coverage, part);
    }
    if json {
        out.write(b"],");
        out.write(
            serde_json::to_string(&coverage).map_err(io::Error::from)?.trim_start_matches('{').as_bytes(),
        );
        out.write(b"\n");
    }
    out.finish()?;
    rests_on(&coverage, json);
    Ok(())
}

fn add(all: &mut Coverage, part: Coverage) {
    all.searched += part.searched;
    all.left += part.left;
    all.skipped.merge(part.skipped);
}

/// Tells people what an answer rests on, beside it; programs are told in it.
fn rests_on(coverage: &Coverage, json: bool) {
    let is_one_whole_file = coverage.searched == 1 && coverage.skipped.is_empty();
    if json || is_one_whole_file {
        return;
    }
    let mut stderr = io::stderr().lock();
    // There is nowhere left to say that the error stream is closed.
    let _ = writeln!(stderr, "{coverage}");
    for skipped in &coverage.skipped.first {
        let path = skipped.path.display().to_string();
        let _ = writeln!(
            stderr,
            "  {}: {}",
            text::clean_line(&path),
            text::clean_line(&skipped.reason.to_string())
        );
    }
}

/// How a file is called: as it was named, or below the folder that was.
fn name(path: &Path, below: &Path) -> String {
    let name: PathBuf = match path.is_dir() {
        true => path.components().chain(below.components()).filter(|part| part.as_os_str() != ".").collect(),
        false => path.to_owned(),
    };
    name.display().to_string()
}

/// A line for people: what could command a terminal is made visible.
fn shown(line: &str) -> Cow<'_, str> {
    match line.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        true => Cow::Borrowed(line),
        false => Cow::Owned(text::clean_line(line)),
    }
}

struct Out {
    stdout: BufWriter<Stdout>,
    json: bool,
    entries: usize,
    failed: Option<io::Error>,
}

impl Out {
    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.stdout.write_all(bytes).err();
        }
    }

    fn entry(&mut self, made: io::Result<Vec<u8>>) -> ControlFlow<()> {
        match made {
            Ok(made) if made.is_empty() => {}
            Ok(made) => {
                if self.json {
                    self.write(if self.entries > 0 { b",\n" } else { b"\n" });
                }
                self.entries += 1;
                self.write(&made);
            }
            Err(error) => self.failed = Some(error),
        }
        if self.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn finish(mut self) -> io::Result<()> {
        self.failed.map_or_else(|| self.stdout.flush(), Err)
    }
}

/// An answer for programs that no file's text is part of.
fn print_json(value: &impl Serialize) -> Outcome {
    let mut stdout = io::stdout().lock();
    serde_json::to_writer_pretty(&mut stdout, value).map_err(io::Error::from)?;
    Ok(writeln!(stdout)?)
}

impl From<IndexError> for CommandError {
    fn from(error: IndexError) -> Self {
        let hint = match error {
            IndexError::Language { .. } => "name its language with --language",
            _ => "name files and folders that can be read",
        };
        CommandError::user(error.to_string(), hint)
    }
}

/// The head of a file's answer for programs.
fn head(name: &str, surveyed: &Surveyed<'_>) -> serde_json::Map<String, serde_json::Value> {
    let mut head = serde_json::Map::new();
    head.insert("path".to_owned(), json!(name));
    head.insert("hash".to_owned(), json!(surveyed.hash()));
    head
}
