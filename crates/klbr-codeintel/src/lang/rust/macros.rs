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

/// A token of a macro's input, or a group of them in brackets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) span: Span,
    pub(crate) kind: TokenKind,
    /// Where the token after it stands; what is in a group stands between.
    pub(crate) past: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Name,
    Group,
    Other,
}

/// A part of the tokens that is gone through.
struct List {
    at: usize,
    end: usize,
    /// The end of what was passed last.
    passed: u32,
    container: Option<u32>,
}

impl List {
    fn within(tokens: &[Token], group: usize, container: Option<u32>) -> Self {
        List { at: group + 1, end: tokens[group].past, passed: tokens[group].span.start, container }
    }

    fn pass(&mut self, token: &Token) {
        (self.at, self.passed) = (token.past, token.span.end);
    }
}

struct Head {
    symbol: SymbolKind,
    name: Span,
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
        match above {
            Some(Kind::Items | Kind::SourceFile) => {}
            Some(Kind::Block) if holds_items(walk.source, name) => {}
            _ => return,
        }
        let last = node.child_count().checked_sub(1).and_then(|last| node.child(last));
        if let Some(input) = last.filter(|last| self.kind_of(last) == Kind::TokenTree) {
            items(walk, &self.tokens(&input), name);
        }
    }

    /// The tokens of a macro's input, without the brackets around it and around each group.
    fn tokens(&self, input: &Node<'_>) -> Vec<Token> {
        let mut tokens: Vec<Token> = Vec::new();
        let mut open = Vec::new();
        let mut cursor = input.walk();
        if !cursor.goto_first_child() || !cursor.goto_next_sibling() {
            return tokens;
        }
        loop {
            let node = cursor.node();
            let mut begun = tokens.len();
            let kind = match self.kind_of(&node) {
                Kind::TokenTree => TokenKind::Group,
                Kind::Identifier => TokenKind::Name,
                _ => TokenKind::Other,
            };
            tokens.push(Token { span: Span::of(&node), kind, past: begun + 1 });
            if kind == TokenKind::Group && cursor.goto_first_child() {
                open.push(begun);
                begun += 1;
                if cursor.goto_next_sibling() {
                    continue;
                }
            }
            while !cursor.goto_next_sibling() {
                // The last of a group closes it.
                tokens.truncate(begun);
                cursor.goto_parent();
                let Some(group) = open.pop() else { return tokens };
                tokens[group].past = tokens.len();
                begun = group;
            }
        }
    }
}

/// Whether a macro's input is items also where a statement stands.
pub(crate) fn holds_items(source: &[u8], name: Span) -> bool {
    let word = name.slice(source);
    let word = word.rsplit(|byte| *byte == b':').next().unwrap_or(word);
    IN_BODIES.contains(&word)
}

/// Writes down the items among the tokens of a macro's input.
pub(crate) fn items<K: Copy>(walk: &mut Walk<'_, K>, tokens: &[Token], macro_name: Span) {
    let mut lists = vec![List { at: 0, end: tokens.len(), passed: 0, container: None }];
    while let Some(mut list) = lists.pop() {
        match next_item(walk, tokens, &mut list, macro_name) {
            Some(inner) if lists.len() < MAX_GROUPS => lists.extend([list, inner]),
            Some(_) => lists.push(list),
            None => {}
        }
    }
}

/// Goes on to the next group that may hold items, writing items down on the way.
fn next_item<K: Copy>(
    walk: &mut Walk<'_, K>,
    tokens: &[Token],
    list: &mut List,
    macro_name: Span,
) -> Option<List> {
    while list.at < list.end {
        let mut attached = None;
        let mut start = tokens[list.at].span;
        while list.at < list.end {
            let token = &tokens[list.at];
            let text = token.span.slice(walk.source);
            if !(text.starts_with(b"#")
                || text.starts_with(b"//")
                || text.starts_with(b"/*")
                || text.starts_with(b"["))
            {
                start = token.span;
                break;
            }
            attached = attached.or((!text.starts_with(b"//!")).then_some(token.span.start));
            list.pass(token);
        }
        let Some(head) = head(walk.source, tokens, list) else {
            match skip(walk.source, tokens, list, false) {
                // `if #[cfg(unix)] { items } else { items }`
                Some(group) if matches!(start.slice(walk.source), b"if" | b"else") => {
                    return Some(List::within(tokens, group, list.container));
                }
                _ => continue,
            }
        };
        let group = skip(walk.source, tokens, list, head.plain);
        let mut def = Def::new(head.symbol, head.name, Span { start: start.start, end: list.passed });
        let inside = list.container.map(|container| walk.raws.defs[container as usize].kind);
        if head.symbol == SymbolKind::Function && matches!(inside, Some(SymbolKind::Trait | SymbolKind::Impl))
        {
            def.kind = SymbolKind::Method;
        }
        def.attached = attached.unwrap_or(def.range.start);
        def.body = group.filter(|_| !head.plain).map(|group| tokens[group].span);
        def.via_macro = Some(macro_name);
        def.container = list.container;
        let index = walk.define(def);
        if let (Some(group), SymbolKind::Module | SymbolKind::Trait) = (group, head.symbol) {
            return Some(List::within(tokens, group, Some(index)));
        }
    }
    None
}

/// Moves past the next `;` or, unless `plain`, the next `{…}`, which it gives.
fn skip(source: &[u8], tokens: &[Token], list: &mut List, plain: bool) -> Option<usize> {
    while list.at < list.end {
        let at = list.at;
        let token = &tokens[at];
        list.pass(token);
        let group = token.kind == TokenKind::Group;
        let text = token.span.slice(source);
        if group && !plain && text.starts_with(b"{") {
            return Some(at);
        }
        if !group && text == b";" {
            return None;
        }
    }
    None
}

/// Reads an item's modifiers, keyword and name, if an item begins here.
fn head(source: &[u8], tokens: &[Token], list: &List) -> Option<Head> {
    let text = |at: usize| match at < list.end {
        true => tokens[at].span.slice(source),
        false => b"",
    };
    let next = |at: usize| tokens.get(at).map_or(at, |token| token.past);
    let mut at = list.at;
    loop {
        let after = next(at);
        match text(at) {
            b"pub" if text(after).starts_with(b"(") => at = next(after),
            b"pub" | b"unsafe" | b"async" | b"default" | b"safe" => at = after,
            b"const" if matches!(text(after), b"fn" | b"unsafe" | b"async" | b"extern") => at = after,
            b"extern" if text(after).starts_with(b"\"") => at = next(after),
            b"extern" => at = after,
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
        b"macro_rules" if text(next(at)) == b"!" => (SymbolKind::Macro, false),
        _ => return None,
    };
    at = next(at);
    while matches!(text(at), b"ref" | b"mut" | b"!") {
        at = next(at);
    }
    let name = tokens.get(at).filter(|token| at < list.end && token.kind == TokenKind::Name)?;
    Some(Head { symbol, name: name.span, plain })
}
