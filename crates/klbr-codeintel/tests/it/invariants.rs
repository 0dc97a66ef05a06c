//! What holds for every answer, however bad the text. The fuzz target asks the same of any bytes.

use klbr_codeintel::{
    Edit, Editor, Extent, Extractor, Language, Limits, NamePath, Selector, SymbolExtraction, SymbolRole,
    outline,
};
use std::time::Duration;

/// What holds for every answer, however bad the text.
pub(crate) fn check(source: &[u8], extraction: &SymbolExtraction) {
    let mut last = 0;
    for symbol in &extraction.symbols {
        let ranges = [symbol.attached_range, symbol.range, symbol.name_range];
        assert!(
            ranges.iter().all(|range| range.start_byte <= range.end_byte && range.end_byte <= source.len())
        );
        assert!(
            ranges
                .iter()
                .all(|range| (range.start_line, range.start_column) <= (range.end_line, range.end_column))
        );
        assert!(
            symbol.range.start_byte <= symbol.name_range.start_byte
                && symbol.name_range.end_byte <= symbol.range.end_byte
        );
        let place = if symbol.role == SymbolRole::Definition { symbol.range } else { symbol.name_range };
        assert!(last <= place.start_byte, "the order is that of the text");
        last = place.start_byte;
    }
    let mut paths: Vec<_> = extraction.definitions().map(|symbol| &symbol.name_path).collect();
    let all = paths.len();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), all, "no two definitions have one path");
}

/// Any bytes: the first chooses the language, the rest is the text, and also a name.
#[allow(dead_code, reason = "not every program that has these rules asks all of them")]
pub(crate) fn hold_for(input: &[u8]) {
    let Some((choice, text)) = input.split_first() else { return };
    let language = Language::ALL[usize::from(*choice) % Language::ALL.len()].name();
    let limits = Limits { max_time: Duration::from_secs(5), ..Limits::default() };
    let mut extractor = Extractor::new(limits);
    if let Ok(extraction) = extractor.extract(None, text, Some(language)) {
        check(text, &extraction);
        outline(&extraction.symbols).to_string();
        extractor.diagnostics(None, text, Some(language)).expect("what is parsed once is parsed twice");
        if let Some(last) = extraction.definitions().last() {
            let target = format!("::{}", last.name_path);
            let edit = Edit::ReplaceSymbol { target, text: "x = 1".into(), extent: Extent::Attached };
            // Refused or planned; a plan leaves what is outside its regions.
            if let Ok(planned) =
                Editor::new(limits, Default::default()).plan(None, text, Some(language), &[edit])
            {
                let end = text.len() - last.range.end_byte;
                assert!(planned.text.ends_with(&text[text.len() - end.saturating_sub(2)..]));
            }
        }
    }
    let name = String::from_utf8_lossy(text);
    if let Ok(path) = NamePath::parse(&name) {
        assert_eq!(NamePath::parse(&path.to_string()).as_ref(), Ok(&path));
    }
    if let Ok(selector) = Selector::parse(&name) {
        assert_eq!(Selector::parse(&selector.to_string()).as_ref(), Ok(&selector));
    }
}
