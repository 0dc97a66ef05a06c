//! Files that are not what they should be: never replaced, always said.

use std::path::{Path, PathBuf};

use klbr_core::ids::Seq;
use klbr_core::runtime::store::{Store, StoreError};
use klbr_core::testkit::store_suite::fixtures::Script;
use klbr_store::{Access, OpenError, Options, SqliteStore};
use rusqlite::Connection;

use crate::disk::{QUICK, live, open};

async fn closed(path: &Path) {
    let store = open(path);
    live(&store).await;
    store.close().await.unwrap();
}

fn refused(path: &Path) -> OpenError {
    match SqliteStore::open(path, QUICK) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_and_nothing_takes_its_place() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 3] = [
        ("header", |bytes| bytes[..16].copy_from_slice(b"SQLite formatted")),
        ("first page", |bytes| bytes[100..900].fill(0xA5)),
        ("garbage", |bytes| *bytes = b"this is no database, whatever its name says. ".repeat(99)),
    ];
    for (what, damage) in damages {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("klbr.db");
        closed(&path).await;
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        let reading = SqliteStore::open(&path, Options { access: Access::Read, ..QUICK }).err();
        assert!(matches!(&reading, Some(OpenError::Unsound { .. })), "{what}: {reading:?}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{what}: whoever only reads leaves it where it is");
        let error = refused(&path);
        let OpenError::Damaged { aside, .. } = &error else { panic!("{what}: {error:?}") };
        assert!(aside.to_str().unwrap().contains("klbr.db.damaged-2"), "{}", aside.display());
        assert_eq!(std::fs::read(aside).unwrap(), bytes, "{what}: it is kept as it was");
        assert!(!path.exists());
        let again = refused(&path);
        assert!(matches!(again, OpenError::SetAside { .. }), "{what}: {again}");
        assert!(!path.exists(), "{what}: no empty store takes its place");
        std::fs::rename(aside, home.path().join("elsewhere")).unwrap();
        drop(open(&path));
    }
}

#[tokio::test]
async fn damage_deep_inside_is_found_after_a_kill_and_by_the_check() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    closed(&path).await;
    let mut bytes = std::fs::read(&path).unwrap();
    let pages = bytes.len() / 4096;
    for page in 2..pages {
        bytes[page * 4096..page * 4096 + 64].fill(0xA5);
    }
    std::fs::write(&path, &bytes).unwrap();
    let report = klbr_store::upkeep::check(&path);
    assert!(report.is_err() || !report.unwrap().faults.is_empty());
    // A log that was left behind is the sign of a kill.
    std::fs::write(PathBuf::from(format!("{}-wal", path.display())), [0; 32]).unwrap();
    assert!(matches!(refused(&path), OpenError::Damaged { .. }));
}

#[tokio::test]
async fn foreign_and_newer_files_are_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert!(matches!(refused(&path), OpenError::Foreign { .. }));
    assert_eq!(std::fs::read(&path).unwrap(), bytes);

    let path = home.path().join("newer.db");
    closed(&path).await;
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 9).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let error = refused(&path);
    assert!(
        error.to_string().contains("has schema 9, this release knows up to 2: use the newer release"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert!(matches!(refused(home.path()), OpenError::Unavailable { .. }));
}

#[tokio::test]
async fn a_record_that_cannot_be_read_says_which_and_why() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    let store = open(&path);
    let ada = live(&store).await;
    let beside = Connection::open(&path).unwrap();
    let cases = [
        (
            "UPDATE records SET version = 7 WHERE seq = 2",
            "record 2: a record of kind \"admitted\" has version 7",
        ),
        (
            "UPDATE records SET kind = 'reset' WHERE seq = 3",
            "record 3 is filed as \"reset\" and is \"admitted\"",
        ),
        ("UPDATE records SET body = x'01FFFFFFFF7F00' WHERE seq = 4", "record 4: a body claims"),
        ("UPDATE records SET body = x'' WHERE seq = 5", "record 5: a body is empty"),
        (
            "UPDATE records SET body = x'007B7D' WHERE seq = 10",
            "record 10: a record of kind \"turn_ended\": missing field",
        ),
    ];
    for (sql, _) in cases {
        beside.execute(sql, []).unwrap();
    }
    for (from, (_, why)) in [1, 2, 3, 4, 9].into_iter().zip(cases) {
        let error = store.records(ada.agent(), Seq(from), 1).await.unwrap_err();
        assert!(matches!(&error, StoreError::Damaged(said) if said.contains(why)), "{error}");
    }
    assert!(store.load(Script::new("ada").agent()).await.is_err(), "half a life is none");
    let faults = klbr_store::upkeep::check(&path).unwrap().faults;
    for (_, why) in cases {
        assert!(faults.iter().any(|fault| fault.contains(why)), "{why} not in {faults:#?}");
    }
}
