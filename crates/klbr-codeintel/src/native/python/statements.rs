//! The statements of Python: what they define, and the order in which they are read.

use super::{Reader, expressions::Use, span_of};
use crate::{
    lang::python::items::{member, variable},
    range::Span,
    raw::Def,
    symbol::SymbolKind,
};
use ruff_python_ast::{
    Decorator, ExceptHandler, Expr, Identifier, Parameters, Stmt, StmtClassDef, StmtFunctionDef, TypeParam,
    TypeParams,
};
use ruff_text_size::Ranged;

impl Reader<'_> {
    pub(super) fn suite(&mut self, body: &[Stmt]) {
        body.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::Return(it) => self.optional(it.value.as_deref()),
            Stmt::Delete(it) => self.all(&it.targets),
            Stmt::TypeAlias(it) => {
                let name = it.name.as_name_expr().map(span_of);
                if let Some(name) = name {
                    self.walk.define(Def::new(SymbolKind::TypeAlias, name, span_of(it)));
                }
                if let (Some(name), Some(parameters)) = (name, &it.type_params) {
                    self.walk.refer(name, SymbolKind::Annotation);
                    self.type_parameters(parameters);
                }
                self.annotation(&it.value);
            }
            Stmt::Assign(it) => self.assign(it),
            Stmt::AugAssign(it) => {
                self.expression(&it.target, Use::Plain);
                self.expression(&it.value, Use::Plain);
            }
            Stmt::AnnAssign(it) => self.annotated(it),
            Stmt::For(it) => {
                self.target(&it.target);
                self.expression(&it.iter, Use::Plain);
                self.suite(&it.body);
                self.suite(&it.orelse);
            }
            Stmt::While(it) => {
                self.expression(&it.test, Use::Plain);
                self.suite(&it.body);
                self.suite(&it.orelse);
            }
            Stmt::If(it) => {
                self.expression(&it.test, Use::Plain);
                self.suite(&it.body);
                for clause in &it.elif_else_clauses {
                    self.optional(clause.test.as_ref());
                    self.suite(&clause.body);
                }
            }
            Stmt::With(it) => {
                for item in &it.items {
                    self.expression(&item.context_expr, Use::Plain);
                    let bound = item.optional_vars.as_deref();
                    self.optional(bound.filter(|bound| !bound.is_name_expr()));
                }
                self.suite(&it.body);
            }
            Stmt::Match(it) => {
                self.expression(&it.subject, Use::Plain);
                for case in &it.cases {
                    self.pattern(&case.pattern);
                    self.optional(case.guard.as_deref());
                    self.suite(&case.body);
                }
            }
            Stmt::Raise(it) => {
                self.optional(it.exc.as_deref());
                self.optional(it.cause.as_deref());
            }
            Stmt::Try(it) => {
                self.suite(&it.body);
                for ExceptHandler::ExceptHandler(handler) in &it.handlers {
                    self.optional(handler.type_.as_deref());
                    self.suite(&handler.body);
                }
                self.suite(&it.orelse);
                self.suite(&it.finalbody);
            }
            Stmt::Assert(it) => {
                self.expression(&it.test, Use::Plain);
                self.optional(it.msg.as_deref());
            }
            Stmt::Import(it) => {
                for alias in &it.names {
                    self.imported(&alias.name);
                    alias.asname.iter().for_each(|name| self.imported(name));
                }
            }
            Stmt::ImportFrom(it) => {
                let module =
                    it.module.as_ref().filter(|module| module.as_str() != "__future__" || it.level > 0);
                module.into_iter().for_each(|module| self.imported(module));
                for alias in it.names.iter().filter(|alias| alias.name.as_str() != "*") {
                    self.imported(&alias.name);
                    alias.asname.iter().for_each(|name| self.imported(name));
                }
            }
            Stmt::Expr(it) => self.expression(&it.value, Use::Plain),
            Stmt::Global(_) | Stmt::Nonlocal(_) | Stmt::Pass(_) | Stmt::Break(_) | Stmt::Continue(_) => {}
            Stmt::IpyEscapeCommand(_) => {}
        }
    }

    /// The words of a dotted name.
    fn imported(&mut self, name: &Identifier) {
        let whole = span_of(name);
        let mut at = whole.start;
        for word in whole.slice(self.walk.source).split(|byte| *byte == b'.') {
            let end = at + word.len() as u32;
            let blanks = (word.len() - word.trim_ascii_start().len()) as u32;
            let length = word.trim_ascii().len() as u32;
            self.walk.refer(Span { start: at + blanks, end: at + blanks + length }, SymbolKind::Import);
            at = end + 1;
        }
    }

    /// A definition's extents: without what is attached to it, and where that begins.
    fn extents(&self, whole: Span, decorators: &[Decorator]) -> (Span, u32) {
        match decorators.last() {
            Some(last) => (Span { start: self.code_from(last.end().to_u32()), end: whole.end }, whole.start),
            None => (whole, whole.start),
        }
    }

    fn function(&mut self, it: &StmtFunctionDef) {
        let (range, attached) = self.extents(span_of(it), &it.decorator_list);
        self.decorators(&it.decorator_list);
        let symbol = match self.walk.container_kind() {
            Some(SymbolKind::Class) => {
                member(Span { start: attached, end: range.start }.slice(self.walk.source))
            }
            _ => SymbolKind::Function,
        };
        self.define(Def { attached, ..Def::new(symbol, span_of(&it.name), range) }, &it.body);
        it.type_params.iter().for_each(|parameters| self.type_parameters(parameters));
        self.parameters(&it.parameters);
        it.returns.iter().for_each(|kind| self.annotation(kind));
        self.suite(&it.body);
        self.close();
    }

    fn class(&mut self, it: &StmtClassDef) {
        let (range, attached) = self.extents(span_of(it), &it.decorator_list);
        self.decorators(&it.decorator_list);
        self.define(Def { attached, ..Def::new(SymbolKind::Class, span_of(&it.name), range) }, &it.body);
        it.type_params.iter().for_each(|parameters| self.type_parameters(parameters));
        if let Some(arguments) = &it.arguments {
            self.arguments(arguments, Use::Base);
        }
        self.suite(&it.body);
        self.close();
    }

    /// Opens a definition with its body and what documents it.
    fn define(&mut self, mut def: Def, body: &[Stmt]) {
        if let (Some(first), Some(last)) = (body.first(), body.last()) {
            let start = first.start().to_u32();
            let end = self.suite_end(start, last.end().to_u32());
            def.body = Some(Span { start, end });
            def.range.end = end;
        }
        if let Some(Stmt::Expr(first)) = body.first() {
            let is_text = matches!(
                *first.value,
                Expr::StringLiteral(_) | Expr::BytesLiteral(_) | Expr::FString(_) | Expr::TString(_)
            );
            // In parentheses it is a value.
            def.docs = (is_text && first.range() == first.value.range()).then(|| span_of(&*first.value));
        }
        self.open(def);
    }

    /// The end of a suite with the comments that are in it: the one behind its last statement, and those on lines of
    /// their own that stand as deep as it does.
    fn suite_end(&self, start: u32, end: u32) -> u32 {
        let source = self.walk.source;
        let before = &source[..start as usize];
        let line = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let own_lines = before[line..].iter().all(u8::is_ascii_whitespace);
        let depth = indentation(&before[line..]);
        let (mut at, mut end) = (end as usize, end as usize);
        let mut indent = None;
        while let Some(byte) = source.get(at) {
            match byte {
                b'\n' if !own_lines => break,
                b'\n' => indent = Some(0),
                b';' if indent.is_none() => end = at + 1,
                b'#' if indent.is_none_or(|indent| indent >= depth) => {
                    at += memchr::memchr(b'\n', &source[at..]).unwrap_or(source.len() - at);
                    end = at;
                    continue;
                }
                byte if byte.is_ascii_whitespace() => indent = indent.map(|indent| indented(indent, *byte)),
                _ => break,
            }
            at += 1;
        }
        end as u32
    }

    fn decorators(&mut self, decorators: &[Decorator]) {
        decorators.iter().for_each(|decorator| self.expression(&decorator.expression, Use::Decorator));
    }

    pub(super) fn parameters(&mut self, parameters: &Parameters) {
        for parameter in parameters.iter_source_order() {
            parameter.annotation().into_iter().for_each(|kind| self.annotation(kind));
            self.optional(parameter.default());
        }
    }

    fn type_parameters(&mut self, parameters: &TypeParams) {
        for parameter in &parameters.type_params {
            self.walk.refer(span_of(parameter.name()), SymbolKind::Annotation);
            if let TypeParam::TypeVar(variable) = parameter {
                variable.bound.iter().for_each(|bound| self.annotation(bound));
            }
            parameter.default().into_iter().for_each(|default| self.annotation(default));
        }
    }

    /// The kind of a module's or class's variable.
    pub(super) fn variable(&self, name: Span) -> SymbolKind {
        variable(name.slice(self.walk.source), self.walk.container_kind())
    }

    pub(super) fn optional(&mut self, expression: Option<&Expr>) {
        expression.into_iter().for_each(|expression| self.expression(expression, Use::Plain));
    }

    pub(super) fn all(&mut self, expressions: &[Expr]) {
        expressions.iter().for_each(|expression| self.expression(expression, Use::Plain));
    }

    pub(super) fn annotation(&mut self, expression: &Expr) {
        self.expression(expression, Use::Annotation);
    }
}

/// How deep a blank behind that much indentation leads.
fn indented(indent: usize, blank: u8) -> usize {
    match blank {
        b' ' => indent + 1,
        b'\t' => indent + 8,
        _ => 0,
    }
}

fn indentation(blanks: &[u8]) -> usize {
    blanks.iter().fold(0, |indent, blank| indented(indent, *blank))
}
