//! A text's definitions as a tree, and that tree as lines for a reader.

use crate::{
    range::SourceRange,
    symbol::{CodeSymbol, SymbolKind, SymbolRole},
};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, fmt};

/// A definition with those that it contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutlineNode {
    /// The bare name.
    pub name: String,
    /// What kind of thing it is.
    pub kind: SymbolKind,
    /// Its address, as edits and questions take it.
    pub path: String,
    /// The definition up to its body, on one line.
    pub signature: String,
    /// First line, what is attached included; from 1.
    pub start_line: usize,
    /// Last line.
    pub end_line: usize,
    /// The definition without what is attached.
    pub range: SourceRange,
    /// Stands in or after a broken region.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub degraded: bool,
    /// The definitions in it, in the order of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<OutlineNode>,
}

/// The tree of a text's definitions. Its `Display` is one line a definition: lines, kind, signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Outline(pub Vec<OutlineNode>);

/// Makes the tree of the definitions among `symbols`, which are those of one text.
pub fn outline(symbols: &[CodeSymbol]) -> Outline {
    let definitions: Vec<&CodeSymbol> =
        symbols.iter().filter(|symbol| symbol.role == SymbolRole::Definition).collect();
    let places: HashMap<_, usize> =
        definitions.iter().enumerate().map(|(at, symbol)| (&symbol.name_path, at)).collect();
    let mut nodes: Vec<Option<OutlineNode>> = definitions.iter().map(|symbol| Some(node(symbol))).collect();
    let mut roots = Vec::new();
    // Containers begin before what they contain, so from the end each node is complete when it is moved.
    for at in (0..nodes.len()).rev() {
        let Some(mut done) = nodes[at].take() else { continue };
        done.children.reverse();
        let parent = definitions[at].container.as_ref().and_then(|path| places.get(path));
        match parent.filter(|parent| **parent < at).and_then(|parent| nodes[*parent].as_mut()) {
            Some(parent) => parent.children.push(done),
            None => roots.push(done),
        }
    }
    roots.reverse();
    Outline(roots)
}

fn node(symbol: &CodeSymbol) -> OutlineNode {
    OutlineNode {
        name: symbol.name.clone(),
        kind: symbol.kind,
        path: symbol.name_path.to_string(),
        signature: symbol.signature.clone().unwrap_or_default(),
        start_line: symbol.attached_range.start_line,
        end_line: symbol.range.end_line,
        range: symbol.range,
        degraded: symbol.degraded,
        children: Vec::new(),
    }
}

impl fmt::Display for Outline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|node| write_node(f, node, 0))
    }
}

/// The longest line of a shown outline, in characters.
const WIDTH: usize = 160;

fn write_node(f: &mut fmt::Formatter<'_>, node: &OutlineNode, depth: usize) -> fmt::Result {
    let lines = match node.start_line == node.end_line {
        true => node.start_line.to_string(),
        false => format!("{}-{}", node.start_line, node.end_line),
    };
    let text: String = node.signature.chars().take(WIDTH).collect();
    let doubt = if node.degraded { "  (degraded)" } else { "" };
    writeln!(f, "{lines:<11}{:indent$}{:<12} {text}{doubt}", "", node.kind.as_str(), indent = 2 * depth)?;
    node.children.iter().try_for_each(|child| write_node(f, child, depth + 1))
}
