//! Walks a syntax tree by kind ids, without recursion, and keeps the ledger of scopes and broken regions.
//!
//! Which nodes are symbols is each grammar's business; where a definition stands, and whether its place can be
//! trusted, is decided here once for all of them.

use crate::{
    parse::{ExtractError, Watch},
    range::Span,
    raw::{Def, Problem, Raws, Ref},
    symbol::SymbolKind,
};
use std::collections::HashSet;
use tree_sitter::{Node, Tree};

/// What to do with a node's children.
pub(crate) enum Step {
    Into,
    Over,
    /// Into, and what is found there is contained in that definition.
    Scope(u32),
}

/// Tells a language's symbols.
pub(crate) trait Grammar {
    type Kind: Copy;

    fn kind(&self, id: u16) -> Self::Kind;

    /// Whether nothing in nodes of this kind is of interest.
    fn skips(kind: Self::Kind) -> bool;

    fn enter(&self, walk: &mut Walk<'_, Self::Kind>, node: &Node<'_>, kind: Self::Kind, field: u16) -> Step;

    /// What the name after this keyword defines, so that a region too broken to read still tells its names.
    fn keyword(&self, word: &str) -> Option<SymbolKind>;
}

/// An ancestor of the node that is being looked at.
pub(crate) struct Level<K> {
    pub(crate) kind: K,
    /// Its field in its own parent, 0 for none.
    pub(crate) field: u16,
    /// Where attributes and doc comments began that wait for the definition they belong to.
    pub(crate) attached: Option<u32>,
}

struct Scope {
    def: Option<u32>,
    depth: usize,
    /// How many definitions there were when it opened.
    first: usize,
    brackets: [i32; 3],
    broken: bool,
}

/// Definitions nested deeper than this are listed under the ancestor at this depth, and marked.
const MAX_SCOPES: usize = 100;

pub(crate) struct Walk<'a, K> {
    pub(crate) source: &'a [u8],
    /// From the root down; empty at the root.
    pub(crate) chain: Vec<Level<K>>,
    pub(crate) raws: Raws,
    scopes: Vec<Scope>,
    brackets: [i32; 3],
}

impl<'a, K: Copy> Walk<'a, K> {
    pub(crate) fn new(source: &'a [u8]) -> Self {
        let mut walk = Walk {
            source,
            chain: Vec::with_capacity(64),
            raws: Raws::default(),
            scopes: Vec::new(),
            brackets: [0; 3],
        };
        walk.open(None);
        // The root's scope must outlive every other: no chain is ever that long.
        walk.scopes[0].depth = usize::MAX;
        walk
    }

    /// What was written down, `broken` when the text left its grammar.
    pub(crate) fn finish(mut self, broken: bool) -> Raws {
        for index in 0..self.raws.defs.len() {
            let container = self.raws.defs[index].container;
            if container.is_some_and(|container| self.raws.defs[container as usize].degraded) {
                self.raws.defs[index].degraded = true;
            }
        }
        // The names in macros and broken regions were met both as definitions and as words.
        let composed = |def: &&Def| def.via_macro.is_some() || (broken && def.degraded);
        let names: HashSet<Span> = self.raws.defs.iter().filter(composed).map(|def| def.name).collect();
        if !names.is_empty() {
            self.raws.refs.retain(|mention| !names.contains(&mention.name));
        }
        self.raws
    }

    /// The kind of the `up`-th ancestor, its parent being 0.
    pub(crate) fn ancestor(&self, up: usize) -> Option<K> {
        self.level(up).map(|level| level.kind)
    }

    pub(crate) fn level(&self, up: usize) -> Option<&Level<K>> {
        self.chain.len().checked_sub(up + 1).and_then(|at| self.chain.get(at))
    }

    /// Remembers that something attached to the next sibling begins here.
    pub(crate) fn attach(&mut self, start: usize) {
        if let Some(parent) = self.chain.last_mut() {
            parent.attached.get_or_insert(start as u32);
        }
    }

    /// Gives and forgets where what is attached began.
    pub(crate) fn take_attached(&mut self) -> Option<u32> {
        self.chain.last_mut().and_then(|parent| parent.attached.take())
    }

    /// The definition that the current node stands in.
    pub(crate) fn container(&self) -> Option<&Def> {
        let index = self.scopes.last().and_then(|scope| scope.def)?;
        self.raws.defs.get(index as usize)
    }

    pub(crate) fn container_kind(&self) -> Option<SymbolKind> {
        self.container().map(|def| def.kind)
    }

    /// Writes a definition down in the current scope (unless it names its container itself) and gives its index.
    pub(crate) fn define(&mut self, mut def: Def) -> u32 {
        let deep = self.scopes.len() > MAX_SCOPES;
        let scope = &self.scopes[(self.scopes.len() - 1).min(MAX_SCOPES)];
        def.container = def.container.or(scope.def);
        def.degraded |= deep || self.scopes.last().is_some_and(|scope| scope.broken);
        self.raws.defs.push(def);
        self.raws.defs.len() as u32 - 1
    }

