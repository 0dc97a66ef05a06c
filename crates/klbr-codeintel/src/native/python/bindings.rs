//! What binds names in Python: assignments, targets, patterns.

use super::{Reader, expressions::Use, span_of};
use crate::{lang::python::items::first_parameter, range::Span, raw::Def, symbol::SymbolKind};
use ruff_python_ast::{Expr, ExprLambda, Pattern, StmtAnnAssign, StmtAssign};
use ruff_text_size::{Ranged, TextSize};

/// The most definitions of a class among which an attribute is sought.
const MAX_MEMBERS: usize = 4000;

impl Reader<'_> {
    /// `a = b = value`: each target's statement goes from it to the end.
    pub(super) fn assign(&mut self, it: &StmtAssign) {
        let end = it.end().to_u32();
        let last = it.targets.len() - 1;
        let mut scope = None;
        for (index, target) in it.targets.iter().enumerate() {
            let start = if index == 0 { it.start() } else { target.start() };
            let statement = Span { start: start.to_u32(), end };
            let lambda = Some(&*it.value).filter(|_| index == last);
            scope = self.bind(target, lambda, statement);
            // What is bound is defined before the names in it are read.
            self.target(target);
        }
        self.value(&it.value, scope);
    }

    /// `a: kind = value`.
    pub(super) fn annotated(&mut self, it: &StmtAnnAssign) {
        let scope = self.bind(&it.target, it.value.as_deref(), span_of(it));
        let opened = scope.is_some();
        if let Some(index) = scope {
            self.reopen(index);
        }
        self.target(&it.target);
        self.annotation(&it.annotation);
        self.optional(it.value.as_deref());
        if opened {
            self.close();
        }
    }

    fn value(&mut self, value: &Expr, scope: Option<u32>) {
        if let Some(index) = scope {
            self.reopen(index);
        }
        self.expression(value, Use::Plain);
        if scope.is_some() {
            self.close();
        }
    }

    /// Defines what a target binds: a module's or class's names, a lambda wherever it is, an instance's attributes. Gives
    /// the lambda's definition, which is a scope.
    fn bind(&mut self, target: &Expr, value: Option<&Expr>, statement: Span) -> Option<u32> {
        let owner = self.walk.container_kind();
        let shared = matches!(owner, None | Some(SymbolKind::Class));
        let lambda = value.and_then(Expr::as_lambda_expr);
        match target {
            Expr::Tuple(it) => {
                it.elts.iter().fold(None, |scope, it| self.bind(it, value, statement).or(scope))
            }
            Expr::List(it) => {
                it.elts.iter().fold(None, |scope, it| self.bind(it, value, statement).or(scope))
            }
            Expr::Starred(it) => self.bind(&it.value, value, statement),
            Expr::Name(it) if lambda.is_some() || shared => {
                let name = span_of(it);
                let symbol = match lambda {
                    Some(_) => SymbolKind::Lambda,
                    None => self.variable(name),
                };
                let mut def = Def::new(symbol, name, statement);
                def.body = lambda.map(|lambda| self.body_of(lambda));
                let index = self.walk.define(def);
                lambda.map(|_| index)
            }
            Expr::Attribute(it) if !shared => {
                self.instance_attribute(span_of(&*it.value), span_of(&it.attr), statement);
                None
            }
            _ => None,
        }
    }

    /// A lambda's body with the parentheses around it.
    fn body_of(&self, lambda: &ExprLambda) -> Span {
        let head = lambda.start() + TextSize::of("lambda");
        let colon = self.code_from(lambda.parameters.as_ref().map_or(head, |it| it.end()).to_u32());
        Span { start: self.code_from(colon + 1), end: lambda.end().to_u32() }
    }

    fn instance_attribute(&mut self, object: Span, name: Span, statement: Span) {
        let Some(method) = self.walk.container() else { return };
        let (Some(class), SymbolKind::Method | SymbolKind::Property) = (method.container, method.kind) else {
            return;
        };
        let source = self.walk.source;
        if first_parameter(source, method) != Some(object.slice(source)) {
            return;
        }
        let members = &self.walk.raws.defs[class as usize + 1..];
        self.too_many |= members.len() > MAX_MEMBERS;
        if self.too_many {
            return;
        }
        let word = name.slice(source);
        if !members.iter().any(|def| def.container == Some(class) && def.name.slice(source) == word) {
            let mut def = Def::new(SymbolKind::Attribute, name, statement);
            def.container = Some(class);
            self.walk.define(def);
        }
    }

    /// What is mentioned in something that is assigned to: nothing in a plain name.
    pub(super) fn target(&mut self, target: &Expr) {
        match target {
            Expr::Name(_) => {}
            Expr::Tuple(it) => it.elts.iter().for_each(|target| self.target(target)),
            Expr::List(it) => it.elts.iter().for_each(|target| self.target(target)),
            Expr::Starred(it) => self.target(&it.value),
            other => self.expression(other, Use::Plain),
        }
    }

    /// What a pattern mentions: classes, values, and the names of their parts.
    pub(super) fn pattern(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::MatchValue(it) => self.expression(&it.value, Use::Pattern),
            Pattern::MatchSingleton(_) | Pattern::MatchStar(_) => {}
            Pattern::MatchSequence(it) => it.patterns.iter().for_each(|pattern| self.pattern(pattern)),
            Pattern::MatchMapping(it) => {
                for (key, pattern) in it.keys.iter().zip(&it.patterns) {
                    self.expression(key, Use::Pattern);
                    self.pattern(pattern);
                }
            }
            Pattern::MatchClass(it) => {
                self.expression(&it.cls, Use::Class);
                it.arguments.patterns.iter().for_each(|pattern| self.pattern(pattern));
                for keyword in &it.arguments.keywords {
                    self.pattern(&keyword.pattern);
                }
            }
            Pattern::MatchAs(it) => it.pattern.iter().for_each(|pattern| self.pattern(pattern)),
            Pattern::MatchOr(it) => it.patterns.iter().for_each(|pattern| self.pattern(pattern)),
        }
    }
}
