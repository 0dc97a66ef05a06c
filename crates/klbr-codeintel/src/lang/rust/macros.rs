//! Items inside item-like macro invocations (`thread_local!`, `cfg_if!`, `bitflags!`, …), told from the tokens alone.
//!
//! A macro's input follows no grammar but its own, so only what reads as an item where an item may stand is taken:
//! at the start, after a `;` and after a `{…}`. Each is marked with the macro, since the expansion may differ.

use super::{Kind, Rust};
use crate::{range::Span, raw::Def, symbol::SymbolKind, walk::Walk};
use tree_sitter::Node;

/// Macros whose input is items also where a statement stands.
const IN_BODIES: [&[u8]; 4] = [b"thread_local", b"lazy_static", b"cfg_if", b"bitflags"];

/// How deep item lists are followed into groups of tokens.
const MAX_GROUPS: usize = 16;

struct Tokens<'t> {
    nodes: Vec<Node<'t>>,
    at: usize,
    container: Option<u32>,
}

impl<'t> Tokens<'t> {
    fn of(tree: &Node<'t>, container: Option<u32>) -> Self {
        let mut nodes: Vec<Node<'t>> = tree.children(&mut tree.walk()).collect();
        nodes.pop();
        Tokens { nodes, at: 1, container }
    }

    fn peek(&self) -> Option<Node<'t>> {
        self.nodes.get(self.at).copied()
    }
}

struct Head<'t> {
    symbol: SymbolKind,
    name: Option<Node<'t>>,
    /// Ends at a `;` only: what stands in braces before it is a value.
    plain: bool,
}

impl Rust {
    pub(super) fn macro_items(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>) {
        let Some(name) = node.child_by_field_id(self.fields.macro_).map(|name| Span::of(&name)) else {
            return;
        };
        let above = match walk.ancestor(0) {
            Some(Kind::ExpressionStatement) => walk.ancestor(1),
            above => above,
        };
        let word = name.slice(walk.source);
        let word = word.rsplit(|byte| *byte == b':').next().unwrap_or(word);
        match above {
            Some(Kind::Items | Kind::SourceFile) => {}
            Some(Kind::Block) if IN_BODIES.contains(&word) => {}
            _ => return,
        }
        let last = node.child_count().checked_sub(1).and_then(|last| node.child(last));
        let Some(input) = last.filter(|last| self.kind_of(last) == Kind::TokenTree) else {
            return;
        };
        let mut lists = vec![Tokens::of(&input, None)];
        while let Some(mut list) = lists.pop() {
            match self.next_item(walk, &mut list, name) {
                Some(inner) if lists.len() < MAX_GROUPS => lists.extend([list, inner]),
                Some(_) => lists.push(list),
                None => {}
            }
        }
    }

    /// Goes on to the next group that may hold items, writing items down on the way.
    fn next_item<'t>(
        &self,
        walk: &mut Walk<'_, Kind>,
        list: &mut Tokens<'t>,
        macro_name: Span,
    ) -> Option<Tokens<'t>> {
        while let Some(first) = list.peek() {
            let mut attached = None;
            let mut start = first;
            while let Some(token) = list.peek() {
                let text = Span::of(&token).slice(walk.source);
                if !(text.starts_with(b"#")
                    || text.starts_with(b"//")
                    || text.starts_with(b"/*")
                    || text.starts_with(b"["))
                {
                    start = token;
                    break;
                }
                attached = attached.or((!text.starts_with(b"//!")).then_some(token.start_byte() as u32));
                list.at += 1;
            }
            let Some(head) = head(walk, list) else {
                match self.skip(walk, list, false) {
                    // `if #[cfg(unix)] { items } else { items }`
                    Some(group) if matches!(Span::of(&start).slice(walk.source), b"if" | b"else") => {
                        return Some(Tokens::of(&group, list.container));
                    }
                    _ => continue,
                }
            };
            let group = self.skip(walk, list, head.plain);
            let end = list.nodes[list.at - 1].end_byte();
            let Some(name) = head.name else { continue };
            let mut def = Def::new(head.symbol, Span::of(&name), Span::new(start.start_byte(), end));
            let inside = list.container.map(|container| walk.raws.defs[container as usize].kind);
            if head.symbol == SymbolKind::Function
                && matches!(inside, Some(SymbolKind::Trait | SymbolKind::Impl))
            {
                def.kind = SymbolKind::Method;
            }
            def.attached = attached.unwrap_or(def.range.start);
            def.body = group.filter(|_| !head.plain).map(|group| Span::of(&group));
            def.via_macro = Some(macro_name);
            def.container = list.container;
            let index = walk.define(def);
            if let (Some(group), SymbolKind::Module | SymbolKind::Trait) = (group, head.symbol) {
                return Some(Tokens::of(&group, Some(index)));
            }
        }
        None
    }

    /// Moves past the next `;` or, unless `plain`, the next `{…}`, which it gives.
    fn skip<'t>(&self, walk: &Walk<'_, Kind>, list: &mut Tokens<'t>, plain: bool) -> Option<Node<'t>> {
        while let Some(token) = list.peek() {
            list.at += 1;
            let group = self.kind_of(&token) == Kind::TokenTree;
            let text = Span::of(&token).slice(walk.source);
            if group && !plain && text.starts_with(b"{") {
                return Some(token);
            }
            if !group && text == b";" {
                return None;
            }
        }
        None
    }
}

/// Reads an item's modifiers, keyword and name, if an item begins here.
fn head<'t>(walk: &Walk<'_, Kind>, list: &Tokens<'t>) -> Option<Head<'t>> {
    let text = |at: usize| list.nodes.get(at).map_or(&b""[..], |node| Span::of(node).slice(walk.source));
    let mut at = list.at;
    loop {
        let word = text(at);
        match word {
            b"pub" => at += 1 + usize::from(text(at + 1).starts_with(b"(")),
            b"unsafe" | b"async" | b"default" | b"safe" => at += 1,
            b"const" if matches!(text(at + 1), b"fn" | b"unsafe" | b"async" | b"extern") => at += 1,
            b"extern" if text(at + 1).starts_with(b"\"") => at += 2,
            b"extern" => at += 1,
            _ => break,
        }
    }
    let (symbol, plain) = match text(at) {
        b"fn" => (SymbolKind::Function, false),
        b"struct" => (SymbolKind::Struct, false),
        b"enum" => (SymbolKind::Enum, false),
        b"union" => (SymbolKind::Union, false),
        b"trait" => (SymbolKind::Trait, false),
        b"mod" => (SymbolKind::Module, false),
        b"type" => (SymbolKind::TypeAlias, true),
        b"const" => (SymbolKind::Constant, true),
        b"static" => (SymbolKind::Static, true),
        b"macro_rules" if text(at + 1) == b"!" => (SymbolKind::Macro, false),
        _ => return None,
    };
    at += 1;
    while matches!(text(at), b"ref" | b"mut" | b"!") {
        at += 1;
    }
    let name = list.nodes.get(at).filter(|node| node.kind() == "identifier").copied();
    name.map(|name| Head { symbol, name: Some(name), plain })
}
