//! Policy in Python over the API, against real processes of an interpreter.

use std::path::{Path, PathBuf};

use klbr_server::config::{Python, PythonConfig, SelfActivation, Toolset};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::*;

/// The interpreter: `KLBR_PYTHON`, else what `python3` really is. Without one the tests are skipped, which they say.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("KLBR_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let code = "import sys; assert sys.version_info >= (3, 11); print(sys.executable)";
    let output = std::process::Command::new(named).args(["-I", "-c", code]).output().ok();
    let found = output.filter(|output| output.status.success());
    let found = found.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "Python 3.11 or later is needed; name it in KLBR_PYTHON");
        println!("SKIPPED: there is no Python 3.11 or later; name one in KLBR_PYTHON");
    }
    found
}

fn on(interpreter: &Path) -> Python {
    let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let interpreter = interpreter.to_owned();
    Python::On(PythonConfig { interpreter, environment, ..PythonConfig::default() })
}

async fn world(model: Scripted) -> Option<World> {
    let python = python()?;
    Some(World::with(model, |config| config.python = on(&python)).await)
}

/// Publishes a module and answers with the manifest that binds its function `f`.
fn manifest(home: &Path, bound: &str, code: &str) -> String {
    let source = tempfile::tempdir().unwrap();
    std::fs::write(source.path().join("mine.py"), code).unwrap();
    let tree = klbr_pyhost::Trees::new(home).publish(source.path()).unwrap();
    format!(
        "manifest = 1\n[policy]\ntree = \"{tree}\"\n[[hooks]]\n{bound}\nrun = \"mine:f\"\ndeadline = \"5s\"\n"
    )
}

async fn activate(world: &World, text: &str, expected: Option<u64>) -> (StatusCode, Value) {
    let body = json!({ "file": "policy.toml", "text": text, "expected": expected });
    read(world.client.request(Method::POST, "/v1/agents/klbr/policy/activate").json(&body)).await
}

const DELAY: &str = "slot = \"attention.batch_delay\"";
const SECOND: &str =
    "from datetime import timedelta\ndef f(q):\n    \"\"\"A second.\"\"\"\n    return timedelta(seconds=1)\n";

