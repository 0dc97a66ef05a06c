//! The folder that a home names: a daemon of its own tells the model of it, over the wire.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::models::Server;
use crate::support::{Process, run, say, until, wait};

/// The text of the system prompt, and of the last message.
fn ends(request: &Value) -> (&str, &str) {
    let messages = request["messages"].as_array().unwrap();
    let text = |message: usize| messages[message]["content"].as_str().unwrap();
    (text(0), text(messages.len() - 1))
}

#[tokio::test(flavor = "multi_thread")]
async fn instruction_files_are_in_the_prompt_and_a_change_of_one_is_a_note_and_no_new_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let (home, app) = (folder.path().join("home"), folder.path().join("app"));
    let web = app.join("packages/web");
    fs::create_dir_all(&web).unwrap();
    fs::create_dir(&home).unwrap();
    fs::write(app.join("AGENTS.md"), "Use tabs.\n").unwrap();
    fs::write(web.join("AGENTS.md"), "Say </session-note> little.\n").unwrap();
    let server = Server::at("127.0.0.1:0".parse().unwrap(), &[run("pwd"), say("Done."), wait(600)]).await;
    let settings = format!(
        "[model]\nbase_url = {:?}\nname = \"late-7b\"\n[workspace]\nroot = \"../app\"\nstart = \"packages/web\"\n\
         [tools]\nprocess = true\n",
        server.base_url()
    );
    fs::write(home.join("klbr.toml"), settings).unwrap();
    let turn = async |daemon: &Process, number: usize| {
        daemon.client.say(&format!("k{number}"), &format!("turn {number}")).await;
        until("the model is asked", async || server.asked().len() >= number).await;
        until("the agent waits", async || {
            let status = daemon.client.get("/v1/agents/klbr/status").await;
            status["agent"]["activity"]["activity"] == "waiting"
        })
        .await;
        server.asked()[number - 1].clone()
    };

    let mut daemon = Process::start(&home, |_| {}).await;
    daemon.ready().await;
    let first = turn(&daemon, 1).await;
    let (system, _) = ends(&first);
    let told = "# Environment\n\nProject: app (paths are relative to its root)\nStarted in: packages/web (relative to \
                the project root)\n\n# AGENTS.md\n\nUse tabs.\n\n# packages/web/AGENTS.md\n\nSay </session-note> little.";
    assert!(system.ends_with(told), "{system}");
    let place = folder.path().canonicalize().unwrap();
    assert!(!first.to_string().contains(place.to_str().unwrap()), "no path of the machine is told: {first}");
    assert!(first.to_string().contains("code_outline"), "the code is where the agent works");

    fs::write(app.join("AGENTS.md"), "Use spaces.\n").unwrap();
    fs::remove_file(web.join("AGENTS.md")).unwrap();
    let second = turn(&daemon, 2).await;
    let (same, note) = ends(&second);
    assert_eq!(same, system, "byte for byte");
    let note = note.split_once("<session-note>").unwrap_or_else(|| panic!("no note: {note}")).1;
    assert_eq!(
        note,
        "\nAGENTS.md changed; it now reads:\nUse spaces.\n\n\npackages/web/AGENTS.md changed; it now reads:\n(none)\n\
         </session-note>"
    );
    let began = second.to_string().contains(&format!("{}\\n", app.canonicalize().unwrap().display()));
    assert!(began, "processes begin where the agent works: {second}");

    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().await, 0);
    let daemon = Process::start(&home, |_| {}).await;
    daemon.ready().await;
    let third = turn(&daemon, 3).await;
    let (same, said) = ends(&third);
    assert_eq!(same, system, "a restart makes no new prefix either");
    assert!(!said.contains("<session-note>"), "what was told is not told again: {said}");
    let records = daemon.client.get("/v1/agents/klbr/records?limit=1000").await;
    let made = records["records"].as_array().unwrap().iter().filter(|record| record["kind"] == "prefix_made");
    assert_eq!(made.count(), 1);
}
