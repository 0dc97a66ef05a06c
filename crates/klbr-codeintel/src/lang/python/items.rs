//! The definitions of Python.

use super::{Kind, Python};
use crate::{
    range::Span,
    raw::Def,
    symbol::SymbolKind,
    walk::{Step, Walk},
};
use tree_sitter::Node;

impl Python {
    pub(super) fn definition(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>, kind: Kind) -> Step {
        let Some(name) = node.child_by_field_id(self.fields.name) else { return Step::Into };
        // What a decorated definition attaches, it attaches to its children: the decorators come first.
        let start = walk.take_attached().unwrap_or(node.start_byte() as u32);
        let decorators = Span { start, end: node.start_byte() as u32 };
        let symbol = match (kind, walk.container_kind()) {
            (Kind::Class, _) => SymbolKind::Class,
            (_, Some(SymbolKind::Class)) => member(decorators.slice(walk.source)),
            _ => SymbolKind::Function,
        };
        let mut def = Def::new(symbol, Span::of(&name), Span::of(node));
        def.attached = start;
        if let Some(body) = node.child_by_field_id(self.fields.body) {
            def.body = Some(Span::of(&body));
            def.docs = self.docstring(&body);
        }
        Step::Scope(walk.define(def))
    }

    fn docstring(&self, body: &Node<'_>) -> Option<Span> {
        let first = body.named_children(&mut body.walk()).find(|child| self.kind_of(child) != Kind::Skip)?;
        let text = first.named_child(0).filter(|_| self.kind_of(&first) == Kind::ExpressionStatement)?;
        let string = matches!(text.kind(), "string" | "concatenated_string");
        (string && first.named_child_count() == 1).then(|| Span::of(&text))
    }

    pub(super) fn type_alias(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>) -> Step {
        // The grammar also takes `type(x).y = z` for an alias; a real one has a plain name, perhaps with parameters.
        let left = node.child_by_field_id(self.fields.left).and_then(|left| left.named_child(0));
        let name = left
            .and_then(|left| if left.kind() == "generic_type" { left.named_child(0) } else { Some(left) });
        if let Some(name) = name.filter(|name| self.kind_of(name) == Kind::Identifier) {
            walk.define(Def::new(SymbolKind::TypeAlias, Span::of(&name), Span::of(node)));
        }
        Step::Into
    }

    /// Names bound in a module or class are its attributes; a lambda is listed wherever a name is bound to it; the first
    /// `self.name = …` in a class's methods is an attribute of the class.
    pub(super) fn assignment(&self, walk: &mut Walk<'_, Kind>, node: &Node<'_>) -> Step {
        let Some(left) = node.child_by_field_id(self.fields.left) else { return Step::Into };
        let mut right = node.child_by_field_id(self.fields.right);
        while let Some(inner) = right.filter(|right| right.kind() == "parenthesized_expression") {
            right = inner.named_children(&mut inner.walk()).find(|child| self.kind_of(child) != Kind::Skip);
        }
        let lambda = right.filter(|right| self.kind_of(right) == Kind::Lambda);
        let owner = walk.container_kind();
        let shared = matches!(owner, None | Some(SymbolKind::Class));
        let statement = Span::of(node);
        let mut scope = None;
        let mut targets = vec![left];
        while let Some(target) = targets.pop() {
            let span = Span::of(&target);
            match self.kind_of(&target) {
                Kind::Targets | Kind::Splat => {
                    let inner: Vec<Node<'_>> = target.named_children(&mut target.walk()).collect();
                    targets.extend(inner.into_iter().rev());
                }
                Kind::Identifier if lambda.is_some() || shared => {
                    let symbol = match lambda {
                        Some(_) => SymbolKind::Lambda,
                        None => variable(span.slice(walk.source), owner),
                    };
                    let mut def = Def::new(symbol, span, statement);
                    let body = lambda.and_then(|lambda| lambda.child_by_field_id(self.fields.body));
                    def.body = body.map(|body| Span::of(&body));
                    let index = walk.define(def);
                    scope = lambda.map(|_| index);
                }
                Kind::AttributeAccess if !shared => self.instance_attribute(walk, &target, statement),
                _ => {}
            }
        }
        scope.map_or(Step::Into, Step::Scope)
    }

