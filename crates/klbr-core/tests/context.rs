//! Results as they are inserted: a session in, the texts that the model reads out.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use klbr_core::context::paths::resolve;
use klbr_core::context::{
    Answer, Change, Content, Dedupe, Hygiene, Insertion, Limits, Output, Patch, Read, Recall, ResultId,
};
use klbr_core::hash::Hash;

/// A session: the hygiene, and what the harness stores.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) hygiene: Hygiene,
    pub(crate) limits: Limits,
    pub(crate) stored: BTreeMap<ResultId, String>,
    transcript: Vec<String>,
}

impl Session {
    pub(crate) fn with(limits: Limits) -> Self {
        Session { limits, ..Session::default() }
    }

    pub(crate) fn insert(&mut self, answer: &Answer) -> Insertion {
        let insertion = self.hygiene.insert(answer, &self.limits);
        self.stored.insert(insertion.id(), insertion.stored().to_owned());
        if let Some(head) = insertion.head() {
            assert_eq!(format!("{head}{}", insertion.stored()), insertion.text);
        }
        self.transcript.push(insertion.text.clone());
        insertion
    }

    fn read(&mut self, path: &str, content: impl AsRef<[u8]>, offset: Option<u64>, limit: Option<u64>) {
        self.insert(&read(path, content, offset, limit));
    }

    fn output(&mut self, tool: &str, args: &str, text: &str) {
        self.insert(&output(tool, args, text));
    }

    fn change(&mut self, path: &str, before: Option<&str>, after: Option<&str>) {
        self.insert(&Answer::Change(change(path, before, after)));
    }

    pub(crate) fn recall(&mut self, target: &str, offset: Option<u64>, limit: Option<u64>) -> Insertion {
        let stored = self.hygiene.resolve(target).map(|id| self.stored[&id].clone());
        self.insert(&Answer::Recall(Recall { target: target.to_owned(), stored, offset, limit }))
    }

    fn compact(&mut self) {
        let last = self.hygiene.last().unwrap();
        let table = self.hygiene.table(last, &self.limits).unwrap_or_else(|| "(no table)".to_owned());
        self.transcript.push(table);
        self.hygiene.compacted(last);
    }

    #[track_caller]
    fn check(&self, expected: &Expect) {
        let mut text = self
            .transcript
            .join("\n-----\n")
            .replace('\r', "␍")
            .replace('\0', "␀")
            .replace('\u{feff}', "⟨bom⟩");
        text.push('\n');
        expected.assert_eq(&text);
    }
}

pub(crate) fn read(path: &str, content: impl AsRef<[u8]>, offset: Option<u64>, limit: Option<u64>) -> Answer {
    let (path, file) = (path.to_owned(), resolve("/app", path));
    Answer::Read(Read { path, file, content: Content::of(content.as_ref()), offset, limit })
}

pub(crate) fn output(tool: &str, args: &str, text: &str) -> Answer {
    let dedupe = Dedupe::of_tool(tool);
    Answer::Output(Output { tool: tool.to_owned(), args: args.to_owned(), text: text.to_owned(), dedupe })
}

fn change(path: &str, before: Option<&str>, after: Option<&str>) -> Change {
    let content = |text: &str| Content::of(text.as_bytes());
    let (before, after) = (before.map(content), after.map(content));
    Change { path: path.to_owned(), file: resolve("/app", path), before, after, note: None }
}

fn numbers(range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|n| format!("{n}\n")).collect()
}

fn small() -> Limits {
    Limits {
        max_lines: 6,
        max_chars: 60,
        head_lines: 2,
        head_chars: 20,
        tail_lines: 2,
        tail_chars: 10,
        ..Limits::default()
    }
}

#[test]
fn ids_are_lowercase_hex_of_at_least_four_digits() {
    for (number, text) in [(1, "#0001"), (10, "#000a"), (0xffff, "#ffff"), (0x10000, "#10000")] {
        assert_eq!(ResultId::new(number).to_string(), text);
    }
    for text in ["#000a", "000a", "a", " #A ", "##a"] {
        assert_eq!(text.parse(), Ok(ResultId::new(10)), "{text}");
    }
    for text in ["", "#", "#xyz", "-1", "+1", "#11112222333344445", "1 2"] {
        assert!(text.parse::<ResultId>().is_err(), "{text}");
    }
}

