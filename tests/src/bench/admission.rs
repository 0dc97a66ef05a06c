//! Durable admissions: many at once on handles and over HTTP, and single ones beside what the disk can do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use klbr_core::config::Config;
use klbr_core::event::{Body, NewEvent, Priority, Source, SourceKind};
use klbr_core::model::{Failure, Request};
use klbr_core::runtime::model::{Model, Reply};
use klbr_core::runtime::{AgentBuilder, AgentHandle};
use klbr_core::testkit::store_suite::load::{percentile, sync_singly};
use klbr_store::{Options, SqliteStore};
use serde_json::json;

use super::rig::{Rig, always};
use super::{Bar, BenchError, Figure, Line, Plan};

/// What one commit of a single event writes, about.
const SYNCED_BYTES: usize = 12 << 10;

/// How many clients admit at once.
const CLIENTS: usize = 256;

/// Never says anything, so that the turn that runs holds what comes after.
struct Silent;

#[async_trait]
impl Model for Silent {
    async fn sample(&self, _: Request) -> Result<Reply, Failure> {
        Ok(futures_util::stream::pending().boxed())
    }
}

fn chatter(number: usize) -> NewEvent {
    let body =
        Body::text(format!("Has anyone looked at build {number} yet? It has been red since this morning."));
    NewEvent::external(
        Source::new(SourceKind::Channel, "irc"),
        format!("msg:{number}"),
        Priority::Ambient,
        body,
    )
    .in_conversation("#builds")
}

pub(super) async fn measure(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let dir = crate::folder("klbr-bench")?;
    let store = SqliteStore::open(&dir.join("klbr.db"), Options::default()).map_err(BenchError::inside)?;
    let config = Config::new("bench".parse().map_err(BenchError::inside)?, "m");
    let agent = AgentBuilder::new(config, store, Silent).start().await.map_err(BenchError::inside)?;
    agent.handle().say("begin", "begin").await.map_err(BenchError::inside)?;
    let singles = (plan.runs * 5).max(100);
    let mut lines = vec![single(&agent.handle().clone(), singles, &dir)?.await?];
    let many = plan.runs * 100;
    let took = together(agent.handle(), singles..singles + many).await?;
    agent.shutdown().await;
    std::fs::remove_dir_all(&dir)?;
    let rate = Figure::plain("rate", many as f64 / took.as_secs_f64(), "events/s");
    lines.push(Line {
        row: "admission",
        what: "together, on handles".to_owned(),
        method: format!("{CLIENTS} tasks admit one event after the other; synchronous=FULL, group commit"),
        n: many,
        figures: vec![rate.against(Bar::AtLeast(5_000.0))],
    });
    lines.push(over_http(plan).await?);
    Ok(lines)
}

/// One event after the other, with bare syncs on the same disk before, between and after.
fn single(
    agent: &AgentHandle,
    singles: usize,
    dir: &std::path::Path,
) -> Result<impl Future<Output = Result<Line, BenchError>>, BenchError> {
    let mut bare = sync_singly(dir, SYNCED_BYTES, singles / 2)?;
    let (agent, dir) = (agent.clone(), dir.to_owned());
    Ok(async move {
        let mut times = Vec::with_capacity(singles);
        for number in 0..singles {
            let begun = Instant::now();
            agent.admit(chatter(number)).await.map_err(BenchError::inside)?;
            times.push(begun.elapsed());
        }
        bare.extend(sync_singly(&dir, SYNCED_BYTES, singles / 2)?);
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let (p99, bare_p99) = (millis(percentile(&times, 99)), millis(percentile(&bare, 99)));
        let mut p99 = Figure::plain("p99", p99, "ms");
        let mut ratio = Figure::plain("ratio of the p99s", p99.value / bare_p99, "×");
        match bare_p99 <= 5.0 {
            true => p99 = p99.against(Bar::AtMost(10.0)),
            // Where the disk itself is slower than that, the ratio says what can be said: no bar names it.
            false => ratio.name += " (the disk is too slow for the bar in ms)",
        }
        let figures = vec![
            Figure::plain("p50", millis(percentile(&times, 50)), "ms"),
            p99,
            Figure::plain("bare p50", millis(percentile(&bare, 50)), "ms"),
            Figure::plain("bare p99", bare_p99, "ms"),
            ratio,
        ];
        let method = format!(
            "one task admits on a handle, each after the acknowledgement of the one before; bare: write and fdatasync \
             of {} KiB on the same disk in the same run",
            SYNCED_BYTES >> 10
        );
        Ok(Line { row: "admission", what: "a single event".to_owned(), method, n: singles, figures })
    })
}

async fn together(agent: &AgentHandle, numbers: std::ops::Range<usize>) -> Result<Duration, BenchError> {
    let begun = Instant::now();
    let admitting = futures_util::stream::iter(numbers).map(|number| agent.admit(chatter(number)));
    let mut admitting = admitting.buffer_unordered(CLIENTS);
    while let Some(admitted) = admitting.next().await {
        admitted.map_err(BenchError::inside)?;
    }
    Ok(begun.elapsed())
}

async fn over_http(plan: &Plan) -> Result<Line, BenchError> {
    let mut rig = Rig::start(plan, always(json!(["stall"]))).await?;
    rig.say("begin").await?;
    let many = plan.runs * 25;
    let begun = Instant::now();
    fill(&rig, many).await?;
    let rate = many as f64 / begun.elapsed().as_secs_f64();
    Ok(Line {
        row: "admission",
        what: "together, over HTTP".to_owned(),
        method: "64 connections post one event after the other; client and daemon share the cores; no bar"
            .to_owned(),
        n: many,
        figures: vec![Figure::plain("rate", rate, "events/s")],
    })
}

/// Admits this many ambient events over HTTP.
pub(super) async fn fill(rig: &Rig, many: usize) -> Result<(), BenchError> {
    let api = Arc::new(rig.api().clone());
    let posting = futures_util::stream::iter(0..many).map(|number| {
        let api = Arc::clone(&api);
        async move {
            api.tell("irc", &format!("msg:{number}"), "ambient", &format!("Build {number} is red.")).await
        }
    });
    let mut posting = posting.buffer_unordered(64);
    while let Some(posted) = posting.next().await {
        posted?;
    }
    Ok(())
}
