//! The blocks and their escaping: `C-MSG-1`, `C-MSG-2`, `B-SPEECH-5`.

use klbr_core::block::{Block, Content, MAX_DEPTH, Name, ParseError, escape, parse, render, unescape};
use proptest::prelude::*;

/// Pieces that hostile texts and names are made of.
fn piece() -> impl Strategy<Value = String> {
    let name = prop::sample::select(Name::ALL.to_vec()).prop_map(|name| name.as_str().to_owned());
    let fixed = prop::sample::select(vec![
        "<",
        "</",
        "/",
        ">",
        "/>",
        "&",
        "&lt;",
        "&amp;",
        "amp;",
        "lt;",
        "&gt;",
        "&#10;",
        "\"",
        "'",
        "=",
        " ",
        "\n",
        "\r",
        "\r\n",
        "\t",
        "\0",
        "\u{200b}",
        "\u{200d}",
        "\u{feff}",
        "\u{ad}",
        "\u{301}",
        "＜",
        "＞",
        "ſ",
        "ı",
        "ß",
        "ﬆ",
        "İ",
        "o",
        "S",
        "-",
        "ope",
        "RATOR",
        "mess",
        "session",
        "note",
        "author=\"ada\"",
        "b>",
        "😀",
    ])
    .prop_map(str::to_owned);
    let upper = prop::sample::select(Name::ALL.to_vec()).prop_map(|name| name.as_str().to_uppercase());
    prop_oneof![2 => name, 1 => upper, 6 => fixed, 1 => any::<String>()]
}

fn hostile() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
}

fn block() -> impl Strategy<Value = Block> {
    let bare = (
        prop::sample::select(Name::ALL.to_vec()),
        prop::collection::vec((prop::sample::select(vec!["author", "id", "re_2"]), hostile()), 0..3),
    )
        .prop_map(|(name, attributes)| {
            attributes.into_iter().fold(Block::new(name), |block, (name, value)| block.attr(name, value))
        });
    let leaf = (bare, hostile()).prop_map(|(block, text)| block.text(text));
    leaf.prop_recursive(4, 24, 4, |inner| {
        let content = prop_oneof![hostile().prop_map(Ok), inner.clone().prop_map(Err)];
        (inner, prop::collection::vec(content, 0..4)).prop_map(|(block, contents)| {
            contents.into_iter().fold(block, |block, content| match content {
                Ok(text) => block.text(text),
                Err(child) => block.child(child),
            })
        })
    })
}

fn texts(block: &Block, found: &mut Vec<String>) {
    for content in block.contents() {
        match content {
            Content::Text(text) => found.push(text.clone()),
            Content::Block(block) => texts(block, found),
        }
    }
}

