//! Python against the `ast` module, over the whole standard library.

use super::{
    Fact, Tally,
    corpus::{files, share, skip, standard_library},
};
use klbr_codeintel::{Extractor, SymbolKind};
use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

#[test]
fn python_symbols_are_those_of_the_ast_module() {
    let Some(library) = standard_library() else { return skip("no python3 with a standard library") };
    let mut tally = Tally::default();
    let mut unparsed = 0;
    let mut judge = Command::new("python3")
        .args(["-W", "ignore", "-c", include_str!("symbols.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut ask, mut answers) = (judge.stdin.take().unwrap(), BufReader::new(judge.stdout.take().unwrap()));
    let mut extractor = Extractor::default();
    let third_party = library.join("site-packages");
    let own = files(&library, "py").into_iter().filter(|file| !file.starts_with(&third_party));
    for file in share(own.collect()) {
        writeln!(ask, "{}", file.display()).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        let Some(truth) = serde_json::from_str::<Option<Vec<Fact>>>(&answer).unwrap() else {
            unparsed += 1;
            continue;
        };
        let source = std::fs::read(&file).unwrap();
        let found = match extractor.extract(Some(&file), &source, None) {
            Ok(extraction) => extraction.definitions().filter_map(fact).collect(),
            Err(error) => {
                println!("{}: {error}", file.display());
                Vec::new()
            }
        };
        tally.compare(&file.display().to_string(), truth, found);
    }
    drop(ask);
    judge.wait().unwrap();
    println!("files that the ast module itself refuses: {unparsed}");
    tally.judge("python against ast", 0.999);
}

fn fact(symbol: &klbr_codeintel::CodeSymbol) -> Option<Fact> {
    let kind = match symbol.kind {
        SymbolKind::Class => "class",
        SymbolKind::Lambda => "lambda",
        SymbolKind::TypeAlias => "alias",
        SymbolKind::Attribute | SymbolKind::Variable | SymbolKind::Constant => "attribute",
        SymbolKind::Property => "property",
        SymbolKind::StaticMethod => "static_method",
        SymbolKind::ClassMethod => "class_method",
        SymbolKind::Method => "method",
        SymbolKind::Function => "function",
        _ => return None,
    };
    Some((symbol.name_range.start_line, kind.to_owned(), symbol.name.clone()))
}
