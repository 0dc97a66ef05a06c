//! Where text is cut.

use klbr_workspace::chunk::{Cut, Estimate, Tokenizer, Words, chunks, halves};
use proptest::prelude::*;

const SMALL: Cut = Cut { size: 16, overlap: 4 };

fn words(range: std::ops::Range<u32>) -> String {
    range.map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_text_that_fits_is_one_piece_however_short() {
    assert_eq!(chunks(" hi \n", SMALL, &Words), ["hi"]);
    assert_eq!(chunks("", SMALL, &Words), [""; 0]);
    assert_eq!(chunks(" \r\n\t ", SMALL, &Words), [""; 0]);
    assert_eq!(chunks(&words(0..16), SMALL, &Words), [words(0..16)]);
    assert_eq!(chunks(&words(0..16), Cut { size: 1, overlap: 0 }, &Words), [words(0..16)]);
}

#[test]
fn cuts_prefer_paragraphs_then_lines_then_sentences() {
    // Each window of 16 words has its break in the last third; the paragraph's wins over later, lesser ones.
    let (a, b, c) = (words(10..22), words(22..24), words(24..60));
    let first = |text: &str| chunks(text, SMALL, &Words)[0].clone();
    assert_eq!(first(&format!("{a}\n\n{b}\n{c}")), a);
    assert_eq!(first(&format!("{a}\r\n\r\n{b}. {c}")), a);
    assert_eq!(first(&format!("{a}\n{b}. {c}")), a);
    assert_eq!(first(&format!("{a}. {b} {c}")), format!("{a}."));
    assert_eq!(first(&format!("{a}.\t{b} {c}")), format!("{a}.\t{b} {}", words(24..26)));
    // Before the last third nothing counts.
    let (early, late) = (words(10..16), words(16..60));
    assert_eq!(first(&format!("{early}\n\n{late}")), format!("{early}\n\n{}", words(16..26)));
}

#[test]
fn a_piece_begins_with_the_tokens_before_the_cut() {
    let text = format!("{}\n{}", words(10..22), words(22..60));
    let pieces = chunks(&text, SMALL, &Words);
    assert_eq!(pieces[0], words(10..22));
    assert!(pieces[1].starts_with("w18 w19 w20 w21\nw22 "));
    let none = chunks(&words(10..60), Cut { size: 16, overlap: 0 }, &Words);
    assert_eq!(none[..3], [words(10..26), words(26..42), words(42..58)]);
    assert_eq!(none.len(), 3, "two words are no piece");
}

#[test]
fn an_estimate_counts_two_bytes_a_token() {
    for (text, count) in
        [("", 0), ("a", 1), ("ab", 1), ("abc", 2), ("ä", 1), ("日", 2), ("日本", 3), ("😀", 2)]
    {
        assert_eq!(Estimate.tokens(text).len(), count, "{text}");
    }
    let text = "日本語のテキスト。".repeat(40);
    let pieces = chunks(&text, Cut { size: 64, overlap: 8 }, &Estimate);
    assert!(pieces.len() > 4 && pieces.iter().all(|piece| piece.len() <= 128 + 2));
}

#[test]
fn a_refused_piece_is_halved_and_nothing_is_dropped() {
    assert_eq!(
        halves("the first half\nsecond half, longer"),
        Some(("the first half\n", "second half, longer"))
    );
    assert_eq!(halves("日本語x"), Some(("日本", "語x")));
    assert_eq!(halves("x"), None);
    assert_eq!(halves(""), None);
}

#[cfg(feature = "tokenizers")]
#[test]
fn a_tokenizer_file_says_where_tokens_stand() {
    use klbr_workspace::chunk::FileTokenizer;

    let json = r#"{
        "version": "1.0", "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "hello": 1}, "unk_token": "[UNK]"}
    }"#;
    let tokenizer = FileTokenizer::from_json(json.as_bytes()).unwrap();
    assert_eq!(tokenizer.tokens("hello, wörld!"), [0..5, 5..6, 7..13, 13..14]);
    assert_eq!(chunks(&words(0..30), SMALL, &tokenizer), chunks(&words(0..30), SMALL, &Words));
    assert!(FileTokenizer::from_json(b"{}").is_err());
}

proptest! {
    #[test]
    fn pieces_cover_the_text_and_keep_their_size(
        text in prop::collection::vec(
            prop::sample::select(vec!["word", "a", "\n", "\n\n", ". ", " ", "\r\n", "日本語", "😀", "\t"]),
            0..900,
        ),
        size in prop_oneof![0_usize..40, 200_usize..300],
        overlap in 0_usize..60,
        estimate in any::<bool>(),
    ) {
        // Each word is another one, so that a piece is found where it was cut and nowhere else.
        let numbered = text.iter().enumerate().map(|(n, unit)| match unit.trim() {
            "" | "." => (*unit).to_owned(),
            word => format!("{word}{n}_"),
        });
        let text: String = numbered.collect();
        let cut = Cut { size, overlap };
        let pieces = if estimate { chunks(&text, cut, &Estimate) } else { chunks(&text, cut, &Words) };
        let count = |text: &str| match estimate {
            true => Estimate.tokens(text).len(),
            false => Words.tokens(text).len(),
        };
        let whole = text.replace("\r\n", "\n");
        let mut at = 0;
        let mut covered = 0;
        for piece in &pieces {
            // An edge inside a character may add what stands before it, at either end.
            prop_assert!(count(piece) <= size.max(16) + 2 * usize::from(estimate));
            prop_assert_eq!(piece.trim(), piece.as_str());
            let found = whole[at..].find(piece.as_str());
            let start = at + found.ok_or_else(|| TestCaseError::fail("a piece that is not in the text, in order"))?;
            // What no piece has is space, or one piece that is too short to keep; of small pieces many may be.
            if start > covered && size >= 200 {
                prop_assert!(whole[covered..start].trim().chars().count() < 40);
            }
            covered = covered.max(start + piece.len());
            at = start + piece.chars().next().map_or(0, char::len_utf8);
        }
    }

    #[test]
    fn halves_are_the_whole(text in any::<String>()) {
        match halves(&text) {
            Some((before, after)) => prop_assert_eq!(format!("{before}{after}"), text.clone()),
            None => prop_assert!(text.chars().count() < 2),
        }
        if let Some((before, after)) = halves(&text) {
            prop_assert!(!before.is_empty() && !after.is_empty());
        }
    }
}

#[test]
fn odd_texts_are_cut_and_nothing_of_them_is_lost() {
    let line = "0123456789".repeat(1_000_000);
    let pieces = chunks(&line, Cut { size: 100_000, overlap: 0 }, &Estimate);
    assert!(pieces.len() > 10 && pieces.concat() == line);
    for odd in ["\u{feff}a\r\nb", "a\0b\0", "\r\r\n\n\r", "\u{fffd}\u{200b}"] {
        let pieces = chunks(odd, Cut { size: 100, overlap: 0 }, &Estimate);
        assert!(pieces.len() <= 1, "{odd:?}: {pieces:?}");
    }
}