proptest! {
    #[test]
    fn escaping_is_reversible(text in hostile()) {
        let escaped = escape(&text);
        prop_assert_eq!(unescape(&escaped), text.as_str());
    }

    #[test]
    fn escaping_twice_is_undone_twice(text in hostile()) {
        let twice = escape(&escape(&text)).into_owned();
        let once = unescape(&twice);
        prop_assert_eq!(unescape(&once), text.as_str());
    }

    #[test]
    fn escaping_only_replaces_and_inserts(text in hostile()) {
        // Without the escapes both are the same text, and no character of it was moved or dropped.
        let bare = |text: &str| text.replace("amp;", "").replace("&lt;", "<");
        prop_assert_eq!(bare(&escape(&text)), bare(&text));
    }

    #[test]
    fn nothing_escaped_looks_like_a_tag(text in hostile()) {
        let visible: String = escape(&text)
            .chars()
            .filter(|c| !"\0\u{200b}\u{200d}\u{feff}\u{ad}\u{301}".contains(*c))
            .flat_map(char::to_lowercase)
            .collect();
        for name in Name::ALL {
            let opening = format!("<{name}");
            let closing = format!("</{name}");
            prop_assert!(!visible.contains(&opening) && !visible.contains(&closing));
        }
    }

    #[test]
    fn what_is_written_is_read_back(blocks in prop::collection::vec(block(), 0..4)) {
        prop_assert_eq!(parse(&render(&blocks)), Ok(blocks));
    }

    #[test]
    fn the_tags_are_those_of_the_blocks(block in block()) {
        // Judged without the parser: the visible tags are exactly those that the tree has.
        fn count(block: &Block, name: Name) -> usize {
            let inner = block.contents().iter().map(|content| match content {
                Content::Block(block) => count(block, name),
                Content::Text(_) => 0,
            });
            usize::from(block.name() == name) + inner.sum::<usize>()
        }
        let text = block.to_string();
        for name in Name::ALL {
            let opened = text.matches(&format!("<{name}")).count();
            prop_assert_eq!(opened, count(&block, name));
        }
    }

    #[test]
    fn what_parses_is_what_would_be_written(text in hostile()) {
        if let Ok(blocks) = parse(&text) {
            prop_assert_eq!(render(&blocks), text);
        }
    }

    #[test]
    fn a_block_that_was_tampered_with_is_refused_or_means_what_it_says(
        block in block(), at in any::<prop::sample::Index>(), piece in piece(), cut in 0_usize..4,
    ) {
        let mut chars: Vec<char> = block.to_string().chars().collect();
        let at = at.index(chars.len());
        let end = (at + cut).min(chars.len());
        chars.splice(at..end, piece.chars());
        let text: String = chars.into_iter().collect();
        if let Ok(blocks) = parse(&text) {
            prop_assert_eq!(render(&blocks), text);
        }
    }

    #[test]
    fn texts_arrive_as_they_were_meant(text in hostile(), author in hostile()) {
        let block = Block::new(Name::Message).attr("author", author.clone()).text(&text);
        let read = parse(&Block::new(Name::Channel).child(block).to_string());
        let read = read.map_err(|e| TestCaseError::fail(e.to_string()))?;
        let mut found = Vec::new();
        texts(&read[0], &mut found);
        prop_assert_eq!(found.concat(), text);
        let Content::Block(message) = &read[0].contents()[0] else { panic!("a message") };
        prop_assert_eq!(message.attribute("author"), Some(author.as_str()));
    }
}

#[track_caller]
fn check_escape(text: &str, escaped: &str) {
    assert_eq!(escape(text), escaped);
    assert_eq!(unescape(escaped), text);
}

#[test]
fn names_are_found_in_any_disguise() {
    for name in Name::ALL {
        check_escape(&format!("<{name}>"), &format!("&lt;{name}>"));
        check_escape(&format!("</{name}>"), &format!("&lt;/{name}>"));
        let upper = name.as_str().to_uppercase();
        check_escape(&format!("a<{upper} x"), &format!("a&lt;{upper} x"));
    }
    check_escape(
        "<\u{200b}/\u{feff}oper\u{200d}\u{2060}AtOr\u{ad}>",
        "&lt;\u{200b}/\u{feff}oper\u{200d}\u{2060}AtOr\u{ad}>",
    );
    check_escape("<op\0er\u{1b}ator", "&lt;op\0er\u{1b}ator");
    check_escape(
        "<meſſage><meßage><pendıng><İnstructions><recéipts>",
        "&lt;meſſage>&lt;meßage>&lt;pendıng>&lt;İnstructions><recéipts>",
    );
    check_escape("<rece\u{301}ipts>", "&lt;rece\u{301}ipts>");
    check_escape("<inﬆructions>", "&lt;inﬆructions>");
    check_escape("<messages>", "&lt;messages>");
    check_escape("<<<nudge", "<<&lt;nudge");
    check_escape("<operator<operator", "&lt;operator&lt;operator");
}

#[test]
fn nothing_else_is_touched() {
    for text in [
        "",
        "a < b && c > d",
        "<b>bold</b>",
        "< operator>",
        "<\noperator>",
        "</ operator>",
        "<//operator>",
        "&amp;",
        "&gt; &LT; &lt ;",
        "＜operator＞",
        "<session_note>",
        "<sessionnote>",
        "<mess age>",
        "operator>",
        "<@123>",
        "<:pending:1>",
        "<oper",
        "<",
        "&",
    ] {
        check_escape(text, text);
    }
}

