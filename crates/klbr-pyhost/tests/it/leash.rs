//! A host that is killed leaves no Python behind, not even in the midst of C code that holds the interpreter.

use klbr_core::ids::Epoch;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use klbr_core::policy::Slot;
use klbr_core::runtime::policy::Policy as _;

use crate::support::*;

/// Tells the test below that it is to be the host.
const HOST: &str = "KLBR_TEST_LEASHED_HOST";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_that_is_killed() {
    if std::env::var_os(HOST).is_none() {
        return;
    }
    let Some(world) = World::new() else { return };
    let code = "import itertools, os\ndef f(q):\n    if os.fork() == 0:\n        while True: pass\n    open('begun', 'w').close()\n    sum(itertools.repeat(0))\n";
    let policy = world.owner(Slot::Wake, code, WATCHDOG);
    let pid = ready(&policy).await.pid;
    let begun = world.path().join("begun");
    let said = async {
        observed(|| begun.exists().then_some(())).await;
        println!("worker {pid}");
    };
    let _ = tokio::join!(policy.decide(Epoch(1), wake()), said);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_host_takes_its_workers_with_it() {
    if python().is_none() {
        return;
    }
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leash::the_host_that_is_killed", "--nocapture"])
        .env(HOST, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let mut pids = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("worker ")?.parse().ok());
    let worker: u32 = pids.next().expect("the host says which its worker is");
    let group = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().to_owned();
        fields.split_whitespace().nth(2).and_then(|group| group.parse::<u32>().ok()) == Some(worker)
    };
    let all = || {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| group(pid) && lives(*pid)).count()
    };
    assert_eq!(all(), 2, "the worker and its copy");
    host.kill().unwrap();
    host.wait().unwrap();
    tokio::time::timeout(Duration::from_secs(10), observed(|| (all() == 0).then_some(()))).await.unwrap();
}
