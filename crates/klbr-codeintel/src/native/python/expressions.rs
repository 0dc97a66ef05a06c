//! The expressions of Python: how each name in them is used.

use super::{Reader, span_of};
use crate::{lang::python::mentions::quoted, range::Span, symbol::SymbolKind};
use ruff_python_ast::{
    Arguments, Comprehension, Expr, FStringPart, InterpolatedStringElement, InterpolatedStringElements,
};
use ruff_text_size::Ranged;

/// How an expression is used, as far as the names directly in it are told apart by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Plain,
    Called,
    Decorator,
    Annotation,
    /// What a class is derived from.
    Base,
    /// A value in a pattern, and the class of one.
    Pattern,
    Class,
}

impl Use {
    /// How what stands in an expression that is neither a name nor an access is used.
    fn within(self) -> Use {
        match self {
            Use::Annotation => Use::Annotation,
            _ => Use::Plain,
        }
    }

    fn name(self) -> SymbolKind {
        match self {
            Use::Plain => SymbolKind::Name,
            Use::Called => SymbolKind::Call,
            Use::Decorator => SymbolKind::Decorator,
            Use::Annotation => SymbolKind::Annotation,
            Use::Base | Use::Class => SymbolKind::Type,
            Use::Pattern => SymbolKind::Path,
        }
    }

    /// How the last word of an access is used.
    fn attribute(self) -> SymbolKind {
        match self {
            Use::Plain | Use::Base => SymbolKind::Access,
            other => other.name(),
        }
    }

    /// How what an access is into is used.
    fn object(self) -> Use {
        match self {
            Use::Plain | Use::Called | Use::Base => Use::Plain,
            other => other,
        }
    }
}

impl Reader<'_> {
    pub(super) fn expression(&mut self, expression: &Expr, used: Use) {
        let within = used.within();
        match expression {
            Expr::Name(it) => self.walk.refer(span_of(it), used.name()),
            Expr::Attribute(it) => {
                let object =
                    if self.in_parentheses(it.start().to_u32(), &it.value) { within } else { used.object() };
                self.expression(&it.value, object);
                self.walk.refer(span_of(&it.attr), used.attribute());
            }
            Expr::Call(it) => {
                let called = match used {
                    Use::Decorator => Use::Decorator,
                    _ if self.in_parentheses(it.start().to_u32(), &it.func) => Use::Plain,
                    _ => Use::Called,
                };
                self.expression(&it.func, called);
                self.arguments(&it.arguments, Use::Plain);
            }
            Expr::BoolOp(it) => it.values.iter().for_each(|it| self.expression(it, within)),
            Expr::Named(it) => self.expression(&it.value, Use::Plain),
            Expr::BinOp(it) => {
                self.expression(&it.left, within);
                self.expression(&it.right, within);
            }
            Expr::UnaryOp(it) => self.expression(&it.operand, within),
            Expr::Lambda(it) => {
                it.parameters.iter().for_each(|parameters| self.parameters(parameters));
                self.expression(&it.body, Use::Plain);
            }
            Expr::If(it) => {
                self.expression(&it.body, within);
                self.expression(&it.test, within);
                self.expression(&it.orelse, within);
            }
            Expr::Dict(it) => {
                for item in &it.items {
                    item.key.iter().for_each(|key| self.expression(key, within));
                    self.expression(&item.value, within);
                }
            }
            Expr::Set(it) => it.elts.iter().for_each(|it| self.expression(it, within)),
            Expr::List(it) => it.elts.iter().for_each(|it| self.expression(it, within)),
            Expr::Tuple(it) => it.elts.iter().for_each(|it| self.expression(it, within)),
            Expr::ListComp(it) => self.comprehension([&*it.elt], &it.generators, within),
            Expr::SetComp(it) => self.comprehension([&*it.elt], &it.generators, within),
            Expr::Generator(it) => self.comprehension([&*it.elt], &it.generators, within),
            Expr::DictComp(it) => {
                let key = it.key.as_deref();
                self.comprehension(key.into_iter().chain([&*it.value]), &it.generators, within);
            }
            Expr::Await(it) => self.expression(&it.value, within),
            Expr::Yield(it) => it.value.iter().for_each(|it| self.expression(it, within)),
            Expr::YieldFrom(it) => self.expression(&it.value, within),
            Expr::Compare(it) => {
                self.expression(&it.left, within);
                it.comparators.iter().for_each(|it| self.expression(it, within));
            }
            Expr::Subscript(it) => {
                self.expression(&it.value, within);
                self.expression(&it.slice, within);
            }
            Expr::Starred(it) => self.expression(&it.value, within),
            Expr::Slice(it) => {
                for part in [&it.lower, &it.upper, &it.step].into_iter().flatten() {
                    self.expression(part, within);
                }
            }
            Expr::FString(it) => {
                for part in &it.value {
                    match part {
                        FStringPart::Literal(it) => self.text(span_of(it), within),
                        FStringPart::FString(it) => self.interpolated(&it.elements, within),
                    }
                }
            }
            Expr::TString(it) => it.value.iter().for_each(|it| self.interpolated(&it.elements, within)),
            Expr::StringLiteral(it) => it.value.iter().for_each(|it| self.text(span_of(it), within)),
            Expr::BytesLiteral(_)
            | Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::EllipsisLiteral(_)
            | Expr::IpyEscapeCommand(_) => {}
        }
    }

    pub(super) fn arguments(&mut self, arguments: &Arguments, used: Use) {
        for argument in arguments.iter_source_order() {
            match argument {
                ruff_python_ast::ArgOrKeyword::Arg(it) => self.expression(it, used),
                ruff_python_ast::ArgOrKeyword::Keyword(it) => self.expression(&it.value, Use::Plain),
            }
        }
    }

    fn comprehension<'e>(
        &mut self,
        elements: impl IntoIterator<Item = &'e Expr>,
        generators: &[Comprehension],
        within: Use,
    ) {
        elements.into_iter().for_each(|element| self.expression(element, within));
        for generator in generators {
            self.target(&generator.target);
            self.expression(&generator.iter, Use::Plain);
            generator.ifs.iter().for_each(|test| self.expression(test, within));
        }
    }

    fn interpolated(&mut self, elements: &InterpolatedStringElements, within: Use) {
        for element in elements {
            if let InterpolatedStringElement::Interpolation(it) = element {
                self.expression(&it.expression, within);
                if let Some(form) = &it.format_spec {
                    self.interpolated(&form.elements, within);
                }
            }
        }
    }

    /// A text is looked into where it is an annotation.
    fn text(&mut self, literal: Span, within: Use) {
        let text = literal.slice(self.walk.source);
        if within != Use::Annotation || text.contains(&b'\\') {
            return;
        }
        let prefix = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let quotes =
            if text[prefix..].starts_with(b"\"\"\"") || text[prefix..].starts_with(b"'''") { 3 } else { 1 };
        let (start, end) = (literal.start + (prefix + quotes) as u32, literal.end - quotes as u32);
        if start < end {
            quoted(&mut self.walk, Span { start, end });
        }
    }

    /// Whether a part that stands first is in parentheses of its own.
    fn in_parentheses(&self, start: u32, part: &Expr) -> bool {
        start < part.start().to_u32()
    }
}
