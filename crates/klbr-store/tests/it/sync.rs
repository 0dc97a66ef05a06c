//! The proof that no acknowledgement comes before the sync that covers it: a trace of system calls, judged
//! from outside the process (`C-PRF-1`). A kill proves nothing here, since the page cache survives it.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use klbr_core::runtime::store::Store;
use klbr_core::testkit::store_suite::fixtures::Script;
use klbr_store::{Durability, Options, SqliteStore};

const WRITERS: usize = 4;
const COMMITS: usize = 25;

/// This test binary again, running one of its functions.
pub(crate) fn child(test: &str, env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.envs(env.iter().copied());
    command
}

/// Commits and writes a line for each acknowledgement; not a test of its own.
#[tokio::test]
async fn sync_child() {
    let Ok(home) = std::env::var("KLBR_STORE_SYNC_HOME") else { return };
    let durability = match std::env::var("KLBR_STORE_DURABILITY").as_deref() {
        Ok("process") => Durability::ProcessEnd,
        _ => Durability::PowerCut,
    };
    let home = Path::new(&home);
    let options = Options { durability, ..Options::default() };
    let store = SqliteStore::open(&home.join("klbr.db"), options).unwrap();
    let acks = std::fs::File::create(home.join("acks")).unwrap();
    let lives = (0..WRITERS).map(|writer| {
        let (store, acks) = (&store, &acks);
        async move {
            let mut script = Script::new(&format!("writer-{writer}"));
            for n in 0..COMMITS {
                let mark = format!("mark-{writer}-{n}.");
                script.admit("discord", "c1", "Grace", &mark);
                store.commit(script.take()).await.unwrap();
                let mut acks = acks;
                std::io::Write::write_all(&mut acks, format!("ACK {mark}\n").as_bytes()).unwrap();
            }
        }
    });
    futures_util::future::join_all(lives).await;
    store.close().await.unwrap();
}

/// What the judge found.
struct Verdict {
    acknowledged: usize,
    early: Vec<String>,
}

/// Reads a trace: for each mark, when it was first written to the log, and whether a sync of the log that was
/// begun after that write, and ended well, stands before the acknowledgement. The log is synced once for each
/// transaction, after all of its writes.
fn judge(trace: &str) -> Verdict {
    let mut pending: HashMap<&str, String> = HashMap::new();
    let mut written: HashMap<String, usize> = HashMap::new();
    // The syncs of the log: (line where it was begun, line where it had ended well).
    let mut syncs: Vec<(usize, usize)> = Vec::new();
    let mut begun: HashMap<&str, usize> = HashMap::new();
    let mut verdict = Verdict { acknowledged: 0, early: Vec::new() };
    for (at, line) in trace.lines().enumerate() {
        let (thread, rest) = line.split_once(' ').unwrap_or(("", line));
        let rest = rest.trim_start();
        let call = if let Some(resumed) = rest.strip_prefix("<... ") {
            let Some(first) = pending.remove(thread) else { continue };
            first + resumed.split_once("resumed>").map_or("", |(_, rest)| rest)
        } else if let Some(first) = rest.strip_suffix(" <unfinished ...>") {
            if first.contains("sync(") {
                begun.insert(thread, at);
            }
            // A write counts from its beginning on, an acknowledgement as well.
            note_writes(first, at, &mut written);
            judge_acks(first, at, &written, &syncs, &mut verdict);
            pending.insert(thread, first.to_owned());
            continue;
        } else {
            note_writes(rest, at, &mut written);
            judge_acks(rest, at, &written, &syncs, &mut verdict);
            rest.to_owned()
        };
        let sync = call.starts_with("fdatasync(") || call.starts_with("fsync(");
        if sync && call.contains("klbr.db-wal>") && call.trim_end().ends_with("= 0") {
            syncs.push((begun.remove(thread).unwrap_or(at), at));
        }
    }
    verdict
}

fn note_writes(call: &str, at: usize, written: &mut HashMap<String, usize>) {
    if call.starts_with("pwrite64(") && call.contains("klbr.db-wal>") {
        for mark in marks(call) {
            written.entry(mark).or_insert(at);
        }
    }
}

fn judge_acks(
    call: &str,
    at: usize,
    written: &HashMap<String, usize>,
    syncs: &[(usize, usize)],
    verdict: &mut Verdict,
) {
    if !(call.starts_with("write(") && call.contains("/acks>")) {
        return;
    }
    for mark in marks(call) {
        verdict.acknowledged += 1;
        let covered = written
            .get(&mark)
            .is_some_and(|write| syncs.iter().any(|(begun, ended)| begun > write && *ended < at));
        if !covered {
            verdict.early.push(mark);
        }
    }
}

fn marks(call: &str) -> Vec<String> {
    call.match_indices("mark-")
        .filter_map(|(start, _)| Some(call[start..].split_once('.')?.0.to_owned()))
        .filter(|mark| mark.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'))
        .collect()
}

fn traced(durability: &str) -> Option<Verdict> {
    let home = tempfile::tempdir().unwrap();
    let trace = home.path().join("trace");
    let env =
        [("KLBR_STORE_SYNC_HOME", home.path().to_str().unwrap()), ("KLBR_STORE_DURABILITY", durability)];
    let child = child("sync::sync_child", &env);
    let ran = Command::new("strace")
        .args(["-f", "-y", "-s", "8192", "-e", "trace=pwrite64,write,fdatasync,fsync", "-o"])
        .arg(&trace)
        .arg(child.get_program())
        .args(child.get_args())
        .envs(child.get_envs().filter_map(|(key, value)| Some((key, value?))))
        .output();
    let skip = |why: &str| {
        println!("SKIPPED: the proof that acknowledgements follow their syncs: {why}");
        assert!(std::env::var_os("CI").is_none(), "CI has to have strace: {why}");
        None
    };
    match ran {
        Err(error) => skip(&format!("strace could not be run: {error}")),
        Ok(ran) if !ran.status.success() && String::from_utf8_lossy(&ran.stderr).contains("ptrace") => {
            skip("tracing is not permitted here")
        }
        Ok(ran) => {
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            Some(judge(&String::from_utf8_lossy(&std::fs::read(trace).unwrap())))
        }
    }
}

#[test]
fn every_acknowledgement_follows_a_sync_that_covers_it() {
    let Some(verdict) = traced("power") else { return };
    assert_eq!(verdict.acknowledged, WRITERS * COMMITS);
    assert!(verdict.early.is_empty(), "{:?}", verdict.early);
}

#[test]
fn the_judge_sees_a_store_that_does_not_sync() {
    let Some(verdict) = traced("process") else { return };
    assert_eq!(verdict.acknowledged, WRITERS * COMMITS);
    assert!(verdict.early.len() > WRITERS * COMMITS / 2, "{:?}", verdict.early);
}
