//! The instruction files that an agent starts with, stacked from the outermost directory inwards.
//!
//! Owns which files those are. Refuses to read them, and to look outside of the boundary.

use klbr_core::context::paths::{below, resolve};

/// The names of an instruction file; of one directory, the first that is there counts.
pub const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The instruction files from a boundary down to the directory where work starts, outermost first.
///
/// Each directory gives the first of [`NAMES`] that is a file which may be read, as `is_readable_file` says of
/// an absolute path. A start outside of the boundary is read as the boundary.
pub fn chain(boundary: &str, start: &str, is_readable_file: impl Fn(&str) -> bool) -> Vec<String> {
    let boundary = resolve("/", boundary);
    let start = resolve(&boundary, start);
    let mut directory = boundary.clone();
    let mut files = Vec::new();
    let names = below(&boundary, &start).unwrap_or("").split('/').filter(|name| !name.is_empty());
    for name in [None].into_iter().chain(names.map(Some)) {
        if let Some(name) = name {
            directory = resolve(&directory, name);
        }
        let candidates = NAMES.iter().map(|name| resolve(&directory, name));
        files.extend(candidates.into_iter().find(|file| is_readable_file(file)));
    }
    files
}

/// The name under which an instruction file is given to the model: its path relative to the boundary.
pub fn name(boundary: &str, file: &str) -> String {
    let file = resolve("/", file);
    below(&resolve("/", boundary), &file).unwrap_or(&file).to_owned()
}
