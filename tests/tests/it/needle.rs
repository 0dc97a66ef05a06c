//! Nothing is lost: what was said early is found, to the byte, after ten summaries, by an agent with its own tools.

use std::time::Duration;

use async_trait::async_trait;
use klbr_core::action::{Class, Outcome};
use klbr_core::config::Config;
use klbr_core::event::Control;
use klbr_core::model::Message;
use klbr_core::runtime::tool::{CallContext, Tool};
use klbr_core::runtime::{AgentBuilder, RunningAgent, Updates};
use klbr_core::testkit::{Scripted, ScriptedModel};
use klbr_core::update::Happening;
use klbr_store::{Access, Durability, Options, SqliteStore};
use serde_json::json;

const SEEDS: u64 = 50;
const SUMMARIES: u64 = 10;
const WATCHDOG: Duration = Duration::from_secs(60);
const ENDS: [(&str, &str); 2] =
    [("local_send", r#"{"content":"ok"}"#), ("wait_and_continue", r#"{"seconds":60}"#)];

/// Two needles: one is said, the other stands in the middle of a result that is shown without its middle.
struct Needles {
    said: String,
    kept: String,
    result: String,
}

impl Needles {
    fn of(rng: &mut fastrand::Rng) -> Self {
        let said =
            format!("The vault of Łódź\topens\r\nwith {}-{} ✓, nothing else.", rng.u32(..), rng.u32(..));
        let kept = format!("ledger row {:08x}\u{feff} = “{}”", rng.u32(..), rng.u64(..));
        let lines = |rng: &mut fastrand::Rng, count| prose(rng, count).replace(". ", ".\n");
        let result = format!("{}\n{kept}\n{}", lines(rng, 420), lines(rng, 420));
        Needles { said, kept, result }
    }
}

fn prose(rng: &mut fastrand::Rng, sentences: usize) -> String {
    const WORDS: [&str; 12] = [
        "vault", "ledger", "opens", "window", "the", "nothing", "river", "quietly", "row", "Grace", "with",
        "noon",
    ];
    let sentence = |rng: &mut fastrand::Rng| {
        let words: Vec<&str> = (0..6).map(|_| WORDS[rng.usize(..WORDS.len())]).collect();
        format!("{} {}. ", words.join(" "), rng.u16(..))
    };
    (0..sentences).map(|_| sentence(rng)).collect()
}

/// Answers with a long text.
struct Look(String);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[async_trait]
impl Tool for Look {
    type Arguments = Nothing;
    const NAME: &'static str = "look";
    const DESCRIPTION: &'static str = "Looks.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, _: CallContext, _: Nothing) -> Outcome {
        Outcome::confirmed(self.0.as_str())
    }
}

/// An agent whose model does as the test says.
struct Session {
    agent: RunningAgent,
    model: ScriptedModel,
    updates: Updates,
    said: u64,
    asked: usize,
}

impl Session {
    async fn happens(&mut self, is_it: impl Fn(&Happening) -> bool) {
        let find = async {
            while !is_it(&self.updates.next().await.unwrap().expect("the agent lives").happening) {}
        };
        tokio::time::timeout(WATCHDOG, find).await.expect("it happens");
    }

    /// A turn: what is said, what the model calls first, and then its end.
    async fn turn(&mut self, say: &str, calls: &[(&str, &str)]) {
        if !calls.is_empty() {
            self.model.then(Scripted::calls(calls));
            self.asked += 1;
        }
        self.model.then(Scripted::calls(&ENDS));
        self.asked += 1;
        self.said += 1;
        self.agent.handle().say(&format!("say:{}", self.said), say).await.unwrap();
        self.happens(|happening| matches!(happening, Happening::Waiting { .. })).await;
    }

    async fn compact(&mut self) {
        self.model.then(Scripted::text("They talked about the weather."));
        self.asked += 1;
        self.agent.handle().control(&format!("compact:{}", self.said), Control::Compact).await.unwrap();
        self.happens(|happening| matches!(happening, Happening::Compacted { .. })).await;
    }

    /// Has the model call something, and reads the result as the model does.
    async fn call(&mut self, name: &str, arguments: serde_json::Value) -> String {
        self.turn("go on", &[(name, &arguments.to_string())]).await;
        let requests = self.model.requests(self.asked).await;
        let result = requests.last().unwrap().messages.iter().rev().find_map(|message| match message {
            Message::Tool { text, .. } => Some(text.to_string()),
            _ => None,
        });
        let result = result.expect("a result");
        result.split_once('\n').expect("a bracket").1.to_owned()
    }

    /// Every message that a summary stands for, put together from as many pages as it takes.
    async fn expanded(&mut self, summary: u64) -> Vec<String> {
        let (mut message, mut offset) = (1_usize, 0_usize);
        let mut messages: Vec<String> = Vec::new();
        loop {
            let query =
                json!({ "summary": summary, "message": message, "offset": offset, "max_tokens": 5_000 });
            let page = self.call("history_expand", query).await;
            assert!(!page.contains("the history was damaged"), "{page}");
            let (body, next) = match page.rsplit_once("\n--- to go on: message ") {
                Some((body, next)) => (body.to_owned(), Some(next.to_owned())),
                None => (page, None),
            };
            for part in body.split("\n--- message ").skip(1) {
                let (head, text) = part.split_once(" ---\n").unwrap();
                let number: usize = head.split(',').next().unwrap().parse().unwrap();
                messages.resize(messages.len().max(number), String::new());
                messages[number - 1].push_str(text);
            }
            let Some(next) = next else { return messages };
            let (at, rest) = next.split_once(", offset ").unwrap();
            (message, offset) = (at.parse().unwrap(), rest.trim_end_matches(" ---").parse().unwrap());
        }
    }
}

async fn seed(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let needles = Needles::of(&mut rng);
    let home = klbr_tests::folder("klbr-needle").unwrap();
    let options = Options { durability: Durability::ProcessEnd, access: Access::Write };
    let store = SqliteStore::open(&home.join("klbr.db"), options).unwrap();
    let model = ScriptedModel::new([]);
    let mut config = Config::new("ada".parse().unwrap(), "m");
    // Summaries come when the test asks for them, and not beside its script.
    config.context_tokens = 10_000_000;
    let builder = AgentBuilder::new(config, store, model.clone()).tool(Look(needles.result.clone()));
    let agent = builder.start().await.unwrap();
    let updates = agent.handle().updates(None).await.unwrap();
    let mut session = Session { agent, model, updates, said: 0, asked: 0 };

    session.turn(&needles.said, &[]).await;
    session.turn("look around", &[("look", "{}")]).await;
    let shown = session.model.requests(session.asked).await;
    let Some(Message::Tool { text, .. }) = shown.last().unwrap().messages.last() else { panic!("no result") };
    assert!(!text.contains(&needles.kept), "the middle is shown: {text}");
    let id = text.split_once("full output ").unwrap().1.split_once(']').unwrap().0.to_owned();
    for _ in 0..SUMMARIES {
        for _ in 0..rng.usize(1..4) {
            let text = prose(&mut rng, 12);
            session.turn(&text, &[]).await;
        }
        session.compact().await;
    }
    session.turn("what do you still know?", &[]).await;
    let requests = session.model.requests(session.asked).await;
    let now = serde_json::to_string(&requests.last().unwrap().messages).unwrap();
    assert!(!now.contains("Łódź") && !now.contains("ledger row"), "seed {seed}: still in the context");

    // By what one would look for, among much that looks alike.
    let found = session.call("history_search", json!({ "text": "vault Łódź opens" })).await;
    let number = needles.said.split("with ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(found.lines().next().unwrap().contains("Łódź") && found.contains(number), "seed {seed}: {found}");
    let code = needles.kept.split(' ').nth(2).unwrap().trim_end_matches('\u{feff}');
    let found = session.call("history_search", json!({ "text": code })).await;
    assert!(found.contains(code), "seed {seed}: {found}");

    // By the chain of summaries, to the byte.
    let messages = session.expanded(1).await;
    assert!(messages.iter().any(|message| message.contains(&needles.said)), "seed {seed}: {messages:?}");
    for (sent, expanded) in shown.last().unwrap().messages.iter().zip(&messages) {
        match sent {
            Message::User { text, .. } | Message::Tool { text, .. } => {
                assert!(**text == **expanded, "seed {seed}: {text} became {expanded}");
            }
            Message::Assistant(_) => {}
        }
    }
    for summary in [2, SUMMARIES] {
        let page = session.call("history_expand", json!({ "summary": summary })).await;
        let chain = format!("they begin with summary {}.", summary - 1);
        assert!(page.contains(&chain), "seed {seed}: {page}");
    }

    // By its id, to the byte.
    let (mut recalled, mut offset) = (String::new(), 1);
    while recalled.len() < needles.result.len() {
        let window = session.call("recall", json!({ "id": id, "offset": offset, "limit": 300 })).await;
        if offset > 1 {
            recalled.push('\n');
        }
        offset += 300;
        recalled.push_str(&window);
    }
    assert!(
        recalled == needles.result && recalled.contains(&needles.kept),
        "seed {seed}: recalled {recalled}"
    );

    let unknown = session.call("history_expand", json!({ "summary": SUMMARIES + 1 })).await;
    assert!(unknown.contains("There is no summary 11"), "{unknown}");
    session.agent.shutdown().await;
    // A folder that stays behind does no harm.
    let _ = std::fs::remove_dir_all(home);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_needle_is_found_to_the_byte_after_ten_summaries() {
    for first in (0..SEEDS).step_by(10) {
        let lives = (first..SEEDS.min(first + 10)).map(|n| tokio::spawn(seed(n)));
        for life in lives.collect::<Vec<_>>() {
            life.await.unwrap();
        }
    }
}
