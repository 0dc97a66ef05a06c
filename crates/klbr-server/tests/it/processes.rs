//! Processes that the agent starts, and their certain end. Linux: it judges by /proc.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::models::Server;
use crate::support::{Process, Scripted, World, run, until, wait};

/// A tree that is hard to kill: its root and its children ignore SIGTERM, one leads a session of its own,
/// one has lost its parent. Each writes its id into a file of the folder.
fn hard_to_kill(dir: &Path) -> String {
    let script = dir.join("tree.sh");
    let text = r#"
trap '' TERM
mark() { echo $$ > "$DIR/$1.new"; mv "$DIR/$1.new" "$DIR/$1.pid"; }
case "$1" in
  root)
    mark root
    sh "$0" child & setsid sh "$0" session & (setsid sh "$0" orphan &) ; (sh "$0" lost &)
    while :; do sleep 1; done;;
  child) sh "$0" grandchild & mark child; while :; do sleep 1; done;;
  *) mark "$1"; while :; do sleep 1; done;;
esac
"#;
    std::fs::write(&script, text).unwrap();
    format!("DIR='{}' exec sh '{}' root", dir.display(), script.display())
}

const MEMBERS: [&str; 6] = ["root", "child", "grandchild", "session", "orphan", "lost"];

fn pids(dir: &Path) -> Vec<u32> {
    let pid = |name| std::fs::read_to_string(dir.join(format!("{name}.pid"))).ok()?.trim().parse().ok();
    MEMBERS.into_iter().filter_map(pid).collect()
}

fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat[stat.rfind(')').unwrap() + 1..].trim_start().starts_with('Z')
}

async fn all_there(dir: &Path) {
    until("the tree stands", async || pids(dir).len() == MEMBERS.len()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_kills_the_whole_tree() {
    let scripted = Scripted::default();
    let world = World::with(scripted.clone(), |config| config.process_tool = true).await;
    let mut took: Vec<Duration> = Vec::new();
    // More runs are a measurement rather than a test.
    let runs = std::env::var("KLBR_PROCESS_RUNS").map_or(5, |runs| runs.parse().unwrap());
    for n in 0..runs {
        let dir = tempfile::tempdir().unwrap();
        scripted.then(&[run(&hard_to_kill(dir.path()))]);
        world.client.say(&format!("run-{n}"), "Run it").await;
        all_there(dir.path()).await;
        let asked = Instant::now();
        world.client.post("/v1/agents/klbr/interrupt", json!(null)).await;
        let pids = pids(dir.path());
        until("nothing is left", async || !pids.iter().any(|pid| is_alive(*pid))).await;
        took.push(asked.elapsed());
    }
    took.sort_unstable();
    let (median, p99) = (took[took.len() / 2], took[took.len() * 99 / 100]);
    println!(
        "interrupt to an empty tree, {runs} runs: p50 {median:?}, p99 {p99:?}, max {:?}",
        took[took.len() - 1]
    );
    world.running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_shows_its_output_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let line = format!(
        "echo out; echo err >&2; setsid sleep 300 & echo $! > '{}'; echo \"[$KLBR_API_KEY]\"; exit 3",
        pid.display()
    );
    let scripted = Scripted::new(&[&[run(&line)], &[wait(600)]]);
    let world = World::with(scripted, |config| {
        config.process_tool = true;
        config.secret_variables = vec!["KLBR_API_KEY".into()];
    })
    .await;
    let mut events = world.client.events(0).await;
    world.client.say("k", "Run it").await;
    let (_, ended) = events.until("action_ended").await;
    let text = ended["result"].as_str().unwrap();
    assert!(text.contains("out\n[]\n[stderr]\nerr\n[exit status: 3]"), "{text}");
    let pid = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    assert!(!is_alive(pid));
    world.running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tool_is_off_unless_it_is_asked_for() {
    let world = World::start(Scripted::new(&[&[run("true")], &[wait(600)]])).await;
    let mut events = world.client.events(0).await;
    world.client.say("k", "Run it").await;
    let (_, ended) = events.until("action_ended").await;
    assert!(ended["result"].as_str().unwrap().contains("process"), "{ended}");
    assert_ne!(ended["end"]["end"], "confirmed");
    world.running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_end_kills_the_tree_and_a_kill_leaves_it_to_the_next_start() {
    let server = Server::at("127.0.0.1:0".parse().unwrap(), &[]).await;
    for signal in [Signal::TERM, Signal::KILL] {
        let home = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("klbr.toml"), "[tools]\nprocess = true\n").unwrap();
        server.answers(&[run(&hard_to_kill(dir.path()))]);
        let base_url = server.base_url();
        let start = |command: &mut tokio::process::Command| {
            command.args(["--base-url", &base_url, "--model", "late-7b"]);
        };
        let mut daemon = Process::start(home.path(), start).await;
        daemon.ready().await;
        daemon.client.say("k", "Run it").await;
        all_there(dir.path()).await;
        let tree = pids(dir.path());
        let asked = Instant::now();
        daemon.signal(signal);
        let status = daemon.ended().await;
        server.answers(&[wait(600)]);
        if signal == Signal::KILL {
            assert!(tree.iter().all(|pid| is_alive(*pid)), "something else killed them");
            let again = Process::start(home.path(), start).await;
            // Before it listens, nothing is left.
            assert!(!tree.iter().any(|pid| is_alive(*pid)));
            again.ready().await;
            let mut events = again.client.events(0).await;
            let (_, ended) = events.until("action_ended").await;
            assert_eq!(ended["end"]["end"], "unknown", "{ended}");
        } else {
            assert_eq!(status, 0);
            assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
            assert!(!tree.iter().any(|pid| is_alive(*pid)));
        }
    }
}
