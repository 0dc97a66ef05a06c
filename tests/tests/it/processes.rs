//! Children and trees of processes: how they end, and that none is left.

use std::time::Duration;

use klbr_tests::fake_model::{FakeModel, Options};
use klbr_tests::proc_tree::{self, Member};
use klbr_tests::process::{ProcessError, Program, Running, Signal, send};
use serde_json::Value;

use super::wire::WATCHDOG;

fn helper(name: &str) -> Program {
    Program::of_workspace("klbr-tests", name).unwrap()
}

#[tokio::test]
async fn a_fake_ends_with_its_input_and_on_sigterm() {
    let mut fake = FakeModel::start().await.unwrap();
    fake.process().close_stdin();
    assert!(fake.process().wait(WATCHDOG).await.unwrap().success());
    let mut fake = FakeModel::start().await.unwrap();
    assert!(fake.process().terminate(WATCHDOG).await.unwrap().success());
    let mut fake = FakeModel::start().await.unwrap();
    assert!(!fake.process().kill().await.unwrap().success());
}

#[tokio::test]
async fn a_dropped_child_is_killed() {
    let (mut tree, members) = grow(&[]).await;
    assert_eq!(proc_tree::alive(&members), members);
    assert_eq!(tree.ended().unwrap(), None);
    drop(tree);
    gone(&members).await;
}

#[tokio::test]
async fn a_missing_binary_says_what_builds_it() {
    let error = Program::of_workspace("klbr-server", "no-such-daemon").unwrap_err();
    let ProcessError::NotBuilt { command, .. } = &error else { panic!("{error}") };
    assert!(command.starts_with("cargo build") && command.ends_with("-p klbr-server --bin no-such-daemon"));
}

#[tokio::test]
async fn a_child_that_ends_early_or_never_says_a_thing_is_an_error_with_its_words() {
    let mut early = helper("fake-model").args(["--port", "x"]).spawn().unwrap();
    let error = early.ready::<Value>(WATCHDOG).await.unwrap_err().to_string();
    assert!(error.contains("before its ready line") && error.contains("--port: \"x\" is no port"), "{error}");
    let mut silent = Program::at("cat").spawn().unwrap();
    let error = silent.ready::<Value>(Duration::from_millis(20)).await.unwrap_err();
    assert!(matches!(error, ProcessError::Watchdog { .. }), "{error}");
    silent.write("one\nnot json\n").await.unwrap();
    let line = silent.line("the second line", WATCHDOG, |line| line.starts_with("not")).await.unwrap();
    assert!(line.at > silent.started());
    assert!(matches!(silent.ready::<Value>(WATCHDOG).await.unwrap_err(), ProcessError::ReadyLine { .. }));
    silent.close_stdin();
    assert!(silent.wait(WATCHDOG).await.unwrap().success());
    assert_eq!(silent.stdout().len(), 2);
}

#[tokio::test]
async fn a_child_sees_the_variables_it_is_given_and_the_folder_it_stands_in() {
    let folder = std::env::temp_dir().canonicalize().unwrap();
    let shell = Program::at("/bin/sh")
        .args(["-c", "env; pwd -P; exit 3"])
        .bare_env()
        .env("ONE", "1")
        .directory(&folder);
    let mut shell = shell.spawn().unwrap();
    assert_eq!(shell.wait(WATCHDOG).await.unwrap().code(), Some(3));
    let lines: Vec<String> = shell.stdout().into_iter().map(|line| line.text).collect();
    assert!(lines.contains(&"ONE=1".into()) && lines.contains(&folder.display().to_string()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("CARGO")));
}

