//! Edits of files on a disk.

use klbr_codeintel::{ContentHash, Edit, EditError, EditPolicy, Editor, Extent, FileEdit, Limits};
use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn edit(path: &Path, expected: &str, text: &str) -> FileEdit {
    FileEdit {
        path: path.to_owned(),
        expected: ContentHash::of(expected.as_bytes()),
        language: None,
        edits: vec![Edit::ReplaceSymbol {
            target: "f".into(),
            text: text.into(),
            extent: Extent::Definition,
        }],
    }
}

#[test]
fn a_file_keeps_its_mode_and_the_link_that_leads_to_it() {
    let folder = Folder::new();
    let path = folder.file("a.rs", "fn f() {}\nfn g() {}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o754)).unwrap();
    let link = folder.0.path().join("link.rs");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let applied = Editor::default().apply(&[edit(&link, "fn f() {}\nfn g() {}", "fn f() { 1; }")]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "fn f() { 1; }\nfn g() {}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o754);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(applied[0].after, ContentHash::of(b"fn f() { 1; }\nfn g() {}"));
    assert_eq!(folder.names(), ["a.rs", "link.rs"]);
}

#[test]
fn an_edit_on_a_stale_hash_is_refused_with_the_new_one() {
    let folder = Folder::new();
    let path = folder.file("a.rs", "// moved\nfn f() {}\n");
    match Editor::default().apply(&[edit(&path, "fn f() {}\n", "fn f() { 1; }")]) {
        Err(EditError::Stale { found, target, .. }) => {
            assert_eq!(found, ContentHash::of(b"// moved\nfn f() {}\n"));
            assert_eq!(target.unwrap().start_line, 2);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "// moved\nfn f() {}\n");
}

#[test]
fn a_batch_is_all_or_nothing() {
    let folder = Folder::new();
    let (one, two) = (folder.file("1.rs", "fn f() {}\n"), folder.file("2.py", "def f(): pass\n"));
    let stale = [edit(&one, "fn f() {}\n", "fn f() { 1; }"), edit(&two, "other", "def f(): return 1")];
    assert!(matches!(Editor::default().apply(&stale), Err(EditError::Stale { .. })));
    assert_eq!(fs::read_to_string(&one).unwrap(), "fn f() {}\n");
    let good =
        [edit(&one, "fn f() {}\n", "fn f() { 1; }"), edit(&two, "def f(): pass\n", "def f(): return 1")];
    Editor::default().apply(&good).unwrap();
    assert_eq!(fs::read_to_string(&one).unwrap(), "fn f() { 1; }\n");
    assert_eq!(fs::read_to_string(&two).unwrap(), "def f(): return 1\n");
    assert_eq!(folder.names(), ["1.rs", "2.py"]);
}

#[test]
fn the_same_file_twice_is_one_file() {
    let folder = Folder::new();
    let path = folder.file("a.rs", "fn f() {}\nfn g() {}\n");
    let mut second = edit(&folder.0.path().join(".").join("a.rs"), "fn f() {}\nfn g() {}\n", "fn g() { 2; }");
    second.edits = vec![Edit::ReplaceSymbolBody { target: "g".into(), text: "{ 2; }".into() }];
    Editor::default().apply(&[edit(&path, "fn f() {}\nfn g() {}\n", "fn f() { 1; }"), second]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "fn f() { 1; }\nfn g() { 2; }\n");
    let twice = [edit(&path, "x", "fn f() {}"), edit(&path, "y", "fn f() {}")];
    assert!(matches!(Editor::default().apply(&twice), Err(EditError::Contradiction(_))));
}

#[test]
fn a_read_only_file_a_folder_and_a_missing_file_are_refused() {
    let folder = Folder::new();
    let path = folder.file("a.rs", "fn f() {}\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    assert!(matches!(
        Editor::default().apply(&[edit(&path, "fn f() {}\n", "fn f() { 1; }")]),
        Err(EditError::ReadOnly(_))
    ));
    assert_eq!(fs::read_to_string(&path).unwrap(), "fn f() {}\n");
    for path in [folder.0.path().to_owned(), folder.0.path().join("none.rs")] {
        assert!(matches!(Editor::default().apply(&[edit(&path, "", "")]), Err(EditError::Io { .. })));
    }
}

#[test]
fn a_held_file_is_waited_for_no_longer_than_told() {
    let folder = Folder::new();
    let path = folder.file("a.rs", "fn f() {}\n");
    let holder = File::open(&path).unwrap();
    holder.lock().unwrap();
    let mut editor = Editor::new(Limits::default(), EditPolicy { lock_timeout: Duration::from_millis(30) });
    let edits = [edit(&path, "fn f() {}\n", "fn f() { 1; }")];
    assert!(matches!(editor.apply(&edits), Err(EditError::Locked(_))));
    drop(holder);
    editor.apply(&edits).unwrap();
}

#[test]
fn of_many_editors_at_once_each_edit_is_applied_or_refused_as_stale() {
    let folder = Folder::new();
    let path = folder.file("a.py", "def f(): return 0\n");
    let rounds = 25;
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let editors: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut editor = Editor::default();
                    let mut done = 0;
                    while done < rounds {
                        let text = fs::read_to_string(&path).unwrap();
                        let count: usize = text.trim().rsplit(' ').next().unwrap().parse().unwrap();
                        match editor.apply(&[edit(&path, &text, &format!("def f(): return {}", count + 1))]) {
                            Ok(_) => done += 1,
                            Err(EditError::Stale { .. }) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                    done
                })
            })
            .collect();
        editors.into_iter().map(|editor| editor.join().unwrap()).collect()
    });
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        format!("def f(): return {}\n", counts.iter().sum::<usize>())
    );
    assert_eq!(folder.names(), ["a.py"]);
}

/// The file-size limit stands in for a full disk: the write of the new text fails as it would there.
#[test]
fn a_disk_without_room_leaves_the_original() {
    const INSIDE: &str = "KLBR_CODEINTEL_FULL_DISK";
    let text = format!("fn f() {{}}\n// {}\n", "x".repeat(8192));
    if let Some(path) = std::env::var_os(INSIDE) {
        match Editor::default().apply(&[edit(Path::new(&path), &text, "fn f() { 1; }")]) {
            Err(EditError::Io { .. }) => return,
            other => panic!("{other:?}"),
        }
    }
    let folder = Folder::new();
    let path = folder.file("a.rs", &text);
    let own = std::env::current_exe().unwrap();
    let script = "trap '' XFSZ; ulimit -f 4; exec \"$0\" --exact edits::files::a_disk_without_room_leaves_the_original";
    let status =
        std::process::Command::new("sh").args(["-c", script]).arg(own).env(INSIDE, &path).output().unwrap();
    assert!(status.status.success(), "{status:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(folder.names(), ["a.rs"]);
}
