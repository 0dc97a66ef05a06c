//! `klbr code edit`: one definition changed, checked against the hash that it was planned on (B-CODE-3).

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use klbr_codeintel::{Edit, EditError, EditPolicy, Editor, Extent, FileEdit, Limits};

use super::{print_json, shown};
use crate::args::{self, Target, Text};
use crate::error::{CommandError, Outcome};

/// Applies it, and prints the difference and the new hash.
pub(super) fn run(asked: &args::Edit, json: bool) -> Outcome {
    let (of, edit) = edit(asked)?;
    let language = of.language.map(|language| language.name().to_owned());
    let batch = [FileEdit { path: of.file.clone(), expected: of.hash, language, edits: vec![edit] }];
    let applied = Editor::new(Limits::default(), EditPolicy::default())
        .apply(&batch)
        .map_err(|error| refused(error, &of.file))?;
    let Some(applied) = applied.first() else { return Ok(()) };
    if json {
        return print_json(applied);
    }
    let mut stdout = io::stdout().lock();
    let name = of.file.display().to_string();
    for (side, mark) in [('a', "---"), ('b', "+++")] {
        writeln!(stdout, "{mark} {side}/{}", shown(name.trim_start_matches('/')))?;
    }
    // The file is called as the operator does, not as the system.
    for line in applied.diff.lines().skip(2) {
        writeln!(stdout, "{}", shown(line))?;
    }
    writeln!(stdout, "hash {}", applied.after)?;
    Ok(stdout.flush()?)
}

fn edit(asked: &args::Edit) -> Outcome<(&Target, Edit)> {
    let target = |of: &Target| of.target.clone();
    Ok(match asked {
        args::Edit::ReplaceSymbol { of, text, attached } => {
            let extent = if *attached { Extent::Attached } else { Extent::Definition };
            (of, Edit::ReplaceSymbol { target: target(of), text: read(text)?, extent })
        }
        args::Edit::ReplaceSymbolBody { of, text } => {
            (of, Edit::ReplaceSymbolBody { target: target(of), text: read(text)? })
        }
        args::Edit::InsertBefore { of, text } => {
            (of, Edit::InsertBefore { target: target(of), text: read(text)? })
        }
        args::Edit::InsertAfter { of, text } => {
            (of, Edit::InsertAfter { target: target(of), text: read(text)? })
        }
        args::Edit::RenameInFile { of, name } => {
            (of, Edit::RenameInFile { target: target(of), name: name.clone() })
        }
    })
}

fn read(text: &Text) -> Outcome<String> {
    let from = text.text.as_deref().filter(|path| *path != Path::new("-"));
    let read = match from {
        Some(path) => std::fs::read_to_string(path),
        None => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
    };
    read.map_err(|error| {
        let what = from.map_or("standard input".to_owned(), |path| path.display().to_string());
        CommandError::user(
            format!("{what} cannot be read"),
            "name a readable file of UTF-8 text; nothing was changed",
        )
        .because(error)
    })
}

fn refused(error: EditError, file: &Path) -> CommandError {
    let message = error.to_string();
    let outline = format!("klbr code outline {} lists them; nothing was changed", file.display());
    let hint = match &error {
        EditError::Stale { found, target, .. } => match target {
            Some(place) => format!(
                "the target stands at lines {} to {} now; look at it, then name --hash {found}; nothing was changed",
                place.start_line, place.end_line
            ),
            None => format!("look at it again, then name --hash {found}; nothing was changed"),
        },
        EditError::NotFound { .. } | EditError::NoBody(_) => outline,
        EditError::Ambiguous { .. } => "name one of them as it is printed; nothing was changed".to_owned(),
        EditError::ReadOnly(_) => "make the file writable; nothing was changed".to_owned(),
        EditError::Locked(_) => "try again when the other editor is done; nothing was changed".to_owned(),
        EditError::Io { .. } => {
            "check the file, its folder's permissions and the disk's free space; nothing was changed"
                .to_owned()
        }
        EditError::HalfWritten { .. } => "put the old texts back from beside the files".to_owned(),
        _ => "nothing was changed".to_owned(),
    };
    match &error {
        EditError::Locked(_) => CommandError::remote(message, hint),
        EditError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            CommandError::user(message, "name a file that is there")
        }
        EditError::Io { .. } | EditError::HalfWritten { .. } => CommandError::internal(message, hint),
        _ => CommandError::user(message, hint),
    }
}