#[tokio::test]
async fn a_fake_comes_back_on_the_same_port() {
    let mut fake = FakeModel::start().await.unwrap();
    let server = fake.ready().server.clone();
    fake.process().kill().await.unwrap();
    assert!(reqwest::get(format!("{server}/health")).await.unwrap_err().is_connect());
    let port = server.rsplit(':').next().unwrap().parse().unwrap();
    let script = scratch("script");
    std::fs::write(&script, r#"{"model": "back"}"#).unwrap();
    let options = Options { port, script: Some(script.clone()), ..Options::default() };
    let fake = FakeModel::start_with(&options).await.unwrap();
    let models = reqwest::get(format!("{}/models", fake.ready().base)).await.unwrap().text().await.unwrap();
    assert!(models.contains("back"));
    std::fs::remove_file(&script).unwrap();
    let error = FakeModel::start_with(&options).await.unwrap_err().to_string();
    assert!(error.contains(&script.display().to_string()), "{error}");
}

#[test]
fn options_of_the_fake_are_read_or_named() {
    let parse = |words: &[&str]| Options::parse(words.iter().map(|word| (*word).to_owned()));
    assert_eq!(parse(&["--port", "80", "--control-port", "81"]).unwrap().control_port, 81);
    assert!(parse(&["--prot", "80"]).unwrap_err().starts_with("unknown option --prot"));
    assert_eq!(parse(&["--script"]).unwrap_err(), "--script needs a value");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_bound_program_dies_with_the_thread_that_started_it() {
    let file = scratch("bound");
    let program = helper("proc-tree").arg("--pids").arg(&file).bound_to_parent().unwrap();
    let (running, members) = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut running = program.spawn().unwrap();
            let ready: Value = running.ready(WATCHDOG).await.unwrap();
            assert_eq!(ready["pid"], running.pid());
            // Not dropped: only the kernel may end it.
            let members = proc_tree::read(&file).unwrap();
            std::fs::remove_file(&file).unwrap();
            (std::mem::ManuallyDrop::new(running), members)
        })
    })
    .join()
    .unwrap();
    gone(&members).await;
    drop(std::mem::ManuallyDrop::into_inner(running));
}

#[tokio::test]
async fn the_judge_sees_who_survives_a_kill_of_the_root_alone() {
    let (mut tree, members) = grow(&["--children", "2", "--grandchildren", "2", "--orphans", "1"]).await;
    let roles = |role: &str| members.iter().filter(|member| member.role == role).count();
    assert_eq!((members.len(), roles("child"), roles("grandchild"), roles("orphan")), (8, 2, 4, 1));
    tree.kill().await.unwrap();
    let survivors = proc_tree::alive(&members);
    assert_eq!(survivors, members[1..]);
    reap(&members).await;
}

#[tokio::test]
async fn some_of_a_tree_ignore_sigterm_and_some_lead_a_session() {
    let shape = ["--children", "2", "--grandchildren", "2", "--ignore-term", "--new-session"];
    let (tree, members) = grow(&shape).await;
    for member in &members {
        send(member.pid, Signal::Terminate).unwrap();
    }
    // Those that do not ignore it end; the root, the first child and its first grandchild do.
    let stubborn = |left: &[Member]| left.len() == 3 && left.iter().any(|member| member.role == "root");
    until(|| stubborn(&proc_tree::alive(&members))).await;
    drop(tree);
    reap(&members).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_later_process_with_the_same_id_is_not_taken_for_the_member() {
    let (tree, members) = grow(&[]).await;
    let other = Member { started: members[0].started - 1, ..members[0].clone() };
    assert!(proc_tree::alive(&[other]).is_empty());
    drop(tree);
}

fn scratch(name: &str) -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("klbr-{name}-{}-{count}", std::process::id()))
}

async fn grow(shape: &[&str]) -> (Running, Vec<Member>) {
    let file = scratch("pids");
    let mut tree = helper("proc-tree").arg("--pids").arg(&file).args(shape.iter().copied()).spawn().unwrap();
    tree.ready::<Value>(WATCHDOG).await.unwrap();
    let members = proc_tree::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    (tree, members)
}

async fn reap(members: &[Member]) {
    for member in proc_tree::alive(members) {
        send(member.pid, Signal::Kill).unwrap();
    }
    gone(members).await;
}

async fn gone(members: &[Member]) {
    until(|| proc_tree::alive(members).is_empty()).await;
}

async fn until(holds: impl Fn() -> bool) {
    let watching = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(WATCHDOG, watching).await.expect("it did not come to hold");
}
