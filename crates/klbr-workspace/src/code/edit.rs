//! One definition changed, by its name, in a file that the agent has seen as it is (B-CODE-3).

use std::fs;
use std::path::Path;

use async_trait::async_trait;
use klbr_codeintel::{
    Cancel, ContentHash, Edit, EditError, EditPolicy, Editor, Extent, FileEdit, Limits, Selector,
    extract_symbols,
};
use klbr_core::action::{Class, FailureKind, Outcome, Resource};
use klbr_core::context::{Answer, Change, Content, Seen};
use klbr_core::hash::Hash;
use klbr_core::runtime::tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Code;
use super::ask::{Refusal, off};

/// What is done to the definition.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum How {
    /// The text takes the place of the definition; an empty one removes it.
    ReplaceSymbol,
    /// The text takes the place of the body.
    ReplaceSymbolBody,
    /// The text is put on lines of its own before the definition.
    InsertBefore,
    /// The text is put on lines of its own after the definition.
    InsertAfter,
    /// The text is the new name, for the definition and its mentions in this file.
    RenameInFile,
}

/// Arguments of [`CodeEditSymbol`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditArguments {
    /// The file, relative to the root.
    path: String,
    /// The definition: a name or the end of a path that names one alone, as code_outline tells it.
    symbol: String,
    /// What is done.
    edit: How,
    /// The new text; line endings and indentation are fitted to the file.
    text: String,
    /// With replace_symbol: decorators, attributes and doc comments are replaced too.
    #[serde(default)]
    attached: bool,
}

/// Changes one definition.
#[derive(Clone, Debug)]
pub struct CodeEditSymbol(pub Code);

#[async_trait]
impl Tool for CodeEditSymbol {
    type Arguments = EditArguments;
    const NAME: &'static str = "code_edit_symbol";
    const DESCRIPTION: &'static str = "Changes one definition of a source file by its name; everything else stays as it is. Refused when the file is \
                                       not as you last read it, when the name is ambiguous, or when the result would parse worse.";
    const CLASS: Class = Class::Reversible;
    const CANCELLABLE: bool = false;

    fn resource(&self) -> Resource {
        Resource::Argument("path".into())
    }

    async fn call(&self, context: CallContext, asked: EditArguments) -> Outcome {
        let code = self.0.clone();
        off(move |cancel| code.edit(&context.attempt.seen, &asked, cancel)).await
    }

    /// A file that is still the one that the agent had seen was not changed by the attempt.
    async fn reconcile(&self, context: CallContext, asked: EditArguments) -> Outcome {
        let now =
            self.0.change(&asked.path).ok().and_then(|place| Some((fs::read(&place.real).ok()?, place.real)));
        let seen = &context.attempt.seen;
        let is_as_seen = now.is_some_and(|(bytes, real)| check(seen, &real, &bytes).is_ok());
        match is_as_seen {
            true => Outcome::failed(
                FailureKind::Cancelled,
                "Not changed: the process ended before the file was written.",
            ),
            false => Outcome::unknown(
                "The process ended while the file was being changed. It is not as you last read it: read it again.",
            ),
        }
    }
}

fn check(seen: &Seen, real: &Path, bytes: &[u8]) -> Result<(), Refusal> {
    let file = real.display().to_string();
    let checked = seen.check_change(&file, Some(Hash::of(bytes)));
    checked.map_err(|unseen| Refusal(FailureKind::Refused, unseen.to_string()))
}

impl Code {
    fn edit(&self, seen: &Seen, asked: &EditArguments, cancel: &Cancel) -> Result<Answer, Refusal> {
        let place = self.change(&asked.path)?;
        let before = fs::read(&place.real).map_err(|error| refused(&format!("{}: {error}", place.name)))?;
        check(seen, &place.real, &before).map_err(|Refusal(why, text)| {
            // What the agent needs to look at again, without another question.
            let place = whereabouts(&place.real, &before, &asked.symbol);
            Refusal(why, text + &place.unwrap_or_default())
        })?;
        let batch = [FileEdit {
            path: place.real.clone(),
            expected: ContentHash::of(&before),
            language: None,
            edits: vec![asked.edit()],
        }];
        let mut editor = Editor::new(Limits::default(), EditPolicy::default()).with_cancel(cancel.clone());
        let applied = editor.apply(&batch).map_err(|error| match error {
            EditError::Stale { .. } => refused("the file changed just now: read it again before changing it"),
            error => refused(&error.to_string()),
        })?;
        // What was written is what the hash says; a later writer's text is not this call's.
        let after = fs::read(&place.real)
            .ok()
            .filter(|after| applied.first().is_some_and(|applied| applied.after == ContentHash::of(after)));
        let Some(after) = after else {
            return Ok(Answer::text(format!(
                "Changed, and {} was changed again at once: read it again.",
                place.name
            )));
        };
        Ok(Answer::Change(Change {
            path: place.name,
            file: place.real.display().to_string(),
            before: Some(Content::of(&before)),
            after: Some(Content::of(&after)),
            note: None,
        }))
    }
}

fn refused(why: &str) -> Refusal {
    Refusal(FailureKind::Refused, format!("Not changed: {why}."))
}

/// Where the symbol stands in a text that the agent has not seen, when exactly one answers.
fn whereabouts(path: &Path, text: &[u8], symbol: &str) -> Option<String> {
    let selector = Selector::parse(symbol).ok()?;
    let extraction = extract_symbols(Some(path), text, None).ok()?;
    let mut found = extraction.definitions().filter(|symbol| selector.matches(&symbol.name_path));
    match (found.next(), found.next()) {
        (Some(one), None) => {
            let range = one.attached_range;
            Some(format!(" {} stands at lines {}-{} now.", one.name_path, range.start_line, range.end_line))
        }
        _ => None,
    }
}

impl EditArguments {
    fn edit(&self) -> Edit {
        let (target, text) = (self.symbol.clone(), self.text.clone());
        match self.edit {
            How::ReplaceSymbol => {
                let extent = if self.attached { Extent::Attached } else { Extent::Definition };
                Edit::ReplaceSymbol { target, text, extent }
            }
            How::ReplaceSymbolBody => Edit::ReplaceSymbolBody { target, text },
            How::InsertBefore => Edit::InsertBefore { target, text },
            How::InsertAfter => Edit::InsertAfter { target, text },
            How::RenameInFile => Edit::RenameInFile { target, name: self.text.trim().to_owned() },
        }
    }
}
