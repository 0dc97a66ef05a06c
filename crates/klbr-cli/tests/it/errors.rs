//! Bad arguments, homes, settings and files: each ends in a clear error with a hint, and changes nothing.

use crate::program::{Home, files};

/// Runs it on a home as it is, and sees that nothing in it has changed.
#[track_caller]
fn check(home: &Home, arguments: &[&str], code: i32, error: &str, hint: &str) {
    let before = home.path().is_dir().then(|| files(&home.path()));
    let ended = home.run(arguments);
    assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
    assert!(ended.err.contains(error), "{arguments:?} does not say {error:?}: {}", ended.err);
    assert!(ended.err.contains(hint), "{arguments:?} does not hint {hint:?}: {}", ended.err);
    assert_eq!(ended.out, "", "{arguments:?}");
    let after = home.path().is_dir().then(|| files(&home.path()));
    assert!(before == after, "{arguments:?} changed something: {after:?}");
}

#[test]
fn arguments_that_mean_nothing_are_named() {
    let home = Home::new();
    for (arguments, error, hint) in [
        (&["stauts"][..], "stauts", "status"),
        (&["status", "--agent", "No Name"], "No Name", "beginning with a letter"),
        (&["inbox", "--limit", "0"], "0", "1..=1000"),
        (&["effects", "allow", "seven"], "seven", "4.2.1"),
        (&["events", "--after", "x"], "x", "--after"),
        (&["history", "--limit", "0", "x"], "0", "1..=100"),
        (&["completions", "tcl"], "tcl", "bash"),
    ] {
        check(&home, arguments, 2, error, hint);
    }
}

#[test]
fn without_a_home_verbs_say_how_to_make_one() {
    let home = Home::new();
    for verb in [
        &["status"][..],
        &["inbox"],
        &["history", "x"],
        &["history", "list"],
        &["history", "verify"],
        &["events"],
        &["soul", "show"],
        &["memory", "list"],
        &["memory", "forget", "1"],
        &["stop"],
        &["interrupt"],
        &["reset"],
        &["compact"],
        &["effects", "list"],
        &["store", "check"],
        &["debug", "reflect"],
    ] {
        check(&home, verb, 3, "there is no home at", "klbr init");
        assert!(!home.path().exists(), "{verb:?} made a home");
    }
}

#[test]
fn programs_are_told_of_errors_in_json() {
    let ended = Home::new().run(&["status", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ended.err).unwrap();
    assert_eq!((ended.code, told["error"]["class"].as_str()), (Some(3), Some("config")), "{told}");
    assert!(told["error"]["message"].as_str().unwrap().contains("there is no home at"), "{told}");
    assert!(told["error"]["hints"][0].as_str().unwrap().contains("klbr init"), "{told}");
}

#[test]
fn a_home_that_is_no_folder_is_left_alone() {
    let home = Home::new();
    std::fs::write(home.path(), "mine").unwrap();
    check(&home, &["status"], 3, "is not a folder", "--home");
    check(&home, &["init"], 3, "no home can be made at", "--home");
    assert_eq!(std::fs::read_to_string(home.path()).unwrap(), "mine");
}

#[test]
fn settings_that_mean_nothing_are_named_with_their_line() {
    for (text, error, hint) in [
        ("[agent]\nnmae = \"ada\"\n", "klbr.toml:2: there is no setting \"agent.nmae\"", "klbr init"),
        ("[agent\n", "klbr.toml:1:", "nothing was changed"),
        ("[agent]\nname = \"Ada Lovelace\"\n", "Ada Lovelace", "nothing was changed"),
        ("[model]\nbase_url = \"ftp://x\"\n", "ftp://x", "nothing was changed"),
        ("[model]\napi_key = \"sesame\"\n", "api_key_env", "nothing was changed"),
        (
            "[model]\nbase_url = \"http://x\"\napi_key_env = \"NOT_SET_HERE\"\n",
            "NOT_SET_HERE",
            "nothing was changed",
        ),
        ("[server]\nlisten = \"everywhere\"\n", "everywhere", "nothing was changed"),
    ] {
        let home = Home::new();
        std::fs::create_dir(home.path()).unwrap();
        std::fs::write(home.path().join("klbr.toml"), text).unwrap();
        for verb in [&["status"][..], &["chat", "-m", "hi"], &["run"]] {
            check(&home, verb, 3, error, hint);
        }
        let ended = home.run(&["status"]);
        assert!(!ended.err.contains("sesame"), "{}", ended.err);
    }
}

#[test]
fn init_makes_a_home_once_and_overwrites_nothing() {
    let home = Home::new();
    let first = home.good(&["init"]);
    assert_eq!(first.matches("made ").count(), 2, "{first}");
    let before = files(&home.path());
    let second = home.good(&["init"]);
    assert_eq!(second.matches("kept ").count(), 2, "{second}");
    assert_eq!(before, files(&home.path()));
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |name: &str| std::fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("."), mode("token"), mode("klbr.toml")), (0o700, 0o600, 0o600));
    let told: serde_json::Value = serde_json::from_str(&home.good(&["init", "--json"])).unwrap();
    assert_eq!(told["kept"].as_array().unwrap().len(), 2, "{told}");
    check(&home, &["status"], 3, "nothing has happened", "klbr chat");
    check(&home, &["stop"], 4, "no daemon runs", "klbr run");
    check(&home, &["effects", "allow", "1.1.1"], 4, "no daemon runs", "klbr run");
}

