//! What a daemon needs while it lives: memory, a restart with much that waits, room on the disk.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::rig::{Rig, WATCHDOG, always, wait};
use super::{Bar, BenchError, Figure, Line, Plan};
use crate::clock::Stamp;
use crate::process::Signal;

/// How many events wait at a restart.
const WAITING: usize = 10_000;

/// The pause between two questions to a daemon that starts.
const PACE: Duration = Duration::from_millis(5);

/// How many turns a soak's conversation has before it is emptied.
const CONVERSATION: usize = 50;

pub(super) async fn memory(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let answer = json!({"call": {"name": "local_send", "arguments": {"content": "Yes."}}});
    let mut rig = Rig::start(plan, always(json!([answer, wait()]))).await?;
    let pid = rig.daemon.running.pid();
    let mut said = 0;
    exchange(&mut rig, &mut said, 1).await?;
    let idle = resident(pid)?;
    soak(&mut rig, &mut said, plan.runs).await?;
    let warm = resident(pid)?;
    soak(&mut rig, &mut said, plan.runs * 3).await?;
    let soaked = resident(pid)?;
    let mb = |kib: u64| kib as f64 / 1024.0;
    let line = |what: &str, method: String, n, figure| Line {
        row: "rss",
        what: what.to_owned(),
        method,
        n,
        figures: vec![figure],
    };
    Ok(vec![
        line(
            "the idle daemon",
            "VmRSS in /proc, waiting after one turn".to_owned(),
            1,
            Figure::plain("rss", mb(idle), "MB").against(Bar::AtMost(20.0)),
        ),
        line(
            "growth over a soak",
            format!(
                "VmRSS after {} turns less VmRSS after {}; the conversation is emptied every {CONVERSATION} turns",
                plan.runs * 4 + 1,
                plan.runs + 1
            ),
            plan.runs * 3,
            Figure::plain("growth", mb(soaked) - mb(warm), "MB").against(Bar::AtMost(2.0)),
        ),
    ])
}

/// So many turns in conversations of bounded length.
async fn soak(rig: &mut Rig, said: &mut usize, count: usize) -> Result<(), BenchError> {
    for begun in (0..count).step_by(CONVERSATION) {
        exchange(rig, said, CONVERSATION.min(count - begun)).await?;
        rig.api().command(klbr_server::api::path::RESET).await?;
    }
    Ok(())
}

async fn exchange(rig: &mut Rig, said: &mut usize, count: usize) -> Result<(), BenchError> {
    for _ in 0..count {
        *said += 1;
        rig.say(&format!("Is number {said} all right?")).await?;
        rig.is_asked().await?;
        rig.waits().await?;
        rig.forget().await?;
    }
    Ok(())
}

/// The resident memory of a process, in KiB.
pub(super) fn resident(pid: u32) -> Result<u64, BenchError> {
    told(pid, "VmRSS:")
}

/// The most that was resident of a process so far, in KiB.
pub(super) fn peak(pid: u32) -> Result<u64, BenchError> {
    told(pid, "VmHWM:")
}

fn told(pid: u32, name: &str) -> Result<u64, BenchError> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kib.ok_or_else(|| BenchError::Absent(format!("/proc/{pid}/status tells no {name}")))
}

