//! How the file grows: with what is new, not with what is said again.

use std::path::Path;

use klbr_core::hash::Hash;
use klbr_core::ids::{Epoch, Generation, StepId, TurnId};
use klbr_core::model::Parameters;
use klbr_core::record::Record;
use klbr_core::runtime::store::{Checkpoint, Search, Store};
use klbr_core::testkit::store_suite::fixtures::Script;
use klbr_store::SqliteStore;

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

/// A conversation that goes on, with the state that an agent folds it into.
struct Talk {
    store: SqliteStore,
    script: Script,
    prose: Prose,
    state: Vec<u8>,
    turn: u64,
}

impl Talk {
    /// Text that was never said before.
    fn fresh(&mut self, bytes: usize) -> String {
        let text = self.prose.text(bytes);
        self.state.extend_from_slice(text.as_bytes());
        text
    }

    async fn commit(&mut self) {
        self.store.commit(self.script.take()).await.unwrap();
    }

    /// A message, a file that is read, an answer: two requests to the model.
    async fn exchange(&mut self, file: usize) {
        self.turn += 1;
        let said = self.fresh(600);
        let events = [self.script.admit("discord", "c1", "Grace", &said)];
        self.commit().await;
        self.script.frame(&events, &said);
        for call in ["read", "discord_send"] {
            let step = StepId { turn: TurnId(self.turn), number: 1 };
            self.script.record(Record::StepRequested {
                step,
                generation: Generation(1),
                messages: self.turn as usize,
                chain: Hash::of(&self.turn.to_le_bytes()),
                model: "model".into(),
                parameters: Parameters::default(),
                epoch: Epoch(1),
                tokens: 200_000,
                dropped: None,
            });
            self.commit().await;
            let scratch = self.fresh(200);
            let arguments = match call {
                "read" => r#"{"path":"src/lib.rs"}"#.to_owned(),
                _ => serde_json::json!({ "text": self.fresh(400) }).to_string(),
            };
            let step = self.script.reply(&scratch, call, &arguments);
            self.script.intend(step, call, &arguments);
            self.script.record(Record::Attempted { action: step.action(1), number: 1 });
            self.commit().await;
            let (full, said) = match call {
                "read" => (self.fresh(file), None),
                _ => ("sent".to_owned(), Some(&*arguments)),
            };
            self.script.settle(step, self.turn * 2 + u64::from(said.is_some()), &full, said);
            self.commit().await;
        }
        self.script.end_turn(&[]);
        self.commit().await;
    }

    async fn checkpoint(&self) {
        let seq = self.store.last(self.script.agent()).await.unwrap();
        let checkpoint = Checkpoint { seq, bytes: self.state.clone() };
        self.store.checkpoint(self.script.agent(), checkpoint).await.unwrap();
    }

    /// 100 requests, with a checkpoint after every twenty; answers with the bytes that are new, and the bytes that
    /// the file has grown by.
    async fn hundred_requests(&mut self, path: &Path, file: usize) -> (usize, usize) {
        let before = (self.state.len(), self.size(path).await);
        for number in 1..=50 {
            self.exchange(file).await;
            if number % 10 == 0 {
                self.checkpoint().await;
            }
        }
        (self.state.len() - before.0, self.size(path).await - before.1)
    }

    /// The size of the file, with everything indexed and the log copied.
    async fn size(&self, path: &Path) -> usize {
        let find = Search { text: "absent".into(), limit: 1, ..Search::default() };
        self.store.search(self.script.agent(), find).await.unwrap();
        let beside = rusqlite::Connection::open(path).unwrap();
        beside.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        std::fs::metadata(path).unwrap().len() as usize
    }
}

#[tokio::test]
async fn the_file_grows_by_at_most_twice_what_is_new() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("klbr.db");
    let script = Script::new("ada");
    let mut talk = Talk { store: open(&path), script, prose: Prose(7), state: Vec::new(), turn: 0 };
    // The first hundred make a conversation of about 200,000 tokens, the second go on in it.
    for file in [14_600, 5_000] {
        let (new, grown) = talk.hundred_requests(&path, file).await;
        let ratio = grown as f64 / new as f64;
        println!("100 requests: {new} bytes said, {grown} bytes kept, ratio {ratio:.2}");
        assert!(ratio <= 2.0, "{grown} bytes for {new} new ones");
    }
    let kept = talk.store.load(talk.script.agent()).await.unwrap().checkpoint;
    assert_eq!(kept.map(|kept| kept.bytes), Some(talk.state));
}
