//! An interrupt while a decision is pending, with an agent in this process: its hook never answers.

use std::time::Duration;

use async_trait::async_trait;
use klbr_core::config::Config;
use klbr_core::ids::Epoch;
use klbr_core::policy::{Answer, Bindings, HookFailure, Question, Slot};
use klbr_core::runtime::AgentBuilder;
use klbr_core::runtime::policy::Policy;
use klbr_llm::Provider;
use klbr_llm::config::BaseUrl;
use klbr_store::{Options, SqliteStore};
use serde_json::json;

use super::interrupt::Times;
use super::rig::{WATCHDOG, always, is_chat, script};
use super::{BenchError, Line, Plan};
use crate::clock::Stamp;
use crate::fake_model::FakeModel;

/// Owns the review of actions and never comes to a verdict.
struct Undecided {
    asked: tokio::sync::mpsc::UnboundedSender<()>,
}

#[async_trait]
impl Policy for Undecided {
    fn slots(&self) -> Bindings {
        Bindings::from([(Slot::ActionReview, Duration::from_secs(600))])
    }

    async fn decide(&self, _: Epoch, _: Question) -> Result<Answer, HookFailure> {
        // Nobody listens once the measurement is over.
        let _ = self.asked.send(());
        std::future::pending().await
    }
}

pub(super) async fn measure(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let dir = crate::folder("klbr-bench")?;
    let call = json!({"call": {"name": "history_search", "arguments": {"text": "anything"}}});
    let model = FakeModel::scripted(&script(always(json!([call])))).await?;
    let store = SqliteStore::open(&dir.join("klbr.db"), Options::default()).map_err(BenchError::inside)?;
    let base = BaseUrl::parse(&model.ready().base).map_err(BenchError::inside)?;
    let provider = Provider::new(klbr_llm::Config::new(base)).map_err(BenchError::inside)?;
    let mut config = Config::new("bench".parse().map_err(BenchError::inside)?, "m");
    config.context_tokens = 4_000_000;
    let (asked, mut pending) = tokio::sync::mpsc::unbounded_channel();
    let agent = AgentBuilder::new(config, store, provider)
        .policy(Undecided { asked })
        .start()
        .await
        .map_err(BenchError::inside)?;
    agent.handle().say("begin", "begin").await.map_err(BenchError::inside)?;
    let mut seen = model.control().wait_event("a request", 0, WATCHDOG, is_chat).await?.seq;
    let mut times = Times::default();
    for number in 0..plan.runs {
        let is_asked = tokio::time::timeout(WATCHDOG, pending.recv()).await;
        is_asked.map_err(|_| BenchError::Absent("the hook was not asked".to_owned()))?;
        let sent = Stamp::now();
        let key = format!("said-{number}");
        agent.handle().say(&key, "something else").await.map_err(BenchError::inside)?;
        let said = (sent, Stamp::now());
        let request = model.control().wait_event("a request", seen, WATCHDOG, is_chat).await?;
        seen = request.seq;
        times.add(said, request.at);
    }
    agent.shutdown().await;
    std::fs::remove_dir_all(&dir)?;
    let end = "the next request whole at the model server; an agent in the bench's process, whose hook never answers";
    Ok(vec![times.line("interrupt", "a pending decision", end, (5.0, 25.0))])
}
