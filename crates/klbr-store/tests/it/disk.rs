//! What the file holds, seen from beside the store: rows, fences, failures of the disk.

use std::path::Path;

use klbr_core::ids::Seq;
use klbr_core::record::Record;
use klbr_core::runtime::store::{Checkpoint, Search, Store, StoreError};
use klbr_core::testkit::store_suite::fixtures::Script;
use klbr_store::{Access, Durability, Options, SqliteStore};
use rusqlite::Connection;

pub(crate) const QUICK: Options = Options { durability: Durability::ProcessEnd, access: Access::Write };

pub(crate) fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, QUICK).unwrap()
}

/// A life with events in several fates, results, a checkpoint and a memory.
pub(crate) async fn live(store: &SqliteStore) -> Script {
    let mut ada = Script::new("ada");
    let events: Vec<_> =
        (0..5).map(|n| ada.admit("discord", "c1", "Grace", &format!("message number {n}"))).collect();
    ada.frame(&events[..2], "message number 0, message number 1");
    let step = ada.reply("thinking about it", "discord_send", r#"{"text":"hello"}"#);
    ada.intend(step, "discord_send", r#"{"text":"hello"}"#);
    ada.settle(step, 1, "sent", Some(r#"{"text":"hello"}"#));
    ada.end_turn(&[]);
    store.commit(ada.take()).await.unwrap();
    for seq in [3, 6] {
        let checkpoint = Checkpoint { seq: Seq(seq), bytes: format!("state {seq}").into() };
        store.checkpoint(ada.agent(), checkpoint).await.unwrap();
    }
    ada
}

#[tokio::test]
async fn each_term_of_the_ledger_stands_on_its_own_rows() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    for delete in [
        "DELETE FROM event_fates WHERE event = 1",
        "DELETE FROM event_fates WHERE event = 5",
        "DELETE FROM events WHERE event = 3",
    ] {
        let store = open(&path);
        let ada = match store.last(Script::new("ada").agent()).await.unwrap() {
            Seq(0) => live(&store).await,
            _ => Script::new("ada"),
        };
        assert!(store.ledger(ada.agent()).await.unwrap().balances());
        let beside = Connection::open(&path).unwrap();
        beside.execute_batch("BEGIN").unwrap();
        beside.execute(delete, []).unwrap();
        beside.execute_batch("COMMIT").unwrap();
        let ledger = store.ledger(ada.agent()).await.unwrap();
        assert!(!ledger.balances(), "{delete}: {ledger}");
        store.close().await.unwrap();
        drop((store, beside));
        std::fs::remove_file(&path).unwrap();
    }
}

#[tokio::test]
async fn a_second_writer_is_fenced_by_the_numbers() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    let (one, other) = (open(&path), open(&path));
    let mut ada = live(&one).await;
    let mut rival = ada.clone();
    assert_eq!(other.last(ada.agent()).await.unwrap(), Seq(10));
    ada.record(Record::Reset);
    one.commit(ada.take()).await.unwrap();
    rival.record(Record::Recovered);
    let late = other.commit(rival.take()).await;
    assert!(matches!(late, Err(StoreError::Conflict { expected: Seq(12), got: Seq(11) })), "{late:?}");
    ada.record(Record::Recovered);
    other.commit(ada.take()).await.unwrap();
    assert_eq!(one.last(ada.agent()).await.unwrap(), Seq(12));
}

#[tokio::test]
async fn one_refused_commit_takes_no_neighbour_with_it() {
    let home = tempfile::tempdir().unwrap();
    let store = open(&home.path().join("klbr.db"));
    let mut good: Vec<Script> = (0..40).map(|n| Script::new(&format!("good-{n}"))).collect();
    for round in 0..5 {
        let commits: Vec<_> = good
            .iter_mut()
            .enumerate()
            .map(|(n, script)| {
                script.admit("discord", "c1", "Grace", &format!("round {round}"));
                let mut commit = script.take();
                let bad = (n + round) % 7 == 0;
                if bad {
                    // The same records for an agent that has none of those before.
                    commit.agent = format!("bad-{n}-{round}").parse().unwrap();
                    commit.records[0].seq = Seq(99);
                }
                (bad, commit)
            })
            .collect();
        let handed_over = commits.into_iter().map(|(bad, commit)| {
            let store = &store;
            async move { (bad, store.commit(commit.clone()).await, commit) }
        });
        for (bad, answer, mut commit) in futures_util::future::join_all(handed_over).await {
            assert_eq!(answer.is_err(), bad, "{answer:?}");
            if bad {
                let script =
                    &good[commit.agent.as_str().split('-').nth(1).unwrap().parse::<usize>().unwrap()];
                commit.agent = script.agent().clone();
                commit.records[0].seq = Seq(round as u64 + 1);
                store.commit(commit).await.unwrap();
            }
        }
    }
    assert_eq!(store.agents().await.unwrap().len(), 40);
    for script in &good {
        assert_eq!(store.ledger(script.agent()).await.unwrap().waiting, 5);
    }
}

#[tokio::test]
async fn an_unreadable_checkpoint_is_passed_over() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    let store = open(&path);
    let ada = live(&store).await;
    let beside = Connection::open(&path).unwrap();
    let newest =
        |kept: klbr_core::runtime::store::Kept| kept.checkpoint.map(|c| (c.seq.0, kept.records.len()));
    assert_eq!(newest(store.load(ada.agent()).await.unwrap()), Some((6, 4)));
    beside.execute("UPDATE checkpoints SET body = x'00FF' WHERE seq = 6", []).unwrap();
    assert_eq!(newest(store.load(ada.agent()).await.unwrap()), Some((3, 7)));
    beside.execute("UPDATE checkpoints SET sum = x'00' WHERE seq = 3", []).unwrap();
    assert_eq!(newest(store.load(ada.agent()).await.unwrap()), None);
    assert_eq!(store.load(ada.agent()).await.unwrap().records.len(), 10);
}

#[tokio::test]
async fn a_full_disk_keeps_nothing_and_passes() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    // The file system's own limit, met by the log: a small file system in memory would need rights.
    let child = crate::sync::child("disk::full_disk_child", &[("KLBR_STORE_PATH", path.to_str().unwrap())]);
    let limited = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -S -f 2048; exec \"$@\"", "sh"])
        .arg(child.get_program())
        .args(child.get_args())
        .envs(child.get_envs().filter_map(|(key, value)| Some((key, value?))))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&limited.stdout);
    assert!(limited.status.success(), "{said}\n{}", String::from_utf8_lossy(&limited.stderr));
    assert!(said.contains("full: ") && said.contains("usable again"), "{said}");
    let store = open(&path);
    let ada = Script::new("ada");
    assert!(store.ledger(ada.agent()).await.unwrap().balances());
    assert!(klbr_store::upkeep::check(&path).unwrap().faults.is_empty());
}

