//! Rust against `syn`, over the crates of the local registry.

use super::{
    Fact, Tally,
    corpus::{crates, files, share, skip},
};
use klbr_codeintel::{CodeSymbol, Extractor, SymbolKind};
use syn::{spanned::Spanned, visit::Visit};

/// How many crates a full proof needs; below that the proof runs over what is there and says so.
const ENOUGH: usize = 200;

#[test]
fn rust_symbols_are_those_of_syn() {
    let crates = crates();
    if crates.len() < ENOUGH {
        println!("only {} crates in the local registry, {ENOUGH} make the full proof", crates.len());
    }
    if crates.is_empty() {
        return skip("no crate in the local registry");
    }
    let mut tally = Tally::default();
    let (mut unparsed, mut refused) = (0, 0);
    let mut extractor = Extractor::default();
    let files: Vec<_> = crates.iter().flat_map(|root| files(root, "rs")).collect();
    for file in share(files) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let Some(truth) = truth(&text) else {
            unparsed += 1;
            continue;
        };
        match extractor.extract(Some(&file), text.as_bytes(), None) {
            Ok(extraction) => {
                let found = extraction.definitions().filter_map(fact).collect();
                tally.compare(&file.display().to_string(), truth, found);
            }
            Err(error) => {
                refused += 1;
                println!("{}: {error}", file.display());
            }
        }
    }
    println!(
        "{} crates; files that syn itself refuses: {unparsed}; that the extractor refuses: {refused}",
        crates.len()
    );
    tally.judge("rust against syn", 0.995);
}

/// Items of macro invocations are no truth of syn's, which leaves macros alone.
fn fact(symbol: &CodeSymbol) -> Option<Fact> {
    if symbol.via_macro.is_some() || symbol.kind == SymbolKind::ExternBlock {
        return None;
    }
    let name = match symbol.kind {
        SymbolKind::Impl => "impl".to_owned(),
        _ => symbol.name.clone(),
    };
    Some((symbol.name_range.start_line, symbol.kind.to_string(), name))
}

fn truth(text: &str) -> Option<Vec<Fact>> {
    // A recursive parser in a thread of its own: deep expressions must not end the test.
    std::thread::scope(|scope| {
        let parse = || {
            let file = syn::parse_file(text).ok()?;
            let mut truth = Truth::default();
            truth.visit_file(&file);
            Some(truth.0)
        };
        std::thread::Builder::new().stack_size(256 << 20).spawn_scoped(scope, parse).ok()?.join().ok()?
    })
}

#[derive(Default)]
struct Truth(Vec<Fact>);

impl Truth {
    fn note(&mut self, kind: SymbolKind, name: &syn::Ident) {
        self.0.push((name.span().start().line, kind.to_string(), name.to_string()));
    }
}

impl<'ast> Visit<'ast> for Truth {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(SymbolKind::Function, &item.sig.ident);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(SymbolKind::Method, &item.sig.ident);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.note(SymbolKind::Method, &item.sig.ident);
        syn::visit::visit_trait_item_fn(self, item);
    }

    fn visit_foreign_item_fn(&mut self, item: &'ast syn::ForeignItemFn) {
        self.note(SymbolKind::Function, &item.sig.ident);
        syn::visit::visit_foreign_item_fn(self, item);
    }

    fn visit_foreign_item_static(&mut self, item: &'ast syn::ForeignItemStatic) {
        self.note(SymbolKind::Static, &item.ident);
        syn::visit::visit_foreign_item_static(self, item);
    }

    fn visit_foreign_item_type(&mut self, item: &'ast syn::ForeignItemType) {
        self.note(SymbolKind::TypeAlias, &item.ident);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.note(SymbolKind::Struct, &item.ident);
        syn::visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.note(SymbolKind::Enum, &item.ident);
        syn::visit::visit_item_enum(self, item);
    }

    fn visit_variant(&mut self, item: &'ast syn::Variant) {
        self.note(SymbolKind::Variant, &item.ident);
        syn::visit::visit_variant(self, item);
    }

    fn visit_field(&mut self, item: &'ast syn::Field) {
        if let Some(name) = &item.ident {
            self.note(SymbolKind::Field, name);
        }
        syn::visit::visit_field(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.note(SymbolKind::Union, &item.ident);
        syn::visit::visit_item_union(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.note(SymbolKind::Trait, &item.ident);
        syn::visit::visit_item_trait(self, item);
    }

    fn visit_trait_item_type(&mut self, item: &'ast syn::TraitItemType) {
        self.note(SymbolKind::AssociatedType, &item.ident);
        syn::visit::visit_trait_item_type(self, item);
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.note(SymbolKind::AssociatedConst, &item.ident);
        syn::visit::visit_trait_item_const(self, item);
    }

    fn visit_impl_item_type(&mut self, item: &'ast syn::ImplItemType) {
        self.note(SymbolKind::AssociatedType, &item.ident);
        syn::visit::visit_impl_item_type(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.note(SymbolKind::AssociatedConst, &item.ident);
        syn::visit::visit_impl_item_const(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.0.push((item.self_ty.span().start().line, SymbolKind::Impl.to_string(), "impl".to_owned()));
        syn::visit::visit_item_impl(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.note(SymbolKind::Constant, &item.ident);
        syn::visit::visit_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.note(SymbolKind::Static, &item.ident);
        syn::visit::visit_item_static(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.note(SymbolKind::TypeAlias, &item.ident);
        syn::visit::visit_item_type(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.note(SymbolKind::Module, &item.ident);
        syn::visit::visit_item_mod(self, item);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if let Some(name) = item.ident.as_ref().filter(|_| item.mac.path.is_ident("macro_rules")) {
            self.note(SymbolKind::Macro, name);
        }
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        self.note(SymbolKind::ExternCrate, item.rename.as_ref().map_or(&item.ident, |(_, name)| name));
    }

    fn visit_local(&mut self, item: &'ast syn::Local) {
        let pattern = match &item.pat {
            syn::Pat::Type(typed) => &*typed.pat,
            pattern => pattern,
        };
        if let (syn::Pat::Ident(name), Some(value)) = (pattern, &item.init)
            && name.subpat.is_none()
            && matches!(*value.expr, syn::Expr::Closure(_))
        {
            self.note(SymbolKind::Closure, &name.ident);
        }
        syn::visit::visit_local(self, item);
    }
}
