//! A daemon on a home of its own, with a model server and a watch over what that sees.

use std::path::PathBuf;
use std::time::Duration;

use klbr_core::status::Activity;
use klbr_server::api::AgentStatus;
use serde_json::{Value, json};

use super::{BenchError, Plan};
use crate::clock::Stamp;
use crate::daemon::{Api, Daemon, Klbrd};
use crate::fake_model::{Event, FakeModel, What};

/// How long anything may take before a measurement fails.
pub(super) const WATCHDOG: Duration = Duration::from_secs(30);

/// Everything that a measurement needs. Dropping it ends the processes and removes the home.
pub(super) struct Rig {
    pub(super) model: FakeModel,
    pub(super) daemon: Daemon,
    pub(super) dir: PathBuf,
    said: u64,
    seen: u64,
}

impl Rig {
    /// Starts both; the model answers by these rules.
    pub(super) async fn start(plan: &Plan, rules: Value) -> Result<Rig, BenchError> {
        Rig::start_as(plan, rules, |klbrd| klbrd).await
    }

    /// Starts both; the daemon has these settings beside its own.
    pub(super) async fn start_as(
        plan: &Plan,
        rules: Value,
        set: impl FnOnce(Klbrd) -> Klbrd,
    ) -> Result<Rig, BenchError> {
        let dir = crate::folder("klbr-bench")?;
        let model = FakeModel::scripted(&script(rules)).await?;
        let klbrd = Klbrd::on(&dir.join("home"), plan.folder.as_deref())?.model(&model.ready().base);
        let daemon = set(klbrd.with_processes()?).start().await?;
        daemon.api.ready(WATCHDOG).await?;
        Ok(Rig { model, daemon, dir, said: 0, seen: 0 })
    }

    pub(super) fn api(&self) -> &Api {
        &self.daemon.api
    }

    /// Kills the daemon and starts another on the same home; when it was about to be started.
    pub(super) async fn again(&mut self, plan: &Plan) -> Result<Stamp, BenchError> {
        let klbrd = Klbrd::on(&self.dir.join("home"), plan.folder.as_deref())?;
        let klbrd = klbrd.model(&self.model.ready().base);
        self.daemon.running.kill().await?;
        let begun = Stamp::now();
        self.daemon = klbrd.start().await?;
        Ok(begun)
    }

    /// Says something as the operator; when it was about to be sent, and when it was acknowledged.
    pub(super) async fn say(&mut self, text: &str) -> Result<(Stamp, Stamp), BenchError> {
        self.said += 1;
        let key = format!("said-{}", self.said);
        let begun = Stamp::now();
        self.daemon.api.say(&key, text).await?;
        Ok((begun, Stamp::now()))
    }

    /// Waits for the next thing that the model server sees and that is wanted.
    pub(super) async fn sees(
        &mut self,
        what: &str,
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Event, BenchError> {
        let event = self.model.control().wait_event(what, self.seen, WATCHDOG, wanted).await?;
        self.seen = event.seq;
        Ok(event)
    }

    /// Waits for the next chat request.
    pub(super) async fn is_asked(&mut self) -> Result<Event, BenchError> {
        self.sees("a request", is_chat).await
    }

    /// Waits for the next chat request and until some of its answer is written; the request's number.
    pub(super) async fn streams(&mut self) -> Result<u64, BenchError> {
        let request = self.is_asked().await?.request;
        self.sees("a stream", |event| event.request == request && matches!(event.what, What::Wrote { .. }))
            .await?;
        request.ok_or_else(|| BenchError::Absent("a request without a number arrived".to_owned()))
    }

    /// Waits until the client of this request is gone; when that was seen. What was seen meanwhile is still to be seen.
    pub(super) async fn drops(&mut self, request: u64) -> Result<Stamp, BenchError> {
        let is_drop =
            |event: &Event| event.request == Some(request) && matches!(event.what, What::Dropped { .. });
        let drop = self.model.control().wait_event("the drop of the stream", self.seen, WATCHDOG, is_drop);
        Ok(drop.await?.at)
    }

    /// Waits until the agent waits; whether a summary is being asked for meanwhile.
    pub(super) async fn waits(&self) -> Result<bool, BenchError> {
        let is_so = |status: &AgentStatus| {
            let activity = status.agent.as_ref().map(|agent| &agent.activity);
            matches!(activity, Some(Activity::Waiting { .. }))
        };
        let status = self.api().until("waiting", WATCHDOG, is_so).await?;
        Ok(status.agent.is_some_and(|agent| agent.compacting))
    }

    /// Forgets what the model server has logged so far.
    pub(super) async fn forget(&self) -> Result<(), BenchError> {
        Ok(self.model.control().clear().await?)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // The home goes with the rig; a daemon that still writes loses nothing that anyone reads.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub(super) fn is_chat(event: &Event) -> bool {
    matches!(&event.what, What::Arrived { path, .. } if path.starts_with("/v1/chat"))
}

/// A script of these rules.
pub(super) fn script(rules: Value) -> Value {
    json!({"model": "m", "context_tokens": 4_000_000, "rules": rules})
}

/// A rule that answers everything with these parts.
pub(super) fn always(parts: Value) -> Value {
    json!([{"answer": reply(parts)}])
}

/// An answer of these parts.
pub(super) fn reply(parts: Value) -> Value {
    json!({"body": {"reply": {"parts": parts}}})
}

/// A call that waits as long as one may.
pub(super) fn wait() -> Value {
    json!({"call": {"name": "wait_and_continue", "arguments": {"seconds": 600}}})
}