#[test]
fn the_path_is_the_calls_and_the_file_is_what_it_means() {
    let mut session = Session::default();
    session.read("src/a.rs", "one\ntwo\n", None, None);
    session.read("./src//a.rs", "one\ntwo\n", Some(2), None);
    session.read("/app/src/b/../a.rs", "one\ntwo\n", None, Some(1));
    session.read("src/b.rs", "one\ntwo\n", None, None);
    session.read("bad\nname", "x", None, None);
    session.check(&expect![[r#"
        [#0001 src/a.rs lines 1-2 of 2 sha c3f9c8c2]
        1: one
        2: two
        -----
        [#0002 ./src//a.rs lines 2-2 of 2 sha c3f9c8c2] Unchanged since #0001, which already shows lines 1-2.
        -----
        [#0003 /app/src/b/../a.rs lines 1-1 of 2 sha c3f9c8c2] Unchanged since #0001, which already shows lines 1-2.
        -----
        [#0004 src/b.rs lines 1-2 of 2 sha c3f9c8c2]
        1: one
        2: two
        -----
        [#0005 bad\nname lines 1-1 of 1 sha 2d711642]
        1: x
    "#]]);
}

#[test]
fn a_file_that_comes_back_is_the_earlier_read() {
    let mut session = Session::default();
    session.read("a", "old\n", None, None);
    session.change("a", Some("old\n"), Some("new\n"));
    session.read("a", "new\n", None, None);
    session.change("a", Some("new\n"), Some("old\n"));
    session.read("a", "old\n", None, None);
    session.check(&expect![[r#"
        [#0001 a lines 1-1 of 1 sha 01d09d19]
        1: old
        -----
        [#0002 a sha 7aa7a535]
        @@ -1 +1 @@
        -old
        +new
        -----
        [#0003 a lines 1-1 of 1 sha 7aa7a535]
        1: new
        -----
        [#0004 a sha 01d09d19]
        @@ -1 +1 @@
        -new
        +old
        -----
        [#0005 a lines 1-1 of 1 sha 01d09d19] Unchanged since #0001, which already shows lines 1-1.
    "#]]);
}

#[test]
fn windows_of_a_read() {
    let mut session = Session::default();
    let content = numbers(1..=2003);
    session.read("n", &content, Some(2000), None);
    session.read("n", &content, Some(2001), Some(9_999_999));
    session.read("n", &content, Some(2002), Some(0));
    session.read("n", &content, Some(2004), None);
    session.read("n", &content, Some(u64::MAX), Some(u64::MAX));
    session.read("empty", "", None, None);
    session.read("empty", "", Some(7), None);
    session.check(&expect![[r#"
        [#0001 n lines 2000-2003 of 2003 sha c57a6a60]
        2000: 2000
        2001: 2001
        2002: 2002
        2003: 2003
        -----
        [#0002 n lines 2001-2003 of 2003 sha c57a6a60] Unchanged since #0001, which already shows lines 2000-2003.
        -----
        [#0003 n lines 2002-2002 of 2003 sha c57a6a60] Unchanged since #0001, which already shows lines 2000-2003.
        -----
        [#0004] Offset 2004 is past the end: n has 2003 lines.
        -----
        [#0005] Offset 18446744073709551615 is past the end: n has 2003 lines.
        -----
        [#0006 empty empty sha e3b0c442]
        (empty file)
        -----
        [#0007 empty empty sha e3b0c442]
        (empty file)
    "#]]);
    session.read("n", &content, Some(0), None);
    let text = session.transcript.last().unwrap();
    assert!(text.starts_with("[#0008 n lines 1-2000 of 2003 sha c57a6a60]\n1: 1\n2: 2\n"));
    assert!(text.ends_with("\n2000: 2000\n\n(3 more lines — read again with offset 2001)"));
}

#[test]
fn odd_bytes_are_shown_as_they_are_or_said_to_be_odd() {
    let mut session = Session::default();
    session.read("crlf", "a\r\nb\r\n", None, None);
    session.read("bom", "\u{feff}a", None, None);
    session.read("nul", "a\0b", None, None);
    session.read("invalid", b"a\xffb\n", None, None);
    session.read("invalid", b"a\xffb\n", None, None);
    session.read("invalid", b"a\xfeb\n", None, None);
    session.check(&expect![[r#"
        [#0001 crlf lines 1-2 of 2 sha 58055bdc]
        1: a␍
        2: b␍
        -----
        [#0002 bom lines 1-1 of 1 sha 1951c786]
        1: ⟨bom⟩a
        -----
        [#0003 nul lines 1-1 of 1 sha 59b271ae]
        1: a␀b
        -----
        [#0004 invalid lines 1-1 of 1 sha 407aaa24]
        1: a�b

        (not valid UTF-8: bytes that could not be read are shown as �)
        -----
        [#0005 invalid lines 1-1 of 1 sha 407aaa24]
        1: a�b

        (not valid UTF-8: bytes that could not be read are shown as �)
        -----
        [#0006 invalid lines 1-1 of 1 sha 8a5d2d2a]
        1: a�b

        (not valid UTF-8: bytes that could not be read are shown as �)
    "#]]);
}

#[test]
fn a_window_ends_where_its_characters_do() {
    let mut session = Session::with(Limits { window_chars: 10, ..Limits::default() });
    session.read("a", "1234\n5678\n9\n", None, None);
    session.read("a", "1234\n5678\n9\n", Some(2), Some(1));
    session.read("long", "äöüäöüäöüäöü\nx\n", None, None);
    session.read("long", "äöüäöüäöüäöü\nx\n", None, Some(1));
    session.recall("#0003", None, None);
    session.recall("#0003", Some(2), Some(1));
    session.check(&expect![[r#"
        [#0001 a lines 1-2 of 3 sha feb5e28d]
        1: 1234
        2: 5678

        (1 more lines — read again with offset 3)
        -----
        [#0002 a lines 2-2 of 3 sha feb5e28d] Unchanged since #0001, which already shows lines 1-2.
        -----
        [#0003 long lines 1-1 of 2 sha f4d660be]
        1: äöüäöüäöüä […cut]

        (1 more lines — read again with offset 2)
        -----
        [#0004 long lines 1-1 of 2 sha f4d660be]
        1: äöüäöüäöüä […cut]

        (1 more lines — read again with offset 2)
        -----
        [#0005 recall #0003 lines 1-1 of 3]
        1: äöüäöüä
        -----
        [#0006 recall #0003 lines 2-2 of 3]
        öüäöü
    "#]]);
}

#[test]
fn long_output_keeps_head_and_tail() {
    let mut session = Session::with(small());
    session.output("bash", "{}", "1\n2\n3\n4\n5\n6");
    session.output("bash", "{}", "1\n2\n3\n4\n5\n6\n");
    session.output("bash", "{}", "1\n2\n3\n4\n5\n6\n7\n");
    session.output("bash", "{}", "");
    // Too many characters: whole lines only, the breaks between them counted.
    let line = "x".repeat(19);
    session.output("bash", "{}", &format!("{line}\n\n{line}\nend of it\n12345678901"));
    session.output("bash", "{}", &format!("{line}\n{line}\n{line}\n12345\n1234"));
    session.output("bash", "{}", &format!("{}\nrest", "ä".repeat(70)));
    session.output("bash", "{}", &"y".repeat(61));
    session.check(&expect![[r#"
        [#0001]
        1
        2
        3
        4
        5
        6
        -----
        [#0002]
        1
        2
        3
        4
        5
        6

        -----
        [#0003]
        1
        2
        [3 lines elided, full output #0003]
        6
        7

        -----
        [#0004]

        -----
        [#0005]
        xxxxxxxxxxxxxxxxxxx

        [3 lines elided, full output #0005]
        -----
        [#0006]
        xxxxxxxxxxxxxxxxxxx
        [2 lines elided, full output #0006]
        12345
        1234
        -----
        [#0007]
        ääääääääääääääääääää […cut]
        [0 lines elided, full output #0007]
        rest
        -----
        [#0008]
        yyyyyyyyyyyyyyyyyyyy […cut]
        [0 lines elided, full output #0008]
    "#]]);
}

#[test]
fn nothing_is_elided_where_head_and_tail_are_all_of_it() {
    let mut session =
        Session::with(Limits { max_lines: 3, head_lines: 2, tail_lines: 2, ..Limits::default() });
    session.output("bash", "{}", "1\n2\n3\n4\n");
    session.output("bash", "{}", "1\n2\n3\n4\n5\n");
    session.check(&expect![[r#"
        [#0001]
        1
        2
        3
        4

        -----
        [#0002]
        1
        2
        [1 lines elided, full output #0002]
        4
        5

    "#]]);
}

#[test]
fn recall_shows_what_was_stored() {
    let mut session = Session::with(small());
    session.output("bash", "{}", &numbers(1..=9));
    session.read("a", "x\ny\n", None, None);
    session.read("a", "x\ny\n", Some(2), None);
    session.output("bash", "{}", "");
    session.change("new", None, Some("x"));
    for target in ["1", "#3", "0001", "#0007", "#0004", "#0005"] {
        session.recall(target, Some(1), Some(2));
    }
    session.recall("#0001", Some(9), None);
    session.recall("#0001", Some(10), None);
    session.recall("#ffff", None, None);
    session.recall("#0", None, None);
    session.recall("nonsense", None, None);
    session.compact();
    session.recall("#1", Some(8), None);
    session.check(&expect![[r#"
        [#0001]
        1
        2
        [5 lines elided, full output #0001]
        8
        9

        -----
        [#0002 a lines 1-2 of 2 sha 09834d48]
        1: x
        2: y
        -----
        [#0003 a lines 2-2 of 2 sha 09834d48] Unchanged since #0002, which already shows lines 1-2.
        -----
        [#0004]

        -----
        [#0005 new sha 2d711642] Created, 1 lines.
        -----
        [#0006 recall #0001 lines 1-2 of 9]
        1
        2
        -----
        [#0007 recall #0003 lines 1-1 of 1]
        2: y
        -----
        [#0008 recall #0001 lines 1-2 of 9]
        1
        2
        -----
        [#0009 recall #0007 lines 1-1 of 1]
        2: y
        -----
        [#000a recall #0004 empty]

        -----
        [#000b recall #0005 lines 1-1 of 1]
        Created, 1 lines.
        -----
        [#000c recall #0001 lines 9-9 of 9]
        9

        -----
        [#000d] Offset 10 is past the end: #0001 has 9 lines.
        -----
        [#000e] No stored result #ffff in this session.
        -----
        [#000f] No stored result #0000 in this session.
        -----
        [#0010] No stored result #nonsense in this session.
        -----
        ## Files read before this summary

        Read a file again for its content; recall shows a result by its id.

        | Path | Lines | sha | Result |
        |---|---|---|---|
        | a | 1-2 of 2 | 09834d48 | #0002 |
        -----
        [#0011 recall #0001 lines 8-9 of 9]
        8
        9

    "#]]);
}

#[test]
fn edits_answer_with_the_diff() {
    let mut session = Session::default();
    let before = numbers(1..=20);
    session.change("n", Some(&before), Some(&before.replace("10\n", "ten\n")));
    session.change("n", Some(&before), Some(&format!("0\n{}", before.replace("20\n", ""))));
    session.change("n", Some(""), Some("a\nb\n"));
    session.change("n", Some("a\n"), Some(""));
    session.change("n", Some("a"), Some("a\n"));
    session.change("n", Some("a\r\nb\rc\r\n"), Some("a\r\nb\rd\r\n"));
    session.change("n", Some("a\n"), Some("a\n"));
    session.change("old", Some("a\n"), None);
    session.change("new", None, Some(""));
    session.check(&expect![[r#"
        [#0001 n sha 805a9020]
        @@ -7,7 +7,7 @@
         7
         8
         9
        -10
        +ten
         11
         12
         13
        -----
        [#0002 n sha 9cfbaaab]
        @@ -1,3 +1,4 @@
        +0
         1
         2
         3
        @@ -17,4 +18,3 @@
         17
         18
         19
        -20
        -----
        [#0003 n sha 911169dd]
        @@ -0,0 +1,2 @@
        +a
        +b
        -----
        [#0004 n sha e3b0c442]
        @@ -1 +0,0 @@
        -a
        -----
        [#0005 n sha 87428fc5]
        @@ -1 +1 @@
        -a
        \ No newline at end of file
        +a
        -----
        [#0006 n sha 564eb614]
        @@ -1,2 +1,2 @@
         a␍
        -b␍c␍
        +b␍d␍
        -----
        [#0007 n sha 87428fc5]
        -----
        [#0008 old deleted]
        -----
        [#0009 new sha e3b0c442] Created, 0 lines.
    "#]]);
}

#[test]
fn a_patch_answers_file_by_file() {
    let mut session =
        Session::with(Limits { max_lines: 8, head_lines: 3, tail_lines: 2, ..Limits::default() });
    let changes = vec![
        change("src/a.ts", Some("1\n2\n"), Some("1\n3\n")),
        change("docs/new.md", None, Some("# x\n")),
        change("old.md", Some("x"), None),
    ];
    let note = Some("A note of the tool.".to_owned());
    session.insert(&Answer::Patch(Patch { changes: changes.clone(), note: None }));
    session.insert(&Answer::Patch(Patch { changes: changes[..1].to_vec(), note: note.clone() }));
    let long = change("b", Some(""), Some(&numbers(1..=20)));
    session.insert(&Answer::Change(Change { note, ..long }));
    session.recall("#0003", Some(19), None);
    session.check(&expect![[r#"
        [#0001]
        [src/a.ts sha 8391e9ff]
        @@ -1,2 +1,2 @@
         1
        -2
        +3
        [docs/new.md sha 253b610b] Created, 1 lines.
        [old.md deleted]
        -----
        [#0002 src/a.ts sha 8391e9ff]
        @@ -1,2 +1,2 @@
         1
        -2
        +3
        A note of the tool.
        -----
        [#0003 b sha b76ae83c]
        @@ -0,0 +1,20 @@
        +1
        +2
        [16 lines elided, full output #0003]
        +19
        +20
        A note of the tool.
        -----
        [#0004 recall #0003 lines 19-22 of 22]
        +18
        +19
        +20
        A note of the tool.
    "#]]);
}

#[test]
fn a_repeated_listing_names_the_first() {
    let mut session = Session::with(small());
    session.output("grep", r#"{"pattern": "x", "path": {"b": 1, "a": [1]}}"#, "a:1: x");
    session.output("grep", r#"{"path":{"a":[1],"b":1},"pattern":"x"}"#, "a:1: x");
    session.output("grep", r#"{"pattern": "x"}"#, "a:1: x");
    session.output("glob", r#"{"pattern": "x"}"#, "a:1: x");
    session.output("grep", r#"{"pattern": "x"}"#, "a:2: x");
    session.output("grep", r#"{"pattern": "x"}"#, "a:1: x");
    session.output("list", "not json", &numbers(1..=9));
    session.output("list", "not json", &numbers(1..=9));
    session.output("bash", "{}", "x");
    session.output("bash", "{}", "x");
    session.recall("#0008", Some(9), None);
    session.check(&expect![[r#"
        [#0001]
        a:1: x
        -----
        [#0002] Same result as #0001.
        -----
        [#0003]
        a:1: x
        -----
        [#0004]
        a:1: x
        -----
        [#0005]
        a:2: x
        -----
        [#0006] Same result as #0003.
        -----
        [#0007]
        1
        2
        [5 lines elided, full output #0007]
        8
        9

        -----
        [#0008] Same result as #0007.
        -----
        [#0009]
        x
        -----
        [#000a]
        x
        -----
        [#000b recall #0008 lines 9-9 of 9]
        9

    "#]]);
}

#[test]
fn compaction_lists_the_newest_read_of_each_file_and_empties_the_table() {
    let mut session = Session::with(Limits { table_rows: 3, ..Limits::default() });
    for (path, content) in [("gone", "x"), ("a", "1\n2\n"), ("b|c", "x"), ("empty", "")] {
        session.read(path, content, None, None);
    }
    session.read("./a", "1\n2\n3\n", Some(2), Some(1));
    session.read("a", "1\n2\n3\n", Some(2), Some(1));
    session.compact();
    session.read("a", "1\n2\n3\n", Some(2), Some(1));
    session.compact();
    session.compact();
    session.check(&expect![[r#"
        [#0001 gone lines 1-1 of 1 sha 2d711642]
        1: x
        -----
        [#0002 a lines 1-2 of 2 sha a6e2b7a0]
        1: 1
        2: 2
        -----
        [#0003 b|c lines 1-1 of 1 sha 2d711642]
        1: x
        -----
        [#0004 empty empty sha e3b0c442]
        (empty file)
        -----
        [#0005 ./a lines 2-2 of 3 sha 14c5e74c]
        2: 2

        (1 more lines — read again with offset 3)
        -----
        [#0006 a lines 2-2 of 3 sha 14c5e74c] Unchanged since #0005, which already shows lines 2-2.
        -----
        ## Files read before this summary

        Read a file again for its content; recall shows a result by its id.

        | Path | Lines | sha | Result |
        |---|---|---|---|
        | b\|c | 1-1 of 1 | 2d711642 | #0003 |
        | empty | empty | e3b0c442 | #0004 |
        | ./a | 2-2 of 3 | 14c5e74c | #0005 |
        -----
        [#0007 a lines 2-2 of 3 sha 14c5e74c]
        2: 2

        (1 more lines — read again with offset 3)
        -----
        ## Files read before this summary

        Read a file again for its content; recall shows a result by its id.

        | Path | Lines | sha | Result |
        |---|---|---|---|
        | a | 2-2 of 3 | 14c5e74c | #0007 |
        -----
        (no table)
    "#]]);
}

#[test]
fn a_summary_covers_what_came_before_its_request() {
    let mut session = Session::default();
    session.read("a", "x", None, None);
    let asked = session.hygiene.last().unwrap();
    session.read("b", "x", None, None);
    assert!(!session.hygiene.table(asked, &session.limits).unwrap().contains("| b |"));
    session.hygiene.compacted(asked);
    session.read("a", "x", None, None);
    session.read("b", "x", None, None);
    let table = session.hygiene.table(session.hygiene.last().unwrap(), &session.limits).unwrap();
    assert!(table.ends_with("| b | 1-1 of 1 | 2d711642 | #0002 |\n| a | 1-1 of 1 | 2d711642 | #0003 |"));
    assert!(session.transcript[3].ends_with("Unchanged since #0002, which already shows lines 1-1."));
}

#[test]
fn a_turn_taken_back_takes_its_reads_with_it() {
    let mut session = Session::default();
    session.read("a", "x", None, None);
    session.read("b", "x", None, None);
    session.hygiene.take_back(|id| id == ResultId::new(1));
    let last = session.hygiene.last().unwrap();
    assert!(!session.hygiene.table(last, &session.limits).unwrap().contains("#0001"));
    session.read("a", "x", None, None);
    assert_eq!(session.transcript[2], "[#0003 a lines 1-1 of 1 sha 2d711642]\n1: x");
}

#[test]
fn a_file_is_changed_only_as_it_was_last_seen() {
    let mut session = Session::default();
    let hash = |text: &str| Some(Hash::of(text.as_bytes()));
    let check = |session: &Session, now, expected: &str| {
        let answer =
            session.hygiene.check_change("/app/a", now).map_or_else(|e| e.to_string(), |()| "may".to_owned());
        assert_eq!(answer, expected);
    };
    check(&session, None, "may");
    check(&session, hash("x"), "/app/a exists and has not been read in this session. Read it first.");
    session.read("a", "x", None, None);
    check(&session, hash("x"), "may");
    check(&session, hash("y"), "/app/a changed since you last read it. Read it again before changing it.");
    session.change("a", Some("x"), Some("z"));
    check(&session, hash("z"), "may");
    check(&session, hash("x"), "/app/a changed since you last read it. Read it again before changing it.");
    session.change("a", Some("z"), None);
    check(&session, hash("z"), "/app/a exists and has not been read in this session. Read it first.");
}

#[test]
fn one_line_of_ten_megabytes() {
    let mut session = Session::default();
    let line = "0123456789".repeat(1_000_000);
    session.output("bash", "{}", &line);
    session.read("big", &line, None, None);
    session.read("big", &line, None, None);
    session.change("big", Some(&line), Some(&format!("{line}!")));
    for text in &session.transcript {
        assert!(text.len() < 210_000, "{}", text.len());
    }
    assert!(session.transcript[2].starts_with("[#0003 big lines 1-1 of 1 sha "));
    assert!(session.transcript[2].contains("\n1: 0123"), "a cut line is never what a stub names");
    assert!(
        session.transcript[3]
            .ends_with("]\n@@ -1 +1 @@\n[3 lines elided, full output #0004]\n\\ No newline at end of file")
    );
    // It is recalled a window at a time: the first, one in the middle, the last.
    for (offset, from, to) in [(1, 0, 200_000), (251, 5_000_000, 5_200_000), (499, 9_960_000, 10_000_000)] {
        assert!(session.recall("#0001", Some(offset), None).stored() == &line[from..to], "{offset}");
    }
}
