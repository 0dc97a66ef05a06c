//! Files as nobody would write them, and files that are gone when they are to be changed.

use expect_test::expect;
use klbr_core::context::{Answer, Change, Content, Unseen};
use klbr_core::hash::Hash;

use crate::context::{Session, read};

/// What a file tool does on a disk where `now` stands: a change of what the agent knows, or why not.
fn edit(session: &mut Session, path: &str, now: Option<&[u8]>, after: &[u8]) -> Result<String, Unseen> {
    let file = format!("/app/{path}");
    session.hygiene.check_change(&file, now.map(Hash::of))?;
    let change = Change {
        path: path.to_owned(),
        file,
        before: now.map(Content::of),
        after: Some(Content::of(after)),
        note: None,
    };
    Ok(session.insert(&Answer::Change(change)).text)
}

#[test]
fn odd_files_are_changed_by_their_bytes() {
    let mut session = Session::default();
    let files: [(&str, &[u8], &[u8]); 6] = [
        ("crlf", b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n"),
        ("bom", b"\xef\xbb\xbfa\nb\n", b"a\nb\n"),
        ("open", b"a\nb", b"a\nb\n"),
        ("nul", b"a\0b\nc\n", b"a\0B\nc\n"),
        ("invalid", b"a\xffb\nc\n", b"a\xfeb\nc\n"),
        ("emptied", b"a\n", b""),
    ];
    let mut texts = String::new();
    for (path, before, after) in files {
        let unread = edit(&mut session, path, Some(before), after);
        assert_eq!(unread, Err(Unseen::NeverRead(format!("/app/{path}"))));
        session.insert(&read(path, before, None, None));
        // What only a glance at the text would take for the same is another file.
        let changed = edit(&mut session, path, Some(&[before, b" "].concat()), after);
        assert_eq!(changed, Err(Unseen::Changed(format!("/app/{path}"))));
        texts.push_str(&edit(&mut session, path, Some(before), after).unwrap());
        texts.push('\n');
        // The file is now what the agent made of it, and no stub names what it was.
        let again = session.insert(&read(path, after, None, None)).text;
        assert!(!again.contains("Unchanged since"), "{again}");
        assert!(edit(&mut session, path, Some(after), before).is_ok());
    }
    let shown = texts.replace('\r', "␍").replace('\0', "␀").replace('\u{feff}', "⟨bom⟩");
    expect![[r#"
        [#0002 crlf sha 301f6bd3]
        @@ -1,3 +1,3 @@
         a␍
        -b␍
        +B␍
         c␍
        [#0006 bom sha 911169dd]
        @@ -1,2 +1,2 @@
        -⟨bom⟩a
        +a
         b
        [#000a open sha 911169dd]
        @@ -1,2 +1,2 @@
         a
        -b
        \ No newline at end of file
        +b
        [#000e nul sha c38caf26]
        @@ -1,2 +1,2 @@
        -a␀b
        +a␀B
         c
        [#0012 invalid sha 18b8d3ef]
        [#0016 emptied sha e3b0c442]
        @@ -1 +0,0 @@
        -a
    "#]]
    .assert_eq(&shown);
}

#[test]
fn a_file_that_vanishes_between_read_and_edit_is_made_anew_or_refused() {
    let mut session = Session::default();
    let (old, new): (&[u8], &[u8]) = (b"a\nb\n", b"a\nc\n");
    session.insert(&read("f", old, None, None));
    // Gone: there is nothing to lose, and what is written is said to be new.
    let made = edit(&mut session, "f", None, new).unwrap();
    assert!(made.contains(" Created, 2 lines."), "{made}");
    // Gone again, and another one stands in its place.
    assert_eq!(edit(&mut session, "f", Some(old), b"x"), Err(Unseen::Changed("/app/f".to_owned())));
    // It came back as it was read: the lines are still in front of the model.
    session.insert(&read("g", old, None, None));
    let back = session.insert(&read("g", old, Some(2), None)).text;
    assert!(back.contains("Unchanged since") && edit(&mut session, "g", Some(old), new).is_ok(), "{back}");
    // The agent itself removed it, and somebody else made another: that one was never read.
    let removed = Change {
        path: "g".to_owned(),
        file: "/app/g".to_owned(),
        before: Some(Content::of(new)),
        after: None,
        note: None,
    };
    session.insert(&Answer::Change(removed));
    assert_eq!(edit(&mut session, "g", Some(new), b"x"), Err(Unseen::NeverRead("/app/g".to_owned())));
    // It vanishes while it is read: an answer about its end is not a read.
    session.insert(&read("h", b"a\n", Some(9), None));
    assert_eq!(edit(&mut session, "h", Some(b"a\n"), b"x"), Err(Unseen::NeverRead("/app/h".to_owned())));
}

#[test]
fn what_was_never_given_is_said_to_be_absent() {
    let mut session = Session::default();
    session.insert(&read("f", "a\nb\n", None, None));
    for (target, offset) in [
        ("#0002", None),
        ("#0000", None),
        ("#ffffffffffffffffffffffff", None),
        ("-1", None),
        ("", Some(u64::MAX)),
        ("#0001", Some(3)),
        ("#0001", Some(u64::MAX)),
    ] {
        let text = session.recall(target, offset, Some(u64::MAX)).text;
        let is_refused =
            text.contains("No stored result") || text.contains("is past the end: #0001 has 2 lines.");
        assert!(is_refused && text.lines().count() == 1, "{target}: {text}");
    }
}