/// Runs under a limit of the size of files; not a test of its own.
#[tokio::test]
async fn full_disk_child() {
    let Ok(path) = std::env::var("KLBR_STORE_PATH") else { return };
    let store = SqliteStore::open(Path::new(&path), Options::default()).unwrap();
    let mut ada = live(&store).await;
    let before = store.last(ada.agent()).await.unwrap();
    let mut doomed = ada.clone();
    let mut random = 1_u64;
    let noise = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b' ' + (random >> 40) as u8 % 90)
    });
    doomed.admit("discord", "c1", "Grace", &noise.take(3_000_000).collect::<String>());
    let full = store.commit(doomed.take()).await;
    let Err(StoreError::Unavailable(cause)) = full else { panic!("{full:?}") };
    println!("full: {cause}");
    assert_eq!(store.last(ada.agent()).await.unwrap(), before);
    ada.admit("discord", "c1", "Grace", "small enough");
    store.commit(ada.take()).await.unwrap();
    assert_eq!(store.ledger(ada.agent()).await.unwrap().admitted, 6);
    println!("usable again");
}

#[tokio::test]
async fn a_store_that_is_read_only_says_so_and_is_read_beside_its_writer() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    let reading = Options { access: Access::Read, ..Options::default() };
    let absent = SqliteStore::open(&path, reading).err().unwrap();
    assert!(absent.to_string().contains("could not be opened"), "{absent}");
    assert!(!path.exists());
    let store = open(&path);
    let mut ada = live(&store).await;
    let search = Search { text: "thinking".into(), limit: 9, ..Search::default() };
    assert_eq!(store.search(ada.agent(), search.clone()).await.unwrap().len(), 1);
    let reader = SqliteStore::open(&path, reading).unwrap();
    assert_eq!(reader.last(ada.agent()).await.unwrap(), Seq(10));
    assert_eq!(reader.search(ada.agent(), search).await.unwrap().len(), 1);
    ada.record(Record::Reset);
    let refused = reader.commit(ada.clone().take()).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable(why)) if why.to_string().contains("for reading")));
    store.commit(ada.take()).await.unwrap();
    assert_eq!(reader.last(ada.agent()).await.unwrap(), Seq(11));
    reader.close().await.unwrap();
    assert!(reader.last(ada.agent()).await.is_err(), "it is closed");
}

#[tokio::test]
async fn a_closed_store_leaves_one_file_and_refuses() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    let store = open(&path);
    let mut ada = live(&store).await;
    store.close().await.unwrap();
    ada.record(Record::Reset);
    assert!(matches!(store.commit(ada.take()).await, Err(StoreError::Unavailable(_))));
    assert!(store.close().await.is_err(), "once is enough");
    drop(store);
    let left: Vec<_> =
        std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["klbr.db"]);
}

#[tokio::test]
async fn the_index_catches_up_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    drop(open(&path));
    {
        let store = open(&path);
        live(&store).await;
    }
    let beside = Connection::open(&path).unwrap();
    beside.execute("UPDATE agents SET indexed = 0", []).unwrap();
    for sql in
        ["INSERT INTO words (words) VALUES ('delete-all')", "INSERT INTO parts (parts) VALUES ('delete-all')"]
    {
        beside.execute(sql, []).unwrap();
    }
    beside.execute("DELETE FROM passages", []).unwrap();
    drop(beside);
    let store = open(&path);
    let search = Search { text: "message number".into(), limit: 9, ..Search::default() };
    assert_eq!(store.search(Script::new("ada").agent(), search).await.unwrap().len(), 5);
}