#[tokio::test]
async fn a_policy_is_tried_put_in_force_looked_at_and_taken_back() {
    let Some(world) = world(Scripted::default()).await else { return };
    let client = &world.client;
    let before = client.get("/v1/agents/klbr/policy").await;
    assert_eq!((&before["in_force"]["epoch"], &before["hooks"]), (&json!(1), &json!([])));
    let event =
        json!({ "source": { "kind": "channel", "instance": "irc" }, "priority": "ambient", "text": "hi" });
    client.post("/v1/agents/klbr/events", event).await;

    let text = manifest(world.home.path(), DELAY, SECOND);
    let tried = client.post("/v1/agents/klbr/policy/dry-run", json!({ "file": "p", "text": text })).await;
    assert_eq!(tried["affected"], json!(["hook_worker"]));
    assert_eq!(tried["differences"][0]["after"], json!({ "answer": "delay", "value": { "millis": 1000 } }));
    assert_eq!(client.get("/v1/agents/klbr/policy").await["in_force"]["epoch"], 1);

    let (status, done) = activate(&world, &text, Some(1)).await;
    assert_eq!((status, &done["in_force"]["epoch"]), (StatusCode::OK, &json!(2)), "{done}");
    let policy = client.get("/v1/agents/klbr/policy").await;
    let hook = &policy["hooks"][0];
    assert_eq!((&hook["name"], &hook["on_failure"]), (&json!("attention.batch_delay"), &json!("default")));
    assert_eq!((&hook["found"]["line"], &hook["found"]["doc"]), (&json!(2), &json!("A second.")));
    assert_eq!((&policy["worker"]["state"], &policy["at_work"]), (&json!("ready"), &json!([2])));

    let (status, refused) = activate(&world, &text, Some(1)).await;
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::CONFLICT, &json!("superseded")));
    let back = client.post("/v1/agents/klbr/policy/rollback", json!({})).await;
    assert_eq!(back["in_force"]["cause"], json!({ "cause": "rolled_back", "to": 1 }));
    let (status, _) =
        read(client.request(Method::POST, "/v1/agents/klbr/policy/rollback").json(&json!({ "to": 99 })))
            .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let log = client.get("/v1/agents/klbr/policy/log").await;
    let causes: Vec<&Value> =
        log["epochs"].as_array().unwrap().iter().map(|one| &one["cause"]["cause"]).collect();
    assert_eq!(causes, [&json!("first"), &json!("activated"), &json!("rolled_back")]);
    world.running.shutdown().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_candidate_is_said_with_file_line_and_hint() {
    let Some(world) = world(Scripted::default()).await else { return };
    let of = |code: &str| manifest(world.home.path(), DELAY, code);
    let cases = [
        ("manifest = 1\nhoks = 1\n".to_owned(), "manifest_refused", "policy.toml", 2, "unknown field `hoks`"),
        (
            "manifest = 1\n[[hooks]]\nslot = \"turn.idle\"\nrun = \"a:f\"\n[[hooks]]\nslot = \"turn.idle\"\nrun = \"b:g\"\n".to_owned(),
            "manifest_refused",
            "policy.toml",
            6,
            "b:g would own the slot turn.idle, which a:f owns (line 3)",
        ),
        (
            "manifest = 1\n[[hooks]]\nslot = \"turn.idle\"\nrun = \"absent:f\"\n".to_owned(),
            "manifest_refused",
            "policy.toml",
            2,
            "there is no module absent",
        ),
        (
            format!("manifest = 1\n[policy]\ntree = \"{}\"\n", "0".repeat(64)),
            "manifest_refused",
            "policy.toml",
            0,
            "was published here",
        ),
        (
            "manifest = 1\n[policy]\ntree = \"../../token\"\n".to_owned(),
            "manifest_refused",
            "policy.toml",
            3,
            "\"../../token\" is no hash",
        ),
        ("manifest = 1\nprotocol = 99\n".to_owned(), "manifest_refused", "policy.toml", 2, "it needs protocol 99"),
        (of("def f(q:\n"), "hooks_refused", "mine.py", 1, "SyntaxError"),
        (of("x = 1\nimport nothing_here\n"), "hooks_refused", "mine.py", 2, "ModuleNotFoundError"),
    ];
    for (text, code, file, line, says) in cases {
        let (status, body) = activate(&world, &text, None).await;
        let error = &body["error"];
        assert_eq!((status, &error["code"]), (StatusCode::BAD_REQUEST, &json!(code)), "{body}");
        let place = &error["places"][0];
        assert!(place["file"].as_str().unwrap().ends_with(file), "{body}");
        assert_eq!(place["line"], line, "{body}");
        assert!(place["message"].as_str().unwrap().contains(says), "{body}");
    }
    let (_, wrong) = activate(&world, &of("def f(q):\n    return 'soon'\n"), None).await;
    assert!(
        wrong["error"]["message"].as_str().unwrap().contains("datetime.timedelta, not with str"),
        "{wrong}"
    );
    let (_, hung) = activate(&world, &of("import time\ndef f(q):\n    time.sleep(99)\n"), None).await;
    assert!(hung["error"]["message"].as_str().unwrap().contains("no answer by the deadline"), "{hung}");
    assert_eq!(world.client.get("/v1/agents/klbr/policy/log").await["epochs"].as_array().unwrap().len(), 1);
    world.running.shutdown().await;
}