    pub(crate) fn refer(&mut self, name: Span, kind: SymbolKind) {
        let container = self.scopes.last().and_then(|scope| scope.def);
        self.raws.refs.push(Ref { name, kind, container });
    }

    pub(crate) fn open(&mut self, def: Option<u32>) {
        let (depth, first) = (self.chain.len(), self.raws.defs.len());
        self.scopes.push(Scope { def, depth, first, brackets: self.brackets, broken: false });
    }

    pub(crate) fn close(&mut self) {
        let Some(scope) = self.scopes.pop_if(|scope| scope.depth == self.chain.len()) else { return };
        if scope.brackets != self.brackets {
            // Its brackets do not close within it, so it may have swallowed what follows, or ended early.
            if let Some(def) = scope.def {
                self.raws.defs[def as usize].degraded = true;
            }
            if let Some(outer) = self.scopes.last_mut() {
                outer.broken = true;
            }
        }
    }

    fn note_broken(&mut self, node: &Node<'_>) {
        let span = Span::of(node);
        let missing: Option<Box<str>> = node.is_missing().then(|| Box::from(node.kind()));
        if !node.is_error() && missing.is_none() {
            if node.child_count() == 0 {
                self.count_bracket(span);
            }
            return;
        }
        let text = span.slice(self.source).trim_ascii();
        let closes = |text: &[u8]| !text.is_empty() && text.iter().all(|byte| b"}])\r\n\t ".contains(byte));
        let unclosed = missing.as_deref().is_some_and(|token| closes(token.as_bytes()));
        if node.is_error() && node.child_count() == 0 {
            self.count_bracket(span);
        }
        // A region within a broken one is the same problem.
        let told =
            self.raws.problems.last().is_some_and(|last| last.missing.is_none() && span.end <= last.span.end);
        if !told || missing.is_some() {
            self.raws.problems.push(Problem { span, missing });
        }
        let Some(scope) = self.scopes.last_mut() else { return };
        scope.broken = true;
        if unclosed || closes(text) {
            // A closer too many or too few: what came before in this scope may belong elsewhere.
            let first = scope.first;
            self.raws.defs[first..].iter_mut().for_each(|def| def.degraded = true);
        }
    }

    /// The names that a broken region defines as far as a keyword stands before each; their extents are unknown.
    fn salvage<G: Grammar>(&mut self, grammar: &G, node: &Node<'_>) {
        let mut keyword = None;
        for child in node.children(&mut node.walk()) {
            match keyword.take() {
                Some((kind, start)) if child.is_named() && child.kind().ends_with("identifier") => {
                    self.define(Def::new(kind, Span::of(&child), Span::new(start, child.end_byte())));
                }
                _ => keyword = grammar.keyword(child.kind()).map(|kind| (kind, child.start_byte())),
            }
        }
    }

    /// Tells a fault that the grammar lets pass.
    pub(crate) fn missing(&mut self, at: usize, token: &str) {
        self.raws.problems.push(Problem { span: Span::new(at, at), missing: Some(token.into()) });
    }

    fn count_bracket(&mut self, span: Span) {
        match span.slice(self.source) {
            b"{" => self.brackets[0] += 1,
            b"}" => self.brackets[0] -= 1,
            b"(" => self.brackets[1] += 1,
            b")" => self.brackets[1] -= 1,
            b"[" => self.brackets[2] += 1,
            b"]" => self.brackets[2] -= 1,
            _ => {}
        }
    }
}

/// Walks the whole tree.
pub(crate) fn walk<G: Grammar>(
    grammar: &G,
    tree: &Tree,
    source: &[u8],
    watch: &Watch<'_>,
) -> Result<Raws, ExtractError> {
    let broken = tree.root_node().has_error();
    let mut walk = Walk::new(source);
    let mut cursor = tree.walk();
    let mut visited = 0u32;
    'nodes: loop {
        visited = visited.wrapping_add(1);
        if visited.is_multiple_of(4096) {
            watch.check()?;
        }
        let node = cursor.node();
        if broken {
            walk.note_broken(&node);
            if node.is_error() {
                walk.salvage(grammar, &node);
            }
        }
        let kind = grammar.kind(node.kind_id());
        let mut field = 0;
        let step = match G::skips(kind) {
            true => Step::Over,
            false => {
                field = cursor.field_id().map_or(0, |field| field.get());
                grammar.enter(&mut walk, &node, kind, field)
            }
        };
        let descend = match step {
            Step::Into => true,
            Step::Over => broken && node.has_error(),
            Step::Scope(def) => {
                walk.open(Some(def));
                true
            }
        };
        if descend && cursor.goto_first_child() {
            walk.chain.push(Level { kind, field, attached: None });
            continue;
        }
        loop {
            walk.close();
            if cursor.goto_next_sibling() {
                continue 'nodes;
            }
            if !cursor.goto_parent() {
                break 'nodes;
            }
            walk.chain.pop();
        }
    }
    Ok(walk.finish(broken))
}

/// Looks at each node of a tree in the order of the text, below those for which `look` says so.
pub(crate) fn visit<'t>(tree: &'t Tree, mut look: impl FnMut(&Node<'t>) -> bool) {
    let mut cursor = tree.walk();
    loop {
        if look(&cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}
