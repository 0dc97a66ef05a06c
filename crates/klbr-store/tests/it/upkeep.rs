//! Check, backup, restore, export, migrations, and the homes of earlier releases.

use std::path::Path;

use klbr_core::ids::Seq;
use klbr_core::record::{Record, Stamped};
use klbr_core::runtime::store::{MemoryChange, Search, Store};
use klbr_core::testkit::store_suite::fixtures::Script;
use klbr_core::time::Timestamp;
use klbr_store::upkeep::{UpkeepError, backup, check, export, restore};
use rusqlite::Connection;

use crate::disk::{live, open};

#[tokio::test]
async fn a_check_reads_everything_and_names_what_is_wrong() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    let store = open(&path);
    let ada = live(&store).await;
    let report = check(&path).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    assert_eq!((&report.agents[0].agent, report.agents[0].records), (ada.agent(), 10));
    assert_eq!(report.agents[0].ledger, store.ledger(ada.agent()).await.unwrap());
    let beside = Connection::open(&path).unwrap();
    let damages = [
        ("DELETE FROM records WHERE seq = 2", "ada: record 2 is missing"),
        ("UPDATE records SET at = 0 WHERE seq = 9", "ada: record 9 is older than the one before it"),
        ("DELETE FROM event_fates WHERE event = 3", "ada: E3 has no fate"),
        ("DELETE FROM event_fates WHERE event = 3", "ada: the ledger does not balance: admitted 5 ≠"),
        ("UPDATE events SET body = x'0000' WHERE event = 4", "ada: the store is damaged: the body of E4"),
        (
            "UPDATE checkpoints SET sum = x'00' WHERE seq = 6",
            "ada: the checkpoint at record 6 cannot be read",
        ),
        ("DELETE FROM call_results", "ada: result 1 of record 9 is not filed"),
    ];
    for (sql, _) in damages {
        beside.execute(sql, []).unwrap();
    }
    let faults = check(&path).unwrap().faults;
    for (_, fault) in damages {
        assert!(faults.iter().any(|found| found.starts_with(fault)), "{fault} not in {faults:#?}");
    }
}

#[tokio::test]
async fn a_backup_is_made_beside_the_writer_and_restored_in_one_step() {
    let home = tempfile::tempdir().unwrap();
    let (path, copy) = (home.path().join("klbr.db"), home.path().join("copy.db"));
    let store = open(&path);
    let mut ada = live(&store).await;
    backup(&path, &copy).unwrap();
    assert!(matches!(backup(&path, &copy), Err(UpkeepError::Exists { .. })));
    ada.record(Record::Reset);
    store.commit(ada.take()).await.unwrap();
    store.close().await.unwrap();
    drop(store);

    let replaced = restore(&copy, &path).unwrap().unwrap();
    assert!(replaced.to_str().unwrap().contains("klbr.db.replaced-2"), "{}", replaced.display());
    let store = open(&path);
    assert_eq!(store.last(ada.agent()).await.unwrap(), Seq(10));
    let search = Search { text: "number".into(), limit: 9, ..Search::default() };
    assert_eq!(store.search(ada.agent(), search).await.unwrap().len(), 5);
    drop(store);
    let old = open(&replaced);
    assert_eq!(old.last(ada.agent()).await.unwrap(), Seq(11));

    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&copy, b"no database").unwrap();
    assert!(restore(&copy, &path).is_err());
    assert!(restore(&home.path().join("absent.db"), &path).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "what cannot be restored changes nothing");
    let fresh = home.path().join("fresh.db");
    assert_eq!(restore(&path, &fresh).unwrap(), None);
    assert_eq!(open(&fresh).last(ada.agent()).await.unwrap(), Seq(10));
}

#[tokio::test]
async fn an_export_is_the_life_as_json_lines() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    let store = open(&path);
    let ada = live(&store).await;
    let mut out = Vec::new();
    assert_eq!(export(&path, ada.agent(), &mut out).unwrap(), 10);
    let lines: Vec<&str> = std::str::from_utf8(&out).unwrap().lines().collect();
    let read: Vec<Stamped> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, store.load(ada.agent()).await.map(|_| read.clone()).unwrap());
    assert_eq!(read, store.records(ada.agent(), Seq(0), 99).await.unwrap());
    assert!(lines[0].contains(r#""body":{"#) && lines[0].contains("message number 0"), "{}", lines[0]);
    let stranger = "nobody".parse().unwrap();
    assert!(export(&path, &stranger, &mut Vec::new()).unwrap_err().to_string().contains("no agent nobody"));
}

/// The home of a release, as SQL, so that a reader of the repository can see what it holds.
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/schema-1.sql");

#[tokio::test]
async fn the_home_of_every_release_is_opened() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    Connection::open(&path).unwrap().execute_batch(&std::fs::read_to_string(FIXTURE).unwrap()).unwrap();
    let store = open(&path);
    let ada = Script::new("ada").agent().clone();
    assert_eq!(store.last(&ada).await.unwrap(), Seq(10));
    let kept = store.load(&ada).await.unwrap();
    assert_eq!(kept.checkpoint.map(|checkpoint| checkpoint.bytes), Some(b"state 6".to_vec()));
    assert_eq!(store.result(&ada, 1).await.unwrap().as_deref(), Some("sent"));
    assert_eq!(&*store.pinned(&ada).await.unwrap()[0].text, "likes tea");
    let search = Search { text: "thinking".into(), limit: 9, ..Search::default() };
    assert_eq!(store.search(&ada, search).await.unwrap().len(), 1);
    assert!(check(&path).unwrap().faults.is_empty());
}

/// Writes the fixture of the release that is being built, when it is asked to by `KLBR_WRITE_FIXTURE`.
#[tokio::test]
async fn the_fixture_is_written_on_demand() {
    if std::env::var_os("KLBR_WRITE_FIXTURE").is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    let store = open(&path);
    let ada = live(&store).await;
    let add = MemoryChange::Add { text: "likes tea".into(), tags: vec!["author:grace".into()], pinned: true };
    store.remember(ada.agent(), "1.1.1", Timestamp(5), add).await.unwrap();
    store.close().await.unwrap();
    std::fs::write(FIXTURE, dump(&path)).unwrap();
}

/// The database as SQL. The index is left out: it is made anew from the records.
fn dump(path: &Path) -> String {
    let conn = Connection::open(path).unwrap();
    let pragma = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    let mut out = format!(
        "PRAGMA application_id = {};\nPRAGMA user_version = {};\n",
        pragma("application_id"),
        pragma("user_version")
    );
    let mut tables =
        conn.prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").unwrap();
    let tables: Vec<(String, String)> = tables
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for (name, sql) in &tables {
        if ["words_", "parts_"].iter().any(|index| name.starts_with(index)) {
            continue;
        }
        out += &format!("{sql};\n");
        if ["words", "parts", "passages", "places"].contains(&&**name) || !sql.starts_with("CREATE TABLE") {
            continue;
        }
        let mut columns = conn.prepare(&format!("SELECT name FROM pragma_table_info('{name}')")).unwrap();
        let columns: Vec<String> =
            columns.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        let quoted: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
        let mut rows = conn.prepare(&format!("SELECT {} FROM {name}", quoted.join(" || ', ' || "))).unwrap();
        for row in rows.query_map([], |row| row.get::<_, String>(0)).unwrap() {
            out += &format!("INSERT INTO {name} ({}) VALUES ({});\n", columns.join(", "), row.unwrap());
        }
    }
    out + "UPDATE agents SET indexed = 0, indexed_bytes = 0;\n"
}
