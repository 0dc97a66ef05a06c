//! What files define, and where they leave their grammar.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use async_trait::async_trait;
use klbr_codeintel::{Cancel, Surveyed, SymbolKind, SymbolRole, outline, survey};
use klbr_core::action::{Class, FailureKind, Outcome};
use klbr_core::context::Answer;
use klbr_core::runtime::tool::{CallContext, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Code;
use super::ask::{Refusal, off, rests_on, said};

/// The most bytes of one answer; the model is shown less, and can recall the rest.
const MOST: usize = 1 << 20;

/// Arguments of [`CodeOutline`] and [`CodeDiagnostics`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListArguments {
    /// A file or folder, relative to the root; the root when absent.
    path: Option<String>,
}

/// Arguments of [`CodeSymbols`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SymbolArguments {
    /// A piece of the names; its case counts only if it has capitals. Every name when absent.
    text: Option<String>,
    /// A file or folder, relative to the root; the root when absent.
    path: Option<String>,
    /// Only these kinds, such as function, method, class, struct, field.
    #[serde(default)]
    kinds: Vec<String>,
}

/// Shows files as trees of what they define.
#[derive(Clone, Debug)]
pub struct CodeOutline(pub Code);

/// Lists definitions by a piece of their names.
#[derive(Clone, Debug)]
pub struct CodeSymbols(pub Code);

/// Lists where files leave their grammar.
#[derive(Clone, Debug)]
pub struct CodeDiagnostics(pub Code);

#[async_trait]
impl Tool for CodeOutline {
    type Arguments = ListArguments;
    const NAME: &'static str = "code_outline";
    const DESCRIPTION: &'static str = "Shows a source file, or each one of a folder, as a tree of what it defines, with lines and signatures. \
                                       Cheaper than reading, and tells the names that code_edit_symbol takes.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, context: CallContext, asked: ListArguments) -> Outcome {
        let code = self.0.clone();
        off(move |cancel| {
            code.list(context, asked.path.as_deref(), cancel, |name, surveyed| {
                let extraction = surveyed.symbols(Some(SymbolRole::Definition));
                let mut text = format!("{name} ({})\n", extraction.language.name);
                for line in outline(&extraction.symbols).to_string().lines() {
                    // A text takes what is written.
                    let _ = writeln!(text, "  {line}");
                }
                text
            })
        })
        .await
    }
}

#[async_trait]
impl Tool for CodeSymbols {
    type Arguments = SymbolArguments;
    const NAME: &'static str = "code_symbols";
    const DESCRIPTION: &'static str = "Lists the definitions in a source file or folder whose names hold a piece of text: place, kind and path of \
                                       each.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, context: CallContext, asked: SymbolArguments) -> Outcome {
        let code = self.0.clone();
        off(move |cancel| {
            let kinds = kinds(&asked.kinds)?;
            let piece = asked.text.unwrap_or_default();
            let is_exact = piece.chars().any(char::is_uppercase);
            let holds = |name: &str| match is_exact {
                true => name.contains(&piece),
                false => name.to_lowercase().contains(&piece),
            };
            code.list(context, asked.path.as_deref(), cancel, |name, surveyed| {
                let symbols = surveyed.symbols(Some(SymbolRole::Definition)).symbols;
                let taken = symbols.iter().filter(|symbol| kinds.is_empty() || kinds.contains(&symbol.kind));
                taken
                    .filter(|symbol| holds(&symbol.name))
                    .map(|symbol| format!("{name}:{symbol}\n"))
                    .collect()
            })
        })
        .await
    }
}

#[async_trait]
impl Tool for CodeDiagnostics {
    type Arguments = ListArguments;
    const NAME: &'static str = "code_diagnostics";
    const DESCRIPTION: &'static str = "Lists where a source file, or those of a folder, cannot be read by their language's grammar: syntax only, never \
                                       types or names.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, context: CallContext, asked: ListArguments) -> Outcome {
        let code = self.0.clone();
        off(move |cancel| {
            code.list(context, asked.path.as_deref(), cancel, |name, surveyed| {
                surveyed.diagnostics().items.iter().map(|item| format!("{name}:{item}\n")).collect()
            })
        })
        .await
    }
}

/// The kinds of those names.
pub(super) fn kinds(names: &[String]) -> Result<Vec<SymbolKind>, Refusal> {
    let unknown = |name: &String| {
        let known: Vec<&str> = SymbolKind::ALL.iter().map(|kind| kind.as_str()).collect();
        Refusal(
            FailureKind::Invalid,
            format!("Not done: there is no kind {name:?}; kinds: {}.", known.join(", ")),
        )
    };
    names.iter().map(|name| SymbolKind::parse(name).ok_or_else(|| unknown(name))).collect()
}

impl Code {
    /// What is told of each file, and what the answer rests on.
    fn list(
        &self,
        context: CallContext,
        path: Option<&str>,
        cancel: &Cancel,
        tell: impl Fn(&str, &Surveyed<'_>) -> String + Sync,
    ) -> Result<Answer, Refusal> {
        let place = self.look(path.unwrap_or("."))?;
        let mut text = String::new();
        let coverage = survey(
            &place.real,
            &self.options(),
            &|below| self.admits(&place, below),
            cancel,
            |surveyed| tell(&place.called(surveyed.path()), surveyed),
            |told| {
                text.push_str(&told);
                if text.len() > MOST { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        )?;
        if text.is_empty() {
            text.push_str("(none)\n");
        }
        rests_on(&mut text, &coverage);
        Ok(said(&context, text.trim_end().to_owned()))
    }
}