#[test]
fn texts_and_times_that_cannot_be_used_are_named() {
    let home = Home::new();
    home.good(&["init"]);
    let empty = home.beside("empty.md");
    std::fs::write(&empty, " \n").unwrap();
    let not_text = home.beside("bytes.md");
    std::fs::write(&not_text, [0xff, 0xfe]).unwrap();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    check(
        &home,
        &["soul", "edit", "--file", "/nowhere/soul.md"],
        2,
        "/nowhere/soul.md",
        "nothing was changed",
    );
    check(&home, &["soul", "edit", "--file", &path(&empty)], 2, "empty", "nothing was changed");
    check(&home, &["soul", "edit", "--file", &path(&not_text)], 2, "bytes.md", "UTF-8");
    check(&home, &["soul", "edit"], 2, "empty", "nothing was changed");
    check(&home, &["history", "--since", "yesterday", "x"], 2, "yesterday", "2026-11-05T00:00:00Z");
    check(&home, &["history"], 2, "nothing to look for", "history list");
}

#[test]
fn a_damaged_database_is_named_and_stays_where_it_is() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 3] = [
        ("header", |bytes| bytes[..16].copy_from_slice(b"SQLite formatted")),
        ("garbage", |bytes| *bytes = b"this is no database, whatever its name says. ".repeat(99)),
        ("pages", |bytes| bytes[4096..].fill(0xA5)),
    ];
    for (what, damage) in damages {
        let home = Home::new();
        home.good(&["init"]);
        home.pipe(&["soul", "edit"], "You are whole.");
        let database = home.path().join("klbr.db");
        let mut bytes = std::fs::read(&database).unwrap();
        damage(&mut bytes);
        std::fs::write(&database, &bytes).unwrap();
        for verb in ["status", "inbox", "events"] {
            let ended = home.run(&[verb]);
            assert_eq!(ended.code, Some(3), "{what}: {verb}: {ended:?}");
            assert!(ended.err.contains(database.to_str().unwrap()), "{what}: {verb}: {}", ended.err);
            assert!(ended.err.contains("klbr store restore BACKUP"), "{what}: {verb}: {}", ended.err);
            assert!(!ended.err.contains("permissions"), "{what}: {verb}: {}", ended.err);
        }
        assert_eq!(std::fs::read(&database).unwrap(), bytes, "{what}");
    }
}

#[test]
fn a_completion_script_and_the_version_need_no_home() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.good(&["completions", shell]).contains("effects"), "{shell}");
    }
    assert_eq!(home.good(&["--version"]), concat!("klbr ", env!("CARGO_PKG_VERSION"), "\n"));
}
