//! Renames within one file, where the file itself leaves no doubt what is meant.

use super::{
    EditError,
    plan::{Piece, Subject},
};
use crate::{
    language::Language,
    name_path::same_name,
    range::{SourceRange, Span},
    symbol::SymbolKind,
    walk::visit,
};
use std::collections::HashSet;

/// Words that no definition of a language may be called.
fn reserved(language: Language) -> &'static str {
    match language {
        Language::Rust => {
            " as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut \
             pub ref return self Self static struct super trait true type unsafe use where while abstract become box do final \
             macro override priv typeof unsized virtual yield try gen _ "
        }
        Language::Python => {
            " False None True and as assert async await break class continue def del elif else except finally for from global \
             if import in is lambda nonlocal not or pass raise return try while with yield "
        }
        #[cfg(feature = "_table")]
        _ => "",
    }
}

fn is_identifier(language: Language, name: &str) -> bool {
    let plain = name.strip_prefix("r#").filter(|_| language == Language::Rust).unwrap_or(name);
    let mut letters = plain.chars();
    let first = letters.next().is_some_and(|first| first.is_alphabetic() || first == '_');
    let rest = letters.all(|letter| letter.is_alphanumeric() || letter == '_');
    first && rest && (plain != name || !reserved(language).contains(&format!(" {name} ")))
}

fn is_member(kind: SymbolKind) -> bool {
    matches!(
        kind,
        SymbolKind::Method
            | SymbolKind::StaticMethod
            | SymbolKind::ClassMethod
            | SymbolKind::Property
            | SymbolKind::Field
            | SymbolKind::Attribute
            | SymbolKind::Variant
            | SymbolKind::AssociatedConst
            | SymbolKind::AssociatedType
    )
}

pub(super) fn pieces(subject: &Subject<'_>, target: usize, name: &str) -> Result<Vec<Piece>, EditError> {
    if !is_identifier(subject.language, name) {
        return Err(EditError::NotAnIdentifier(name.to_owned()));
    }
    let (raws, source) = (subject.raws(), subject.source);
    let def = &raws.defs[target];
    let old = def.name(source).into_owned();
    if !is_identifier(subject.language, &old) {
        return Err(EditError::NotAnIdentifier(old));
    }
    let doubt = |reason, found: Vec<Span>| -> Result<(), EditError> {
        match found.is_empty() {
            true => Ok(()),
            false => {
                let found = found
                    .into_iter()
                    .map(|span| subject.lines.range(span.range()))
                    .collect::<Vec<SourceRange>>();
                Err(EditError::RenameInDoubt { reason, found })
            }
        }
    };
    let words = words(subject);
    let named = |wanted: &str| -> Vec<Span> {
        words.iter().copied().filter(|span| same_name(wanted, &span.text(source))).collect()
    };
    doubt("the new name is used here already", named(name))?;
    let others = raws
        .defs
        .iter()
        .enumerate()
        .filter(|(index, def)| *index != target && same_name(&old, &def.name(source)));
    doubt("another definition has the same name", others.map(|(_, def)| def.name).collect())?;
    let mentions: HashSet<Span> = raws.refs.iter().map(|mention| mention.name).collect();
    let captured =
        raws.refs.iter().map(|mention| mention.name).filter(|span| same_name(&old, &span.text(source)));
    let mut places = named(&old);
    places.extend(captured);
    places.sort();
    places.dedup();
    let bound = places.iter().copied().filter(|span| *span != def.name && !mentions.contains(span));
    doubt("a local name or parameter is called the same", bound.collect())?;
    let dotted = |span: &Span| source[..span.start as usize].trim_ascii_end().ends_with(b".");
    let pathed = |span: &Span| dotted(span) || source[..span.start as usize].ends_with(b"::");
    let member = is_member(def.kind);
    let odd = places.iter().copied().filter(|span| {
        let own = *span == def.name;
        !own && if member { !pathed(span) && !is_initializer(source, *span) } else { dotted(span) }
    });
    doubt("the name may be that of something else", odd.collect())?;
    Ok(places.into_iter().map(|span| Piece { at: span.range(), text: name.as_bytes().to_vec() }).collect())
}

/// Whether the word is a field with its value or pattern: `name: …`.
fn is_initializer(source: &[u8], span: Span) -> bool {
    let after = source[span.end as usize..].trim_ascii_start();
    after.starts_with(b":") && !after.starts_with(b"::")
}

/// Every identifier of the text, whatever it is used for.
fn words(subject: &Subject<'_>) -> Vec<Span> {
    let mut found = Vec::new();
    visit(&subject.parsed.tree, |node| {
        if node.child_count() == 0 && node.is_named() && node.kind().ends_with("identifier") {
            found.push(Span::of(node));
        }
        true
    });
    found
}
