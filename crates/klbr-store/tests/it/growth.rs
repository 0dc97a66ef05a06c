//! How the file grows: with what is new, not with what is said again.

use klbr_core::ids::{Epoch, Generation, Seq, StepId, TurnId};
use klbr_core::model::Parameters;
use klbr_core::record::Record;
use klbr_core::runtime::store::{Checkpoint, Search, Store};
use klbr_core::testkit::store_suite::fixtures::Script;

use crate::disk::open;

/// Text that is neither random nor repetitive: words by their frequency, as prose and logs have them.
struct Prose(u64);

impl Prose {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn text(&mut self, bytes: usize) -> String {
        const SYLLABLES: [&str; 24] = [
            "ba", "con", "de", "er", "fi", "ga", "her", "in", "jo", "ka", "lo", "men", "ni", "or", "pre",
            "qui", "ra", "sta", "ti", "un", "vi", "wer", "xe", "zo",
        ];
        let mut out = String::with_capacity(bytes + 16);
        while out.len() < bytes {
            // Squaring makes some words common and most of them rare.
            let share = self.next() % 1000;
            let mut word = share * share / 250;
            loop {
                out.push_str(SYLLABLES[(word % 24) as usize]);
                word /= 24;
                if word == 0 {
                    break;
                }
            }
            out.push(if self.next().is_multiple_of(12) { '\n' } else { ' ' });
        }
        out
    }
}

/// One exchange of a conversation; answers with how many bytes of it are new.
async fn exchange(store: &impl Store, ada: &mut Script, prose: &mut Prose, number: u64) -> usize {
    let mut new = 0;
    let mut fresh = |bytes: usize| {
        new += bytes;
        prose.text(bytes)
    };
    let said = fresh(600);
    let events = [ada.admit("discord", "c1", "Grace", &said)];
    store.commit(ada.take()).await.unwrap();
    ada.frame(&events, &said);
    for (call, size) in [("read", 5_000), ("discord_send", 400)] {
        let step = StepId { turn: TurnId(number), number: 1 };
        ada.record(Record::StepRequested {
            step,
            generation: Generation(1),
            messages: number as usize,
            chain: klbr_core::hash::Hash::of(b"chain"),
            model: "model".into(),
            parameters: Parameters::default(),
            epoch: Epoch(1),
            tokens: 200_000,
        });
        store.commit(ada.take()).await.unwrap();
        let arguments = if call == "read" {
            r#"{"path":"src/lib.rs"}"#.to_owned()
        } else {
            serde_json::json!({ "text": fresh(size) }).to_string()
        };
        let step = ada.reply(&fresh(200), call, &arguments);
        ada.intend(step, call, &arguments);
        ada.record(Record::Attempted { action: step.action(1), number: 1 });
        store.commit(ada.take()).await.unwrap();
        let (full, said) =
            if call == "read" { (fresh(size), None) } else { ("sent".into(), Some(&*arguments)) };
        ada.settle(step, number * 2 + u64::from(said.is_some()), &full, said);
        store.commit(ada.take()).await.unwrap();
    }
    ada.end_turn(&[]);
    store.commit(ada.take()).await.unwrap();
    new
}

#[tokio::test]
async fn the_file_grows_by_at_most_twice_what_is_new() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    let store = open(&path);
    let mut ada = Script::new("ada");
    let mut prose = Prose(7);
    let mut state = Vec::new();
    let size = async || {
        let find = Search { text: "absent".into(), limit: 1, ..Search::default() };
        store.search(Script::new("ada").agent(), find).await.unwrap();
        let beside = rusqlite::Connection::open(&path).unwrap();
        beside.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        std::fs::metadata(&path).unwrap().len() as usize
    };
    // A conversation of about 200,000 tokens, with its folded state kept as it grows.
    let mut before = 0;
    while before < 800_000 {
        before += exchange(&store, &mut ada, &mut prose, before as u64).await;
    }
    let checkpoint = async |ada: &Script, state: &mut Vec<u8>, bytes: usize| {
        state.extend(Prose(bytes as u64).text(bytes).into_bytes());
        let seq = store.last(ada.agent()).await.unwrap();
        store.checkpoint(ada.agent(), Checkpoint { seq, bytes: state.clone() }).await.unwrap();
    };
    for _ in 0..2 {
        checkpoint(&ada, &mut state, before / 2).await;
    }
    let start = size().await;
    let mut new = 0;
    for number in 0..50 {
        let bytes = exchange(&store, &mut ada, &mut prose, 1_000_000 + number).await;
        new += bytes;
        if number % 10 == 9 {
            checkpoint(&ada, &mut state, bytes * 10).await;
        }
    }
    let grown = size().await - start;
    let ratio = grown as f64 / new as f64;
    println!(
        "before: {before} bytes said, {start} bytes kept; then {new} bytes said, {grown} bytes kept: {ratio:.2}"
    );
    assert!(ratio <= 2.0, "{grown} bytes for {new} new ones");
    assert_eq!(store.load(ada.agent()).await.unwrap().checkpoint.map(|kept| kept.bytes), Some(state));
    assert!(store.last(ada.agent()).await.unwrap() > Seq(100));
}