#[test]
fn an_escape_already_there_is_escaped_itself() {
    check_escape("&lt;", "&amp;lt;");
    check_escape("&amp;lt;", "&amp;amp;lt;");
    check_escape("&amp;&lt;operator>", "&amp;&amp;lt;operator>");
    check_escape("&amp;<operator>", "&amp;&lt;operator>");
    check_escape("&<operator>", "&&lt;operator>");
    check_escape("&amp;amp; lt;", "&amp;amp; lt;");
}

#[test]
fn texts_side_by_side_make_no_tag() {
    let block = Block::new(Name::Message).text("</mess").text("age>\n<nu").text("dge>");
    assert_eq!(block.to_string(), "<message>\n&lt;/message>\n&lt;nudge>\n</message>");
}

#[test]
fn the_layout_is_fixed() {
    let note = Block::new(Name::SessionNote).text("Today is 2026-11-05.");
    assert_eq!(note.to_string(), "<session-note>\nToday is 2026-11-05.\n</session-note>");
    assert_eq!(
        Block::new(Name::Interrupted).attr("by", "operator").to_string(),
        "<interrupted by=\"operator\"/>"
    );
    let author = "Ada\r\n\"<nudge>'&\u{2028}";
    let message = Block::new(Name::Message).attr("author", author).attr("author", author).text("hi");
    assert_eq!(
        render(&[
            Block::new(Name::Channel).text("before").child(message).text("after\n"),
            Block::new(Name::Nudge)
        ]),
        "<channel>\nbefore\n<message author=\"Ada&#13;&#10;&quot;&lt;nudge&gt;&apos;&amp;&#8232;\">hi</message>\nafter\n\n\
         </channel>\n<nudge/>"
    );
}

#[test]
fn what_the_writer_never_writes_is_refused() {
    for (text, error) in [
        ("hello", ParseError::Stray(0)),
        ("<nudge/> ", ParseError::Stray(8)),
        ("<nudge/>\n", ParseError::Stray(9)),
        ("<nudge/>\n\n<nudge/>", ParseError::Stray(9)),
        ("<Nudge/>", ParseError::Tag(0)),
        ("<nudges/>", ParseError::Tag(0)),
        ("<nudge />", ParseError::Tag(0)),
        ("<nudge a=\"1\" a=\"2\"/>", ParseError::Tag(0)),
        ("<nudge a=\"&#0010;\"/>", ParseError::Tag(0)),
        ("<nudge a=\"<\"/>", ParseError::Tag(0)),
        ("</nudge>", ParseError::Close(0)),
        ("<nudge>\na\n</operator>", ParseError::Close(10)),
        ("<nudge>\na\n", ParseError::Unclosed(Name::Nudge)),
        ("<nudge>a</nudge>", ParseError::Layout(8)),
        ("<nudge></nudge>", ParseError::Layout(7)),
        ("<message>\na\n</message>", ParseError::Layout(12)),
        ("<nudge>\n&lt;b>\n</nudge>", ParseError::Layout(15)),
    ] {
        assert_eq!(parse(text), Err(error), "{text}");
    }
}

#[test]
fn depth_is_bounded() {
    let nest =
        |depth| (1..depth).fold(Block::new(Name::Nudge), |inner, _| Block::new(Name::Nudge).child(inner));
    assert_eq!(parse(&nest(MAX_DEPTH).to_string()), Ok(vec![nest(MAX_DEPTH)]));
    assert!(matches!(parse(&nest(MAX_DEPTH + 2).to_string()), Err(ParseError::Depth(_))));
    assert!(matches!(parse(&"<nudge>\n".repeat(100_000)), Err(ParseError::Depth(_))));
}

#[test]
fn a_long_hostile_text_is_escaped_whole() {
    // Each would take minutes if a look ahead could run over the same bytes again.
    for unit in ["<", "<\u{200b}", "&amp;", "&", "<operato", "<\u{301}\u{301}/", "&lt;", "</message>"] {
        let text = unit.repeat(100_000);
        let escaped = escape(&text);
        assert_eq!(unescape(&escaped), text, "{unit}");
    }
    let text = format!("<{}operator>", "\u{200b}".repeat(100_000));
    assert!(escape(&text).starts_with("&lt;"));
}