#[tokio::test]
async fn python_is_off_until_somebody_asks_for_it_and_the_way_back_is_open_all_the_same() {
    let world = World::start(Scripted::default()).await;
    let text = manifest(world.home.path(), DELAY, SECOND);
    let (status, body) = activate(&world, &text, None).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::CONFLICT, &json!("python_off")), "{body}");
    assert!(body["error"]["hint"].as_str().unwrap().contains("python.enabled = true"), "{body}");
    // A soul needs no Python.
    let soul = "manifest = 1\n[instructions]\nsoul = \"You are Ada.\"\n";
    let (status, done) = activate(&world, soul, None).await;
    assert_eq!((status, &done["affected"]), (StatusCode::OK, &json!(["prefix"])), "{done}");
    assert_eq!(world.client.get("/v1/agents/klbr/soul").await["text"], "You are Ada.");
    world.client.post("/v1/agents/klbr/policy/rollback", json!({ "to": 1 })).await;
    assert_ne!(world.client.get("/v1/agents/klbr/soul").await["text"], "You are Ada.");
    let (status, body) = read(world.client.request(Method::GET, "/v1/agents/klbr/workbench")).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::CONFLICT, &json!("no_workbench")));
    world.running.shutdown().await;
}

#[tokio::test]
async fn the_way_back_is_open_where_python_is_switched_off() {
    let world = World::with(Scripted::default(), |config| config.python = Python::Off).await;
    let before = world.client.get("/v1/agents/klbr/soul").await["text"].clone();
    let edited = json!({ "text": "You are Ada." });
    let (status, _) = read(world.client.request(Method::PUT, "/v1/agents/klbr/soul").json(&edited)).await;
    assert_eq!(status, StatusCode::OK);
    let back = world.client.post("/v1/agents/klbr/policy/rollback", json!({})).await;
    assert_eq!(back["in_force"]["cause"], json!({ "cause": "rolled_back", "to": 1 }), "{back}");
    assert_eq!(world.client.get("/v1/agents/klbr/soul").await["text"], before);
    world.running.shutdown().await;
}

#[tokio::test]
async fn the_workbench_is_looked_at_and_started_over() {
    let Some(python) = python() else { return };
    let Python::On(both) = on(&python) else { return };
    let both = Python::On(PythonConfig { actions: Toolset::Both, ..both });
    let cell = |code: &str| ("python", json!({ "code": code }));
    let model = Scripted::new(&[
        &[cell("kept = 'tea'")],
        &[say("kept"), wait(600)],
        &[cell("kept")],
        &[say("gone"), wait(600)],
    ]);
    let world = World::with(model, |config| config.python = both).await;
    let client = &world.client;
    assert_eq!(client.get("/v1/agents/klbr/workbench").await, json!({ "state": "absent" }));
    assert_eq!(client.get("/v1/agents/klbr/workbench/vars").await, json!({ "variables": [] }));
    client.post("/v1/agents/klbr/workbench/restart", json!({})).await;

    let mut events = client.events(0).await;
    client.say("1", "keep it").await;
    events.until("waiting").await;
    let variables = client.get("/v1/agents/klbr/workbench/vars").await["variables"].clone();
    assert_eq!(
        (&variables[0]["name"], &variables[0]["start"]),
        (&json!("kept"), &json!("'tea'")),
        "{variables}"
    );
    let status = client.get("/v1/agents/klbr/workbench").await;
    assert_eq!((&status["state"], &status["generation"]), (&json!("ready"), &json!(1)));
    client.post("/v1/agents/klbr/workbench/restart", json!({})).await;
    let next = async || client.get("/v1/agents/klbr/workbench").await["generation"] == 2;
    until("its next life", next).await;
    client.say("2", "what is it?").await;
    let (_, ended) = events.until("action_ended").await;
    assert!(ended["result"].as_str().unwrap().contains("NameError"), "{ended}");
    world.running.shutdown().await;
}

