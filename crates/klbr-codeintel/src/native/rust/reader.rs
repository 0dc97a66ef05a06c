//! Goes through the parser's events once and writes down definitions; what mentions a name is told in `uses`.

use super::Event;
use crate::{
    lang::{
        one_line,
        rust::macros::{self, Token, TokenKind},
    },
    range::Span,
    raw::{Def, Label, Raws},
    symbol::SymbolKind,
    walk::{Level, Walk},
};
use ra_ap_parser::{
    LexedStr,
    SyntaxKind::{self, *},
    T,
};

/// The most nodes open at once: a name's use is told by those around it, which must not take long.
const MAX_OPEN: usize = 1000;

/// A node that is open.
pub(super) struct Frame {
    pub(super) kind: SyntaxKind,
    /// How many nodes it has had within, attributes aside.
    pub(super) children: u32,
    /// The definition that it is.
    def: Option<u32>,
    /// Whether it is past its attributes.
    begun: bool,
    start: u32,
    /// The node that it last had within.
    last: Span,
    /// The types of an impl's heading.
    types: [Option<Span>; 2],
    /// Whether a `!` stands in it: a negative impl, an inner attribute.
    pub(super) negative: bool,
    /// Whether a scope is open for it.
    scope: bool,
}

pub(super) struct Reader<'a> {
    pub(super) walk: Walk<'a, SyntaxKind>,
    lexed: &'a LexedStr<'a>,
    pub(super) events: &'a [Event],
    /// The event that is looked at.
    pub(super) at: usize,
    /// The next token that is no trivia.
    next: usize,
    /// The end of the last token.
    end: u32,
    /// The kind of the last token.
    pub(super) before: SyntaxKind,
    pub(super) frames: Vec<Frame>,
    /// How many of the open nodes are patterns of a macro's rules, in which nothing is mentioned.
    pub(super) muted: u32,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a [u8], lexed: &'a LexedStr<'a>, events: &'a [Event]) -> Self {
        let mut reader = Reader {
            walk: Walk::new(source),
            lexed,
            events,
            at: 0,
            next: 0,
            end: 0,
            before: EOF,
            frames: Vec::with_capacity(64),
            muted: 0,
        };
        reader.pass_trivia();
        reader
    }

    /// `None` for a text too deep, or when a definition turns out to have no name, as none should in a text without fault.
    pub(super) fn read(mut self) -> Option<Raws> {
        while let Some(event) = self.events.get(self.at) {
            match *event {
                Event::Enter(kind) => self.enter(kind),
                Event::Token(kind, count) => self.token(kind, count),
                Event::Exit => self.exit(),
            }
            if self.frames.len() > MAX_OPEN {
                return None;
            }
            self.at += 1;
        }
        let is_named = |def: &Def| def.name.start < def.name.end;
        let all_named = self.walk.raws.defs.iter().all(is_named);
        all_named.then(|| self.walk.finish(false))
    }

    fn pass_trivia(&mut self) {
        while self.next < self.lexed.len() && self.lexed.kind(self.next).is_trivia() {
            self.next += 1;
        }
    }

    /// Where the next token begins.
    fn start(&self) -> u32 {
        self.lexed.text_start(self.next) as u32
    }

    /// The kind of the `up`-th open node above the innermost.
    pub(super) fn above(&self, up: usize) -> SyntaxKind {
        self.frames.len().checked_sub(up + 1).map_or(EOF, |at| self.frames[at].kind)
    }

    /// What the innermost open node has begun with, past its attributes.
    fn begin(&mut self) {
        let start = self.start();
        if let Some(frame) = self.frames.last_mut().filter(|frame| !frame.begun) {
            frame.begun = true;
            frame.start = start;
            if let Some(def) = frame.def {
                self.walk.raws.defs[def as usize].range.start = start;
                // What is mentioned in its attributes stands beside it.
                frame.scope = frame.kind != EXTERN_CRATE;
                if frame.scope {
                    self.walk.open(Some(def));
                    self.walk.chain.push(Level { kind: frame.kind, field: 0, attached: None });
                }
            }
        }
    }

    fn enter(&mut self, kind: SyntaxKind) {
        if kind != ATTR {
            self.begin();
            if let Some(frame) = self.frames.last_mut() {
                frame.children += 1;
            }
        }
        let start = self.start();
        let symbol = self.symbol(kind);
        let def = symbol.map(|symbol| {
            let place = Span { start, end: start };
            let mut def = Def::new(symbol, place, place);
            def.attached = self.attached().unwrap_or(u32::MAX);
            self.walk.define(def)
        });
        if kind == TOKEN_TREE {
            self.enter_tokens();
        }
        self.frames.push(Frame {
            kind,
            children: 0,
            def,
            begun: false,
            start,
            last: Span { start, end: start },
            types: [None; 2],
            negative: false,
            scope: false,
        });
    }

    /// What a node of that kind defines where it stands.
    fn symbol(&self, kind: SyntaxKind) -> Option<SymbolKind> {
        let member = self.above(0) == ASSOC_ITEM_LIST;
        Some(match kind {
            FN if member => SymbolKind::Method,
            FN => SymbolKind::Function,
            STRUCT => SymbolKind::Struct,
            ENUM => SymbolKind::Enum,
            UNION => SymbolKind::Union,
            TRAIT => SymbolKind::Trait,
            IMPL => SymbolKind::Impl,
            MODULE => SymbolKind::Module,
            VARIANT => SymbolKind::Variant,
            RECORD_FIELD => SymbolKind::Field,
            CONST if member => SymbolKind::AssociatedConst,
            CONST => SymbolKind::Constant,
            STATIC => SymbolKind::Static,
            TYPE_ALIAS if member => SymbolKind::AssociatedType,
            TYPE_ALIAS => SymbolKind::TypeAlias,
            MACRO_RULES | MACRO_DEF => SymbolKind::Macro,
            EXTERN_BLOCK => SymbolKind::ExternBlock,
            EXTERN_CRATE => SymbolKind::ExternCrate,
            LET_STMT if self.binds_closure() => SymbolKind::Closure,
            _ => return None,
        })
    }

    /// Where the first doc comment or attribute before the next token begins, if it has one.
    fn attached(&self) -> Option<u32> {
        let mut first = self.next;
        while first > 0 && self.lexed.kind(first - 1).is_trivia() {
            first -= 1;
        }
        let is_doc = |index: &usize| {
            let text = self.lexed.text(*index).as_bytes();
            self.lexed.kind(*index) == COMMENT && crate::lang::rust::items::is_outer_doc(text)
        };
        let doc = (first..self.next).find(is_doc).map(|index| self.lexed.text_start(index) as u32);
        let attribute = self.events.get(self.at + 1) == Some(&Event::Enter(ATTR));
        doc.or(attribute.then(|| self.start()))
    }

    /// Whether a `let` binds a plain name to a closure.
    fn binds_closure(&self) -> bool {
        let mut at = self.at + 1;
        while self.events.get(at) == Some(&Event::Enter(ATTR)) {
            at = self.past(at);
        }
        let is = |at: usize, kinds: [SyntaxKind; 1]| matches!(self.events.get(at), Some(Event::Token(kind, _)) if kinds.contains(kind));
        if !is(at, [T![let]]) || self.events.get(at + 1) != Some(&Event::Enter(IDENT_PAT)) {
            return false;
        }
        at += 2 + usize::from(is(at + 2, [T![mut]]));
        if self.events.get(at) != Some(&Event::Enter(NAME)) {
            return false;
        }
        at = self.past(at);
        if self.events.get(at) != Some(&Event::Exit) {
            return false;
        }
        at += 1;
        if is(at, [T![:]]) {
            at = self.past(at + 1);
        }
        is(at, [T![=]]) && self.events.get(at + 1) == Some(&Event::Enter(CLOSURE_EXPR))
    }

    /// The event after the node that begins at `at`.
    fn past(&self, at: usize) -> usize {
        let mut open = 0usize;
        for (index, event) in self.events.iter().enumerate().skip(at) {
            match event {
                Event::Enter(_) => open += 1,
                Event::Exit => open = open.saturating_sub(1),
                Event::Token(..) => {}
            }
            if open == 0 {
                return index + 1;
            }
        }
        self.events.len()
    }

    fn exit(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        let span = Span { start: frame.start, end: self.end.max(frame.start) };
        if let Some(index) = frame.def {
            let def = &mut self.walk.raws.defs[index as usize];
            def.range.end = self.end;
            def.attached = def.attached.min(def.range.start);
            if let (IMPL, [Some(first), second]) = (frame.kind, frame.types) {
                let text = |span: Span| one_line(span.slice(self.walk.source));
                let own = second.unwrap_or(first);
                let sign = if frame.negative { "!" } else { "" };
                let heading = match second {
                    Some(_) => format!("impl {sign}{} for {}", text(first), text(own)),
                    None => format!("impl {}", text(own)),
                };
                def.name = own;
                def.label = Label::Composed(heading.into());
            }
        }
        if frame.scope {
            self.walk.chain.pop();
            self.walk.close();
        }
        if frame.kind == TOKEN_TREE && self.muted > 0 {
            self.muted -= 1;
        }
        let Some(parent) = self.frames.last_mut() else { return };
        parent.last = span;
        let Some(index) = parent.def else { return };
        let def = &mut self.walk.raws.defs[index as usize];
        match (parent.kind, frame.kind) {
            (FN, BLOCK_EXPR)
            | (STRUCT | UNION | VARIANT, RECORD_FIELD_LIST | TUPLE_FIELD_LIST)
            | (ENUM, VARIANT_LIST)
            | (IMPL | TRAIT, ASSOC_ITEM_LIST)
            | (MODULE, ITEM_LIST)
            | (EXTERN_BLOCK, EXTERN_ITEM_LIST) => def.body = Some(span),
            (LET_STMT, CLOSURE_EXPR) => def.body = Some(frame.last),
            (EXTERN_BLOCK, ABI) => {
                def.name = span;
                def.label = Label::Composed(one_line(span.slice(self.walk.source)).into());
            }
            (IMPL, ATTR | VISIBILITY | GENERIC_PARAM_LIST | WHERE_CLAUSE) => {}
            (IMPL, _) => {
                let place = usize::from(parent.types[0].is_some());
                parent.types[place] = Some(span);
            }
            _ => {}
        }
    }

    fn token(&mut self, kind: SyntaxKind, count: u8) {
        self.begin();
        let start = self.start();
        self.next += usize::from(count);
        self.end = self.lexed.text_start(self.next) as u32;
        let span = Span { start, end: self.end };
        let raw = self.lexed.kind(self.next - 1);
        self.pass_trivia();
        match self.above(0) {
            NAME => self.name(span),
            NAME_REF if matches!(raw, IDENT | T![Self]) || self.above(1) == EXTERN_CRATE => self.use_of(span),
            TOKEN_TREE if self.muted == 0 => self.word(raw, span),
            CFG_ATOM | CFG_COMPOSITE => self.word(raw, span),
            CFG_META | CFG_ATTR_META if raw == IDENT => {
                self.walk.refer(span, self.in_attribute(0, span, false));
            }
            IMPL | ATTR if kind == T![!] => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.negative = true;
                }
            }
            CONST if kind == T![_] => self.name_def(0, span),
            RENAME if kind == T![_] && self.above(1) == EXTERN_CRATE => self.name_def(1, span),
            _ => {}
        }
        self.before = kind;
    }

    /// Names the definition that the `up`-th open node is.
    pub(super) fn name_def(&mut self, up: usize, span: Span) {
        let Some(frame) = self.frames.len().checked_sub(up + 1).map(|at| &self.frames[at]) else { return };
        if let Some(index) = frame.def {
            let def = &mut self.walk.raws.defs[index as usize];
            def.name = span;
            def.label = Label::At(span);
        }
    }

    /// A group of tokens begins: the items in a macro's input are told, a rule's pattern is passed over.
    fn enter_tokens(&mut self) {
        if self.muted > 0 {
            self.muted += 1;
            return;
        }
        match (self.above(0), self.above(1)) {
            (TOKEN_TREE, MACRO_RULES) if self.before != T![>] => self.muted = 1,
            (MACRO_CALL, above) => {
                let name = self.frames[self.frames.len() - 1].last;
                let above = match above {
                    MACRO_EXPR if self.above(2) == EXPR_STMT => self.above(3),
                    MACRO_EXPR | EXPR_STMT => self.above(2),
                    above => above,
                };
                let is_list = match above {
                    SOURCE_FILE | ITEM_LIST | ASSOC_ITEM_LIST | EXTERN_ITEM_LIST => true,
                    STMT_LIST => macros::holds_items(self.walk.source, name),
                    _ => false,
                };
                if is_list {
                    let tokens = self.tokens();
                    macros::items(&mut self.walk, &tokens, name);
                }
            }
            _ => {}
        }
    }

    /// The tokens of the group that begins with the next token, without the brackets around it and around each group.
    fn tokens(&self) -> Vec<Token> {
        let mut tokens: Vec<Token> = Vec::new();
        let mut open = Vec::new();
        for index in self.next + 1..self.lexed.len() {
            let (kind, range) = (self.lexed.kind(index), self.lexed.text_range(index));
            let span = Span::new(range.start, range.end);
            let past = tokens.len() + 1;
            match kind {
                WHITESPACE => {}
                T!['('] | T!['['] | T!['{'] => {
                    open.push(tokens.len());
                    tokens.push(Token { span, kind: TokenKind::Group, past });
                }
                T![')'] | T![']'] | T!['}'] => {
                    let Some(group) = open.pop() else { break };
                    let past = tokens.len();
                    let group: &mut Token = &mut tokens[group];
                    (group.span.end, group.past) = (span.end, past);
                }
                _ => {
                    let name = super::uses::is_word(kind, span.slice(self.walk.source));
                    let kind = if name { TokenKind::Name } else { TokenKind::Other };
                    tokens.push(Token { span, kind, past });
                }
            }
        }
        tokens
    }
}
