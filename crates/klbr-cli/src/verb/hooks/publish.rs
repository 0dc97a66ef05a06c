//! `klbr hooks publish`: a folder of Python into the home, and the manifest that would bind what its decorators say.

use std::path::{Path, PathBuf};

use klbr_codeintel::{CodeSymbol, SymbolKind, SymbolRole, extract_symbols};
use klbr_pyhost::{TreeError, Trees};
use serde_json::json;

use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::home;

/// Publishes; needs no daemon, and disturbs none: what is published is only ever added.
pub(super) fn run(context: &Context, folder: &Path) -> Outcome {
    home::require(&context.home)?;
    let hash = Trees::new(&context.home).publish(folder).map_err(unpublished)?;
    let found = decorated(folder)?;
    let manifest = manifest(&hash.to_string(), &found);
    context.print(&json!({ "tree": hash.to_string(), "manifest": manifest }), || {
        let path = Trees::new(&context.home).path(hash);
        format!(
            "# published: {}\n# put this into a file, and klbr hooks dry-run FILE tries it\n{manifest}",
            path.display()
        )
    })
}

pub(super) fn unpublished(error: TreeError) -> CommandError {
    let hint = match &error {
        TreeError::Io { .. } => "name a folder that you can read; nothing was published",
        TreeError::Unfit { .. } => "leave that out of the folder; nothing was published",
        TreeError::Missing(_) | TreeError::Changed { .. } => "publish the folder again",
    };
    let source = std::error::Error::source(&error).map(ToString::to_string);
    CommandError::user(format!("{error}{}", source.map(|why| format!(": {why}")).unwrap_or_default()), hint)
}

/// A hook as its decorator tells of it.
pub(super) struct Decorated {
    pub(super) run: String,
    /// `slot`, `transform` or `observer`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) deadline: Option<String>,
}

/// The manifest that binds some hooks of a tree.
pub(super) fn manifest(tree: &str, hooks: &[Decorated]) -> String {
    let mut text = format!("manifest = 1\n\n[policy]\ntree = \"{tree}\"\n");
    if hooks.is_empty() {
        text += "\n# no function is decorated: bind each by hand\n#[[hooks]]\n#slot = \"delivery.review\"\n#run = \"module:function\"\n";
    }
    for Decorated { run, kind, name, deadline } in hooks {
        text += &format!("\n[[hooks]]\n{kind} = \"{name}\"\nrun = \"{run}\"\n");
        if let Some(deadline) = deadline {
            text += &format!("deadline = \"{deadline}\"\n");
        }
    }
    text
}

/// The decorated functions of a folder. Read, not imported: nothing of the code runs.
pub(super) fn decorated(folder: &Path) -> Outcome<Vec<Decorated>> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || name == "__pycache__" {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "py") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let module = file.strip_prefix(folder).unwrap_or(&file).with_extension("");
        let parts: Vec<String> =
            module.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        let module = parts.join(".");
        let module = module.strip_suffix(".__init__").unwrap_or(&module);
        found.extend(decorators(module, &std::fs::read_to_string(&file).unwrap_or_default()));
    }
    Ok(found)
}

/// What the decorators of a module's functions say. A text that is no Python says nothing; trying it will tell why.
fn decorators(module: &str, text: &str) -> Vec<Decorated> {
    let Ok(extraction) = extract_symbols(None, text, Some("python")) else { return Vec::new() };
    let is_function = |symbol: &&CodeSymbol| {
        symbol.role == SymbolRole::Definition
            && symbol.kind == SymbolKind::Function
            && symbol.container.is_none()
    };
    let hook = |symbol: &CodeSymbol| {
        let head = &text[symbol.attached_range.start_byte..symbol.range.start_byte];
        head.strip_prefix('@')?.split("\n@").find_map(|decorator| {
            let (path, arguments) = decorator.split_once('(')?;
            let path = path.trim();
            let own = path.strip_prefix("klbr.").unwrap_or(path).strip_prefix("hooks.")?;
            let kind = ["slot", "transform", "observer"].into_iter().find(|kind| *kind == own)?;
            let deadline = arguments.split_once("deadline").and_then(|(_, rest)| quoted(rest));
            let (run, name) = (format!("{module}:{}", symbol.name), quoted(arguments)?);
            Some(Decorated { run, kind, name, deadline })
        })
    };
    extraction.symbols.iter().filter(is_function).filter_map(hook).collect()
}

/// The text that comes first in quotes.
fn quoted(text: &str) -> Option<String> {
    let start = text.find(['"', '\''])?;
    let quote = text[start..].chars().next()?;
    let rest = &text[start + 1..];
    Some(rest[..rest.find(quote)?].to_owned())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_decorators_say_becomes_a_manifest() {
        let text = "from klbr import hooks\n\n@hooks.slot(\"delivery.review\", deadline='300ms')\nasync def review(send):\n    pass\n\ndef helper():\n    pass\n\n@other\n@klbr.hooks.transform(\n    'result.shape',  # a word\n)\ndef shape(result):\n    return None\n\n\"\"\"\n@hooks.slot('no.code')\ndef f(): ...\n\"\"\"\n";
        expect![[r#"
            manifest = 1

            [policy]
            tree = "00"

            [[hooks]]
            slot = "delivery.review"
            run = "p.q:review"
            deadline = "300ms"

            [[hooks]]
            transform = "result.shape"
            run = "p.q:shape"
        "#]]
        .assert_eq(&manifest("00", &decorators("p.q", text)));
    }
}