    fn instance_attribute(&self, walk: &mut Walk<'_, Kind>, target: &Node<'_>, statement: Span) {
        let object = target.child_by_field_id(self.fields.object);
        let name = target.child_by_field_id(self.fields.attribute);
        let (Some(object), Some(name)) = (object, name) else { return };
        let Some(method) = walk.container() else { return };
        let (Some(class), SymbolKind::Method | SymbolKind::Property) = (method.container, method.kind) else {
            return;
        };
        if first_parameter(walk.source, method) != Some(Span::of(&object).slice(walk.source)) {
            return;
        }
        let span = Span::of(&name);
        let word = span.slice(walk.source);
        let members = &walk.raws.defs[class as usize + 1..];
        let known =
            members.iter().any(|def| def.container == Some(class) && def.name.slice(walk.source) == word);
        if !known {
            let mut def = Def::new(SymbolKind::Attribute, span, statement);
            def.container = Some(class);
            walk.define(def);
        }
    }
}

pub(crate) fn first_parameter<'a>(source: &'a [u8], method: &Def) -> Option<&'a [u8]> {
    let rest = source.get(method.name.end as usize..method.range.end as usize)?;
    let mut rest = rest.trim_ascii_start().strip_prefix(b"(")?.trim_ascii_start();
    while rest.starts_with(b"#") {
        rest = &rest[memchr::memchr(b'\n', rest)?..];
        rest = rest.trim_ascii_start();
    }
    let length = rest.iter().take_while(|byte| is_word(**byte)).count();
    Some(&rest[..length])
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

pub(crate) fn variable(name: &[u8], owner: Option<SymbolKind>) -> SymbolKind {
    let letters = || name.iter().filter(|byte| byte.is_ascii_alphabetic() || **byte >= 0x80);
    match owner {
        _ if letters().count() > 1 && letters().all(u8::is_ascii_uppercase) => SymbolKind::Constant,
        None => SymbolKind::Variable,
        Some(_) => SymbolKind::Attribute,
    }
}

fn decorator_names(decorators: &[u8]) -> impl Iterator<Item = &[u8]> {
    decorators.split(|byte| *byte == b'\n').filter_map(|line| {
        let name = line.trim_ascii().strip_prefix(b"@")?.trim_ascii_start();
        let length = name.iter().take_while(|byte| !matches!(byte, b'(' | b' ' | b'#' | b'\r')).count();
        Some(&name[..length])
    })
}

fn accessor(name: &[u8]) -> Option<&'static str> {
    let last = name.rsplit(|byte| *byte == b'.').next().unwrap_or(name);
    match last {
        b"property" | b"cached_property" | b"abstractproperty" | b"getter" => Some("getter"),
        b"setter" if last.len() < name.len() => Some("setter"),
        b"deleter" if last.len() < name.len() => Some("deleter"),
        _ => None,
    }
}

pub(crate) fn member(decorators: &[u8]) -> SymbolKind {
    let told = decorator_names(decorators).find_map(|name| match name {
        b"staticmethod" | b"abc.abstractstaticmethod" | b"abstractstaticmethod" => {
            Some(SymbolKind::StaticMethod)
        }
        b"classmethod" | b"abc.abstractclassmethod" | b"abstractclassmethod" => Some(SymbolKind::ClassMethod),
        _ => accessor(name).map(|_| SymbolKind::Property),
    });
    told.unwrap_or(SymbolKind::Method)
}

/// What tells the accessors of one property from each other, and an overload from its implementation.
pub(crate) fn qualifier(decorators: &[u8]) -> Option<String> {
    decorator_names(decorators).find_map(|name| match name {
        b"overload" | b"typing.overload" | b"t.overload" => Some("overload".to_owned()),
        _ => accessor(name).map(str::to_owned),
    })
}

/// A docstring's text, its quotes and common indentation taken off.
pub(crate) fn docs(literal: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(literal);
    let text = text.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    let text = match text.get(..3) {
        Some(quote @ ("\"\"\"" | "'''")) => text[3..].strip_suffix(quote).unwrap_or(&text[3..]),
        _ => text.get(1..text.len().saturating_sub(1)).unwrap_or_default(),
    };
    let rest = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let indent = rest.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let lines = text.lines().enumerate().map(|(index, line)| match index {
        0 => line.trim(),
        _ => line.get(indent..).unwrap_or_default().trim_end(),
    });
    let text = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}
