//! Prints the README's table: of each kind's names, how many klbr, ctags, `tree-sitter tags` and `ast-grep outline` find
//! as definitions at the right line. `TREE_SITTER_CONFIG` names a configuration with the two grammars.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "an example shows")]

#[path = "../tests/it/kinds/fixtures.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tests use it too")]
mod fixtures;

use fixtures::{FIXTURES, Fixture};
use klbr_codeintel::{SymbolKind, extract_symbols};
use std::{collections::BTreeSet, path::Path, process::Command};

type Found = BTreeSet<(String, usize)>;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    println!(
        "| language | kind | shown by | klbr | ctags | tree-sitter tags | ast-grep outline |\n|---|---|---|---|---|---|---|"
    );
    let mut totals = [0; 5];
    for fixture in FIXTURES {
        let wanted = ours(fixture);
        let ending = if fixture.language == "python" { "py" } else { "rs" };
        let file = folder.path().join(format!("fixture.{ending}"));
        std::fs::write(&file, fixture.source).unwrap();
        let found = [ours(fixture), ctags(&file), tags(&file), outline(&file)]
            .map(|found| wanted.intersection(&found).count());
        totals[0] += wanted.len();
        found.iter().zip(&mut totals[1..]).for_each(|(found, total)| *total += found);
        let of = |count: usize| format!("{count}/{}", wanted.len());
        let cells = found.map(of).join(" | ");
        println!("| {} | `{}` | {} | {cells} |", fixture.language, fixture.kind, fixture.shows);
    }
    let cells: Vec<String> = totals[1..].iter().map(|total| format!("{total}/{}", totals[0])).collect();
    println!("| | | **all** | {} |", cells.join(" | "));
}

/// The names that must be found, with their lines; an impl goes by its type's name.
fn ours(fixture: &Fixture) -> Found {
    let kind = SymbolKind::parse(fixture.kind).unwrap();
    let extraction = extract_symbols(None, fixture.source, Some(fixture.language)).unwrap();
    let of_kind = extraction.definitions().filter(|symbol| symbol.kind == kind);
    of_kind.map(|symbol| (plain(&symbol.name), symbol.name_range.start_line)).collect()
}

fn plain(name: &str) -> String {
    let last = name.rsplit(' ').next().unwrap_or(name);
    last.split('<').next().unwrap_or(last).trim_start_matches("r#").to_owned()
}

fn run(program: &str, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(program).args(arguments).arg(file).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

fn ctags(file: &Path) -> Found {
    let text = run("ctags", &["-f", "-", "-n", "--kinds-all=*"], file);
    let line = |line: &str| {
        let mut cells = line.split('\t');
        let name = plain(cells.next()?);
        Some((name, cells.nth(1)?.trim_end_matches(";\"").parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn tags(file: &Path) -> Found {
    let config = std::env::var("TREE_SITTER_CONFIG").unwrap_or_default();
    let text = run("tree-sitter", &["tags", "--config-path", &config], file);
    let line = |line: &str| {
        let (name, rest) = line.split_once('|')?;
        let row = rest.split_once("def (")?.1.split(',').next()?;
        Some((plain(name.trim()), row.parse::<usize>().ok()? + 1))
    };
    text.lines().filter_map(line).collect()
}

fn outline(file: &Path) -> Found {
    let text = run("ast-grep", &["outline", "--items", "all", "--view", "expanded", "--json=compact"], file);
    let mut found = Found::new();
    let mut open: Vec<serde_json::Value> = serde_json::from_str(&text).into_iter().collect();
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Array(items) => open.extend(items),
            serde_json::Value::Object(mut item) => {
                let text = |key: &str| item.get(key).and_then(|value| value.as_str()).map(plain);
                let line = |end: &str| {
                    item.get("range")
                        .and_then(|range| range[end]["line"].as_u64())
                        .map(|line| line as usize + 1)
                };
                if let (Some(name), Some(start), Some(end)) = (text("name"), line("start"), line("end")) {
                    // Its range may begin at a decorator, so the name may stand on any line of it.
                    found.extend((start..=end).map(|line| (name.clone(), line)));
                }
                open.extend(["items", "members"].iter().filter_map(|key| item.remove(*key)));
            }
            _ => {}
        }
    }
    found
}
