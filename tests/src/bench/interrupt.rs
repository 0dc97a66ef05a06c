//! From an operator's message to the end of what ran, in every state of the daemon; and the early wake of a wait.

use std::time::Duration;

use klbr_core::status::Activity;
use serde_json::{Value, json};

use super::rig::{Rig, WATCHDOG, always, reply, wait};
use super::{BenchError, Line, Plan, spread};
use crate::clock::Stamp;
use crate::proc_tree;

/// The bars: the median and the 99th percentile, in milliseconds.
const P50: f64 = 5.0;
const P99: f64 = 25.0;

/// The times of one state: from the acknowledgement, as the client saw it, and from the sending.
#[derive(Default)]
pub(super) struct Times {
    acknowledged: Vec<Duration>,
    sent: Vec<Duration>,
}

impl Times {
    pub(super) fn add(&mut self, (sent, acknowledged): (Stamp, Stamp), ended: Stamp) {
        self.acknowledged.push(ended.since(acknowledged));
        self.sent.push(ended.since(sent));
    }

    /// The line of a state. What follows the acknowledgement is held against the bar; what follows the sending has the
    /// way there and the durable admission in it, and is held against nothing.
    pub(super) fn line(&self, row: &'static str, state: &str, end: &str, (p50, p99): (f64, f64)) -> Line {
        let mut figures = spread(&self.acknowledged, Some(p50), Some(p99));
        for mut figure in spread(&self.sent, None, None) {
            figure.name = format!("{} since sent", figure.name);
            figures.push(figure);
        }
        let method = format!("from the acknowledgement at the client (0 if before it) to {end}");
        Line { row, what: state.to_owned(), method, n: self.sent.len(), figures }
    }
}

const DROP: &str = "the drop that the model server saw";
const REQUEST: &str = "the next request whole at the model server";

fn endless() -> Value {
    json!([{"endless": {"say": "tok ", "gap_ms": 2, "to": "text"}}])
}

pub(super) async fn measure(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let bars = (P50, P99);
    Ok(vec![
        dropped(plan, always(endless())).await?.line("interrupt", "streaming", DROP, bars),
        dropped(plan, always(json!([{"text": "so far"}, "stall"]))).await?.line(
            "interrupt",
            "stalled stream",
            DROP,
            bars,
        ),
        process(plan).await?.line("interrupt", "process tool running", "the process's end in /proc", bars),
        waiting(plan).await?.line("interrupt", "waiting", REQUEST, bars),
        backing_off(plan).await?.line("interrupt", "backing off", REQUEST, bars),
        compacting(plan).await?.line("interrupt", "compacting", DROP, bars),
    ])
}

/// Each message ends the stream of the one before.
async fn dropped(plan: &Plan, rules: Value) -> Result<Times, BenchError> {
    let mut rig = Rig::start(plan, rules).await?;
    rig.say("begin").await?;
    let mut times = Times::default();
    for _ in 0..plan.runs {
        let request = rig.streams().await?;
        rig.forget().await?;
        let said = rig.say("something else").await?;
        times.add(said, rig.drops(request).await?);
    }
    Ok(times)
}

/// Each message kills the process of the turn before.
async fn process(plan: &Plan) -> Result<Times, BenchError> {
    let mut rig = Rig::start(plan, json!([])).await?;
    let file = rig.dir.join("process");
    let program = crate::process::beside("proc-tree", plan.folder.as_deref())?;
    let command = format!("rm -f '{0}'; exec '{1}' --pids '{0}'", file.display(), program.display());
    let call = json!({"call": {"name": "process", "arguments": {"command": command}}});
    rig.model.control().load(&super::rig::script(always(json!([call])))).await?;
    rig.say("begin").await?;
    let mut times = Times::default();
    for _ in 0..plan.runs {
        let members = crate::proc_tree::grown(&file, WATCHDOG).await.map_err(BenchError::Absent)?;
        let gone = tokio::task::spawn_blocking(move || proc_tree::gone(&members, WATCHDOG));
        let said = rig.say("something else").await?;
        let ended = gone.await.map_err(BenchError::inside)?;
        times.add(said, ended.map_err(|left| BenchError::Absent(format!("survivors: {left:?}")))?);
        rig.forget().await?;
    }
    Ok(times)
}

/// Each message ends a wait.
async fn waiting(plan: &Plan) -> Result<Times, BenchError> {
    let mut rig = Rig::start(plan, always(json!([wait()]))).await?;
    rig.say("begin").await?;
    rig.is_asked().await?;
    let mut times = Times::default();
    for _ in 0..plan.runs {
        rig.waits().await?;
        let said = rig.say("something else").await?;
        times.add(said, rig.is_asked().await?.at);
    }
    Ok(times)
}

/// Each message ends the distance between two tries.
async fn backing_off(plan: &Plan) -> Result<Times, BenchError> {
    let mut rig = Rig::start(plan, json!([{"answer": {"body": {"refuse": {"status": 500}}}}])).await?;
    rig.say("begin").await?;
    rig.is_asked().await?;
    let mut times = Times::default();
    for _ in 0..plan.runs {
        let backs_off =
            |activity: &Activity| matches!(activity, Activity::Sampling { retry_at: Some(_), .. });
        rig.api()
            .until("backing off", WATCHDOG, |status| {
                status.agent.as_ref().is_some_and(|agent| backs_off(&agent.activity))
            })
            .await?;
        let said = rig.say("something else").await?;
        times.add(said, rig.is_asked().await?.at);
    }
    Ok(times)
}

/// Each message ends a request for a summary, which is asked for again after the message's turn.
async fn compacting(plan: &Plan) -> Result<Times, BenchError> {
    let summary = json!({"when": {"last_contains": "<instructions>"}, "answer": reply(endless())});
    let mut rig = Rig::start(plan, json!([summary, {"answer": reply(json!([wait()]))}])).await?;
    // Enough that there is something to summarise.
    for _ in 0..3 {
        rig.say("begin").await?;
        rig.is_asked().await?;
        rig.waits().await?;
    }
    let mut times = Times::default();
    for _ in 0..plan.runs {
        // The daemon asks again by itself a few times, and then only when it is told to.
        if !rig.waits().await? {
            rig.api().command(klbr_server::api::path::COMPACT).await?;
        }
        let arrived = rig
            .sees("the request for a summary", |event| {
                matches!(&event.what, crate::fake_model::What::Arrived { rule: Some(0), .. })
            })
            .await?;
        let request = arrived.request.unwrap_or_default();
        rig.sees("its answer", |event| {
            event.request == Some(request) && matches!(event.what, crate::fake_model::What::Wrote { .. })
        })
        .await?;
        rig.forget().await?;
        let said = rig.say("something else").await?;
        times.add(said, rig.drops(request).await?);
    }
    Ok(times)
}

/// Each directed event from outside ends a wait.
pub(super) async fn wake(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let mut rig = Rig::start(plan, always(json!([wait()]))).await?;
    rig.say("begin").await?;
    rig.is_asked().await?;
    let mut times = Times::default();
    for number in 0..plan.runs {
        rig.waits().await?;
        let begun = Stamp::now();
        rig.api().tell("irc", &format!("msg:{number}"), "directed", "Are you there?").await?;
        let said = (begun, Stamp::now());
        times.add(said, rig.is_asked().await?.at);
    }
    let mut line = times.line("wake", "a directed event ends a wait", REQUEST, (20.0, 20.0));
    line.figures[0].bar = None;
    Ok(vec![line])
}
