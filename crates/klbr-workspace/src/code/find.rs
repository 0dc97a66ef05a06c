//! Where a name is defined or mentioned.

use std::fs;
use std::path::Path;

use async_trait::async_trait;
use klbr_codeintel::{Answer as Found, Cancel, ContentHash, Hit, Query, SymbolRole, lookup_among};
use klbr_core::action::{Class, FailureKind, Outcome};
use klbr_core::context::{Answer, Content, Read};
use klbr_core::runtime::tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Code;
use super::ask::{Refusal, off, rests_on, said};
use super::disk::Place;
use super::list::kinds;

/// How many finds are listed when the call does not say.
const USUAL: usize = 50;
/// The most finds of one answer.
const MOST: usize = 1000;

/// Arguments of [`CodeDefinitions`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefinitionArguments {
    /// A name or the end of a path: read, Reader::read; from a file's top ::io::Reader::read.
    name: String,
    /// A file or folder, relative to the root; the root when absent.
    path: Option<String>,
    /// Only these kinds, such as function, method, class, struct, field.
    #[serde(default)]
    kinds: Vec<String>,
    /// Show the text when exactly one definition answers. The file then counts as read.
    #[serde(default)]
    text: bool,
    /// How many finds at most; 50 when absent, 1000 at most.
    limit: Option<usize>,
}

/// Arguments of [`CodeReferences`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceArguments {
    /// A name or the end of a path as it is written: read, Reader::read.
    name: String,
    /// A file or folder, relative to the root; the root when absent.
    path: Option<String>,
    /// Only these kinds, such as call, type, import, access.
    #[serde(default)]
    kinds: Vec<String>,
    /// How many finds at most; 50 when absent, 1000 at most.
    limit: Option<usize>,
}

/// Finds where a name is defined.
#[derive(Clone, Debug)]
pub struct CodeDefinitions(pub Code);

/// Finds where a name is mentioned.
#[derive(Clone, Debug)]
pub struct CodeReferences(pub Code);

#[async_trait]
impl Tool for CodeDefinitions {
    type Arguments = DefinitionArguments;
    const NAME: &'static str = "code_definitions";
    const DESCRIPTION: &'static str = "Finds where a name is defined in a source file or folder: place, kind, path and signature of each. With text, \
                                       the lines of the one that answers, as a read of its file.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, context: CallContext, asked: DefinitionArguments) -> Outcome {
        let code = self.0.clone();
        off(move |cancel| {
            let kinds = kinds(&asked.kinds)?;
            let query = Query { role: SymbolRole::Definition, kinds, ..query(&asked.name, asked.limit)? };
            let (place, found) = code.find(asked.path.as_deref(), &query, cancel)?;
            match found.hits.as_slice() {
                [hit] if asked.text && !found.more => code.text(&place, hit),
                _ => Ok(listed(&context, &place, &found)),
            }
        })
        .await
    }
}

#[async_trait]
impl Tool for CodeReferences {
    type Arguments = ReferenceArguments;
    const NAME: &'static str = "code_references";
    const DESCRIPTION: &'static str = "Finds where a name is mentioned in a source file or folder: place, kind and path of each. By the name alone, \
                                       best effort: no types are inferred.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, context: CallContext, asked: ReferenceArguments) -> Outcome {
        let code = self.0.clone();
        off(move |cancel| {
            let kinds = kinds(&asked.kinds)?;
            let query = Query { role: SymbolRole::Reference, kinds, ..query(&asked.name, asked.limit)? };
            let (place, found) = code.find(asked.path.as_deref(), &query, cancel)?;
            Ok(listed(&context, &place, &found))
        })
        .await
    }
}

fn query(name: &str, limit: Option<usize>) -> Result<Query, Refusal> {
    let query = Query::definitions(name)
        .map_err(|error| Refusal(FailureKind::Invalid, format!("Not done: {name:?} is no name: {error}.")))?;
    Ok(Query { limit: limit.unwrap_or(USUAL).min(MOST), ..query })
}

impl Code {
    fn find(&self, path: Option<&str>, query: &Query, cancel: &Cancel) -> Result<(Place, Found), Refusal> {
        let place = self.look(path.unwrap_or("."))?;
        let admits = |below: &Path| self.admits(&place, below);
        let found = lookup_among(&place.real, &self.options(), &admits, query, cancel)?;
        Ok((place, found))
    }

    /// The lines of one definition with what is attached to it, as a read of its file.
    fn text(&self, place: &Place, hit: &Hit) -> Result<Answer, Refusal> {
        let path = place.called(&hit.path);
        let real = if place.is_folder { place.real.join(&hit.path) } else { place.real.clone() };
        let gone = |why: String| Refusal(FailureKind::Refused, format!("Not shown: {path}: {why}."));
        let bytes = fs::read(&real).map_err(|error| gone(error.to_string()))?;
        if ContentHash::of(&bytes) != hit.hash {
            return Err(gone("it changed while it was looked at; ask again".to_owned()));
        }
        let lines = hit.symbol.attached_range;
        let (offset, limit) = (lines.start_line as u64, (lines.end_line - lines.start_line + 1) as u64);
        Ok(Answer::Read(Read {
            file: real.display().to_string(),
            content: Content::of(&bytes),
            offset: Some(offset),
            limit: Some(limit),
            path,
        }))
    }
}

fn listed(context: &CallContext, place: &Place, found: &Found) -> Answer {
    let mut text = String::new();
    for hit in &found.hits {
        let signature = hit.symbol.signature.as_deref().map(|text| format!("  {text}")).unwrap_or_default();
        text.push_str(&format!("{}:{}{signature}\n", place.called(&hit.path), hit.symbol));
    }
    if found.hits.is_empty() {
        text.push_str("(none)\n");
    }
    if found.more {
        text.push_str("(there are more: narrow the path or the kinds, or raise the limit)\n");
    }
    rests_on(&mut text, &found.coverage());
    said(context, text.trim_end().to_owned())
}