#[tokio::test]
async fn what_the_agent_writes_itself_is_put_in_force_by_its_operator_unless_it_may() {
    let Some(python) = python() else { return };
    for (self_activation, epoch) in [(SelfActivation::Ask, 1), (SelfActivation::Allow, 2)] {
        let Python::On(both) = on(&python) else { return };
        let both = Python::On(PythonConfig { actions: Toolset::Both, self_activation, ..both });
        let model = Scripted::default();
        let world = World::with(model.clone(), |config| config.python = both).await;
        let text = manifest(world.home.path(), DELAY, SECOND);
        let folder = world.home.path().join("agents/klbr/mine");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("mine.py"), SECOND).unwrap();
        model.then(&[("hooks_publish", json!({ "folder": "mine" }))]);
        model.then(&[("hooks_try", json!({ "manifest": "manifest = 1\nhoks = 1\n" }))]);
        model.then(&[("hooks_activate", json!({ "manifest": text }))]);
        model.then(&[("hooks_list", json!({}))]);
        model.then(&[wait(600)]);
        let mut events = world.client.events(0).await;
        world.client.say("1", "improve yourself").await;
        let mut results = Vec::new();
        for _ in 0..4 {
            results.push(events.until("action_ended").await.1["result"].as_str().unwrap().to_owned());
        }
        assert!(text.contains(results[0].strip_prefix("Published: ").unwrap()), "{results:?}");
        assert!(results[1].contains("manifest:2: unknown field `hoks`"), "{results:?}");
        let in_force = world.client.get("/v1/agents/klbr/policy").await["in_force"]["epoch"].clone();
        assert_eq!(in_force, epoch, "{results:?}");
        match self_activation {
            SelfActivation::Ask => {
                let file = results[2].split("klbr activate ").nth(1).unwrap().lines().next().unwrap();
                assert_eq!(std::fs::read_to_string(file).unwrap(), text);
            }
            SelfActivation::Allow => {
                assert!(results[3].contains("slot attention.batch_delay mine:f"), "{results:?}")
            }
        }
        world.running.shutdown().await;
    }
}

/// Killed before the commit there is nothing but a manifest that nobody names; killed after it, it is in force.
#[tokio::test]
async fn a_kill_between_manifest_admission_and_activation_leaves_all_or_nothing() {
    let Some(python) = python() else { return };
    for (point, is_in_force) in [("admit-before-commit", false), ("admit-before-acknowledge", true)] {
        let home = tempfile::tempdir().unwrap();
        let text = manifest(home.path(), DELAY, SECOND);
        let start = async |pause: Option<&str>| {
            let process = Process::start(home.path(), |command| {
                command.env("KLBR_PYTHON", &python).env("KLBR_BASE_URL", "http://127.0.0.1:9/v1");
                command.env("KLBR_MODEL", "none");
                if let Some(pause) = pause {
                    command.env("KLBR_PAUSE_AT", pause);
                }
            })
            .await;
            process.ready().await;
            process
        };
        let mut first = start(Some(point)).await;
        let body = json!({ "file": "policy.toml", "text": text });
        let request = first.client.request(Method::POST, "/v1/agents/klbr/policy/activate").json(&body);
        let sending = tokio::spawn(request.send());
        let stands = async {
            while let Ok(Some(line)) = first.stderr.next_line().await {
                if line.contains("\"paused\"") {
                    return;
                }
            }
        };
        in_time("the point", stands).await;
        first.signal(rustix::process::Signal::KILL);
        first.ended().await;
        assert!(in_time("the client", sending).await.unwrap().is_err(), "nobody was told");
        let kept = std::fs::read_dir(home.path().join("policy")).unwrap();
        let manifests = kept.filter(|entry| {
            entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "json")
        });
        assert_eq!(manifests.count(), 1, "the manifest comes first");

        let second = start(None).await;
        let policy = second.client.get("/v1/agents/klbr/policy").await;
        assert_eq!(policy["in_force"]["epoch"], if is_in_force { 2 } else { 1 }, "{point}: {policy}");
        let done = second.client.post("/v1/agents/klbr/policy/activate", body).await;
        assert_eq!(done["in_force"]["epoch"], if is_in_force { 3 } else { 2 }, "{point}: {done}");
        let ledger = second.client.get("/v1/agents/klbr/ledger").await;
        assert_eq!(ledger["admitted"], ledger["consumed"], "{ledger}");
    }
}