pub(super) async fn restart(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let mut rig = Rig::start(plan, always(json!(["stall"]))).await?;
    rig.say("begin").await?;
    super::admission::fill(&rig, WAITING).await?;
    let (mut ready, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.div_ceil(20) {
        let begun = rig.again(plan).await?;
        loop {
            let asked = Instant::now();
            let status = rig.api().status().await?;
            answers.push(asked.elapsed());
            if status.state == klbr_server::api::State::Ready {
                break;
            }
            // A client that asks without a pause would take one of the two cores.
            tokio::time::sleep(PACE).await;
        }
        ready.push(Stamp::now().since(begun));
        let ledger = rig.api().ledger().await?;
        if ledger.admitted != WAITING as u64 + 1 {
            return Err(BenchError::Absent(format!("after the restart the ledger is {ledger}")));
        }
    }
    let mut control = super::spread(&answers, None, None);
    for figure in &mut control {
        figure.name = format!("{} of a status", figure.name);
    }
    control[2].bar = Some(Bar::AtMost(100.0));
    let mut figures = super::spread(&ready, Some(1_000.0), None);
    figures.extend(control);
    let method = "from before the start to a status that says ready, the one before killed; statuses asked 5 ms after one another";
    Ok(vec![Line {
        row: "restart",
        what: format!("with {WAITING} waiting events"),
        method: format!("{method}: {}", answers.len()),
        n: ready.len(),
        figures,
    }])
}

pub(super) async fn growth(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let answer = json!({"call": {"name": "local_send", "arguments": {"content": "Noted, thank you."}}});
    let mut rig = Rig::start(plan, always(json!([answer, wait()]))).await?;
    let mut prose = Prose(fastrand::Rng::with_seed(7));
    // A hundred messages of this size are a conversation of about 200,000 tokens.
    let before = (talk(&mut rig, &mut prose, 100, 8_000).await?, size(plan, &mut rig).await?);
    let new = talk(&mut rig, &mut prose, 100, 4_000).await?;
    let grown = size(plan, &mut rig).await? - before.1;
    let ratio = |bytes: u64, new: u64| bytes as f64 / new as f64;
    Ok(vec![Line {
        row: "growth",
        what: "the database over 100 calls of a 200k-token conversation".to_owned(),
        method: "bytes of klbr.db that came beside the bytes that were said, after an orderly end; indexes included"
            .to_owned(),
        n: 100,
        figures: vec![
            Figure::plain("ratio", ratio(grown, new), "×").against(Bar::AtMost(2.0)),
            Figure::plain("of the first 100", ratio(before.1, before.0), "×"),
            Figure::plain("said", new as f64, "bytes"),
            Figure::plain("grown", grown as f64, "bytes"),
        ],
    }])
}

/// Says this many messages of about this size; how many bytes that was, with the answers.
async fn talk(rig: &mut Rig, prose: &mut Prose, count: usize, bytes: usize) -> Result<u64, BenchError> {
    let mut said = 0;
    for _ in 0..count {
        let text = prose.text(bytes);
        said += text.len() + "Noted, thank you.".len();
        rig.say(&text).await?;
        rig.is_asked().await?;
        rig.waits().await?;
        rig.forget().await?;
    }
    Ok(said as u64)
}

/// The size of the database once everything is indexed and the daemon has ended; another one is started.
async fn size(plan: &Plan, rig: &mut Rig) -> Result<u64, BenchError> {
    // The index catches up when something is looked for.
    rig.api().find("absent words").await?;
    rig.daemon.running.signal(Signal::Terminate)?;
    rig.daemon.running.wait(Duration::from_secs(10)).await?;
    let path = rig.dir.join("home/klbr.db");
    let log = std::fs::metadata(beside(&path)).map_or(0, |log| log.len());
    let size = std::fs::metadata(&path)?.len() + log;
    rig.again(plan).await?;
    rig.api().ready(WATCHDOG).await?;
    Ok(size)
}

fn beside(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Text that is neither random nor repetitive: some words are common, most are rare.
struct Prose(fastrand::Rng);

impl Prose {
    fn text(&mut self, bytes: usize) -> String {
        const SYLLABLES: [&str; 16] = [
            "ba", "con", "de", "er", "fi", "ga", "in", "ka", "lo", "men", "or", "qui", "sta", "ti", "un",
            "vi",
        ];
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            let share = self.0.usize(..1_000);
            let mut word = share * share / 250;
            loop {
                text.push_str(SYLLABLES[word % SYLLABLES.len()]);
                word /= SYLLABLES.len();
                if word == 0 {
                    break;
                }
            }
            text.push(if self.0.u8(..12) == 0 { '\n' } else { ' ' });
        }
        text
    }
}
