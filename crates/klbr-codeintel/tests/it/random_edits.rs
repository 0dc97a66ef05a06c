//! Ten thousand random edits over real code: each re-parsed by another parser, all outside the region byte-identical.

use crate::truth::corpus::{crates, files, share, skip, standard_library};
use klbr_codeintel::{CodeSymbol, Edit, EditError, Editor, Extent, Extractor, ParseStatus, Selector};
use std::path::PathBuf;

const EDITS: usize = 10_000;
const SEED: u64 = 0x6b6c_6272;
/// Larger files only make the proof slower.
const MAX_BYTES: usize = 40_000;

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[derive(Default, Debug)]
struct Score {
    applied: usize,
    refused: usize,
    identical: usize,
}

#[test]
fn random_edits_change_nothing_else() {
    let Some(library) = standard_library() else { return skip("no python3 with a standard library") };
    let python = files(&library, "py")
        .into_iter()
        .filter(|file| !file.starts_with(library.join("site-packages")))
        .collect();
    let rust: Vec<PathBuf> = crates().iter().flat_map(|root| files(root, "rs")).collect();
    if rust.is_empty() {
        return skip("no crate in the local registry");
    }
    let edits = share((0..EDITS / 2).collect()).len();
    let scores: Vec<Score> = std::thread::scope(|scope| {
        let runs = [("python", python), ("rust", rust)].map(|(language, files): (_, Vec<PathBuf>)| {
            scope.spawn(move || run(language, &files, edits, Random(SEED ^ language.len() as u64)))
        });
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for (language, score) in ["python", "rust"].iter().zip(&scores) {
        println!("{language}, seed {SEED:#x}: {score:?}");
        assert!(score.applied + score.refused >= edits);
        assert!(
            score.applied * 10 > edits * 7 && score.refused > 0,
            "most edits are applied, and some cannot be"
        );
    }
}

fn run(language: &str, files: &[PathBuf], edits: usize, mut random: Random) -> Score {
    let (mut extractor, mut editor, mut score) = (Extractor::default(), Editor::default(), Score::default());
    while score.applied + score.refused < edits {
        let file = &files[random.below(files.len())];
        let Ok(source) = std::fs::read(file) else { continue };
        if source.len() > MAX_BYTES || std::str::from_utf8(&source).is_err() {
            continue;
        }
        let Ok(extraction) = extractor.extract(None, &source, Some(language)) else { continue };
        // Sound, but not to the grammar that edits are proven with: they are refused there.
        if extraction.status == ParseStatus::Complete && errors(language, &source) > 0 {
            continue;
        }
        let definitions: Vec<&CodeSymbol> =
            extraction.definitions().filter(|symbol| !symbol.degraded).collect();
        for _ in 0..4.min(definitions.len()) {
            let target = definitions[random.below(definitions.len())];
            let donor = definitions[random.below(definitions.len())];
            one(&mut editor, &Case { language, source: &source, target, donor }, &mut random, &mut score);
        }
    }
    score
}

struct Case<'a> {
    language: &'a str,
    source: &'a [u8],
    target: &'a CodeSymbol,
    /// Another definition of the file, whose text may take the target's place.
    donor: &'a CodeSymbol,
}

fn one(editor: &mut Editor, case: &Case<'_>, random: &mut Random, score: &mut Score) {
    let Case { language, source, target, donor } = *case;
    let kind = random.below(7);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let name = Selector::exactly(target.name_path.clone()).to_string();
    let own = text(&source[target.range.bytes()]);
    let alike = if donor.kind == target.kind { donor } else { target };
    let edit = match (kind, &target.body_range, &alike.body_range) {
        (0, ..) => Edit::ReplaceSymbol { target: name, text: own.clone(), extent: Extent::Definition },
        (1, Some(body), _) => Edit::ReplaceSymbolBody { target: name, text: text(&source[body.bytes()]) },
        (2, Some(_), Some(body)) => {
            Edit::ReplaceSymbolBody { target: name, text: text(&source[body.bytes()]) }
        }
        (3, ..) => Edit::InsertBefore { target: name, text: comment(language) },
        (6, ..) => {
            // Any piece of the file, whole or torn.
            let (one, other) = (random.below(source.len()), random.below(source.len()));
            let end = one.max(other).min(one.min(other) + 400);
            Edit::ReplaceSymbol {
                target: name,
                text: text(&source[one.min(other)..end]),
                extent: Extent::Definition,
            }
        }
        (4, ..) => Edit::InsertAfter { target: name, text: comment(language) },
        _ => Edit::ReplaceSymbol {
            target: name,
            text: text(&source[alike.range.bytes()]),
            extent: Extent::Definition,
        },
    };
    let planned = match editor.plan(None, source, Some(language), std::slice::from_ref(&edit)) {
        Ok(planned) => planned,
        Err(EditError::ParsesWorse { .. } | EditError::MovesOthers(_)) => {
            assert!(kind > 1, "what stands there may be put there: {edit:?} in {}", text(source));
            score.refused += 1;
            return;
        }
        Err(other) => panic!("{edit:?}: {other}"),
    };
    let (before, after) = (planned.changes[0].before.bytes(), planned.changes[0].after.bytes());
    assert_eq!(source[..before.start], planned.text[..after.start], "{edit:?}");
    assert_eq!(source[before.end..], planned.text[after.end..], "{edit:?}");
    assert!(errors(language, &planned.text) <= errors(language, source), "{edit:?}");
    if kind == 0 || (kind == 1 && target.body_range.is_some()) {
        assert!(planned.text == source, "{edit:?} is no change\n{}", planned.diff);
        score.identical += 1;
    }
    score.applied += 1;
}

fn comment(language: &str) -> String {
    if language == "python" { "# inserted\n".to_owned() } else { "// inserted\n".to_owned() }
}

/// Errors and missing nodes as a bare tree-sitter counts them.
fn errors(language: &str, source: &[u8]) -> usize {
    let grammar =
        if language == "python" { tree_sitter_python::LANGUAGE } else { tree_sitter_rust::LANGUAGE };
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&grammar.into()).unwrap();
    let tree = parser.parse(source, None).unwrap();
    let mut cursor = tree.walk();
    let mut count = 0;
    loop {
        let node = cursor.node();
        count += usize::from(
            node.is_missing() || (node.is_error() && !node.parent().is_some_and(|parent| parent.is_error())),
        );
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return count;
            }
        }
    }
}
