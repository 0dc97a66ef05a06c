//! Policy in Python at the command line: from a draft to what is in force, through broken edits, and back.

use serde_json::{Value, json};

use crate::model::{says, scripted};
use crate::program::{Ended, Home, await_that};

/// What the owner writes first: attention, model choice, results and deliveries, in Python alone.
const POLICY: &str = r#"
"""How Ada lives."""

from klbr import hooks


@hooks.slot("event.priority", deadline="2s")
def priority(event: hooks.EventPriority) -> hooks.Priority:
    """Alarms are for Ada at once."""
    return "directed" if event.instance == "alarms" else event.priority


@hooks.slot("model.plan", deadline="2s")
def plan(turn: hooks.ModelPlan) -> hooks.Plan:
    """The clever one."""
    return hooks.Plan("clever", turn.effort)


@hooks.transform("delivery.format", deadline="2s")
def signed(send: hooks.DeliveryFormat) -> dict[str, object]:
    """Signs what is said."""
    said = hooks.arguments(send)
    return {"arguments": {**said, "content": f"{said['content']} (Ada)"}}


@hooks.transform("result.shape", deadline="2s")
def shaped(result: hooks.ResultShape) -> str:
    """Tells how long a result was."""
    return f"{len(result.text)} characters: {result.text}"
"#;

/// Has a module die wherever it is armed.
const ARMED: &str = r#"

def armed():
    if pathlib.Path("armed").exists():
        os._exit(3)


import os
import pathlib

armed()
"#;

/// The interpreter: `KLBR_PYTHON`, else what `python3` really is. Without one the tests are skipped, which they say.
fn python() -> Option<String> {
    let named = std::env::var("KLBR_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let code = "import sys; assert sys.version_info >= (3, 11); print(sys.executable)";
    let output = std::process::Command::new(named).args(["-I", "-c", code]).output().ok();
    let found = output.filter(|output| output.status.success());
    let found = found.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "Python 3.11 or later is needed; name it in KLBR_PYTHON");
        println!("SKIPPED: there is no Python 3.11 or later; name one in KLBR_PYTHON");
    }
    found
}

/// A home whose agent asks this model and may use Python.
fn home(base: &str, actions: &str) -> Option<Home> {
    let python = python()?;
    let home = Home::asking(base);
    let settings =
        format!("[model]\nbase_url = {base:?}\n[python]\ninterpreter = {python:?}\nactions = {actions:?}\n");
    std::fs::write(home.path().join("klbr.toml"), settings).unwrap();
    Some(home)
}

/// Writes `mine.py`, publishes its folder, and keeps the manifest that this prints; answers with its path.
fn publish(home: &Home, code: &str) -> String {
    let folder = home.beside("policy");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mine.py"), code).unwrap();
    let manifest = home.good(&["hooks", "publish", folder.to_str().unwrap()]);
    let file = home.beside("policy.toml");
    std::fs::write(&file, manifest).unwrap();
    file.to_str().unwrap().to_owned()
}

fn json_of(home: &Home, arguments: &[&str]) -> Value {
    serde_json::from_str(&home.good(&[arguments, &["--json"]].concat())).unwrap()
}

fn epoch(home: &Home) -> u64 {
    json_of(home, &["hooks", "list"])["in_force"]["epoch"].as_u64().unwrap()
}

fn records(home: &Home, kind: &str) -> Vec<Value> {
    let records = home.good(&["history", "list", "--json", "--limit", "10000"]);
    let records = records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|record| record["kind"] == kind).collect()
}

#[track_caller]
fn refused(ended: &Ended, says: &[&str]) {
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for said in says {
        assert!(ended.err.contains(said), "{said}: {ended:?}");
    }
}

/// Attention, model choice, delivery format and result handling are improved in Python alone and put in force without a
/// restart; the next three edits are broken, and so is one more that only dies once it is in force. Everything that was
/// accepted is accounted for, and every receipt tells the truth.
#[test]
fn an_owner_improves_a_living_agent_and_breaks_nothing_by_mistakes() {
    let look = json!({
        "when": { "last_contains": "look it up" },
        "answer": { "body": { "reply": { "parts": [
            { "call": { "name": "history_search", "arguments": { "text": "morning" } } } ] } } },
    });
    let cell = |when: &str, code: &str| {
        json!({
            "when": { "last_contains": when },
            "answer": { "body": { "reply": { "parts": [
                { "call": { "name": "python", "arguments": { "code": code } } } ] } } },
        })
    };
    let model = scripted(&json!([
        look,
        cell("keep it", "kept = 6 * 7\n'it is kept'"),
        cell("what was it", "f'it was {kept}'"),
        says("it was 42", "", "", "It was 42."),
        says("it is kept", "", "", "Kept."),
        says("characters: ", "", "", "I have looked."),
        says("fire", "", "", "I am coming."),
        says("Good", "", "", "Good morning to you."),
    ]));
    let Some(home) = home(&model.base, "both") else { return };
    let _daemon = home.daemon();
    assert_eq!(home.good(&["chat", "--quiet", "-m", "Good morning"]), "Good morning to you.\n");
    assert_eq!(home.good(&["chat", "--quiet", "-m", "keep it"]), "Kept.\n");
    let kept = || home.good(&["workbench", "vars"]).contains("kept                 int");
    assert!(kept(), "{}", home.good(&["workbench", "vars"]));

    let file = publish(&home, POLICY);
    let tried = home.good(&["hooks", "dry-run", &file]);
    assert!(tried.contains("+ clever") && tried.contains("nothing was changed"), "{tried}");
    assert!(tried.contains("\"content\": \"Good morning to you. (Ada)\""), "{tried}");
    assert_eq!(epoch(&home), 1);
    let activated = home.good(&["activate", &file]);
    assert!(
        activated.starts_with("restarts  a new hook worker takes over\nstays     the workbench"),
        "{activated}"
    );

    assert_eq!(home.good(&["chat", "--quiet", "-m", "Good day"]), "Good morning to you. (Ada)\n");
    assert_eq!(home.good(&["chat", "--quiet", "-m", "look it up"]), "I have looked. (Ada)\n");
    let models: Vec<Value> =
        records(&home, "turn_started").into_iter().map(|turn| turn["model"].clone()).collect();
    assert_eq!(models, ["scripted", "scripted", "clever", "clever"]);
    assert_eq!(home.good(&["chat", "--quiet", "-m", "what was it"]), "It was 42. (Ada)\n");
    let alarm = json!({
        "source": { "kind": "channel", "instance": "alarms" }, "priority": "ambient", "text": "fire",
    });
    admit(&home, &alarm);
    let said = |text: &str| {
        let delivered = |record: &Value| record["delivered"]["arguments"].as_str().map(str::to_owned);
        records(&home, "settled").iter().filter_map(delivered).filter(|said| said.contains(text)).count()
    };
    await_that("the alarm's answer", || said("I am coming. (Ada)") == 1);

    let list = home.good(&["hooks", "list"]);
    for line in
        ["is ready (process ", "mine:priority", "mine.py:", "delivery.format 1.", "when it fails: skipped"]
    {
        assert!(list.contains(line), "{line}: {list}");
    }

    // Three broken edits; each is refused, with its place, and nothing has changed.
    let broken = publish(&home, &POLICY.replace("def plan(", "def plan(("));
    refused(&home.run(&["activate", &broken]), &["could not be loaded", "mine.py:14: mine:", "SyntaxError"]);
    let hangs = publish(
        &home,
        &POLICY.replace("    return hooks.Plan", "    while True: pass\n    return hooks.Plan"),
    );
    refused(
        &home.run(&["activate", &hangs]),
        &["mine:plan failed when it was tried", "no answer by the deadline"],
    );
    let wrong = publish(&home, &POLICY.replace("hooks.Plan(\"clever\", turn.effort)", "\"clever\""));
    refused(&home.run(&["activate", &wrong]), &["mine:plan failed", "answered with a Plan, not with str"]);
    assert_eq!(epoch(&home), 2);

    // One that passes every trial, and dies once it is in force: it goes back by itself.
    let dies = POLICY.replace("    return hooks.Plan", "    armed()\n    return hooks.Plan") + ARMED;
    home.good(&["activate", &publish(&home, &dies)]);
    std::fs::write(home.path().join("agents/klbr/armed"), "").unwrap();
    assert_eq!(home.good(&["chat", "--quiet", "-m", "Good evening"]).lines().count(), 1);
    await_that("the way back", || epoch(&home) == 4);
    let log = home.good(&["hooks", "log"]);
    assert!(log.contains("epoch 3 kept failing, epoch 2 came back"), "{log}");
    assert_eq!(home.good(&["chat", "--quiet", "-m", "Good night"]), "Good morning to you. (Ada)\n");
    assert!(kept(), "the workbench never ended");
    assert_eq!(json_of(&home, &["workbench", "status"])["generation"], 1);

    // Everything is accounted for.
    let status = json_of(&home, &["status"]);
    let ledger = &status["agent"]["ledger"];
    let term = |name: &str| ledger[name].as_u64().unwrap();
    let sum =
        ["waiting", "held", "framed", "shown", "folded", "withdrawn", "consumed", "dead_lettered"].map(term);
    assert_eq!(term("admitted"), sum.iter().sum::<u64>(), "{ledger}");
    assert_eq!(term("consumed"), 3, "two activations, and one by itself: {ledger}");
    assert_eq!(status["agent"]["open_effects"], json!([]));
    let (intended, settled) = (records(&home, "intended"), records(&home, "settled"));
    let of = |records: &[Value]| -> Vec<Value> { records.iter().map(|r| r["action"].clone()).collect() };
    assert_eq!(of(&intended), of(&settled), "each action has its one receipt");
    assert!(home.good(&["history", "verify"]).contains("follow from one another"));
}

/// Admits an event through the API, as an adapter would.
fn admit(home: &Home, event: &Value) {
    let address: Value =
        serde_json::from_slice(&std::fs::read(home.path().join("run/address.json")).unwrap()).unwrap();
    let token = std::fs::read_to_string(home.path().join("token")).unwrap();
    let url = format!("http://{}/v1/agents/klbr/events", address["addr"].as_str().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let status = runtime.block_on(async {
        let client = klbr_tests::http::client();
        client.post(url).bearer_auth(token.trim()).json(event).send().await.unwrap().status().as_u16()
    });
    assert_eq!(status, 200);
}

#[test]
fn each_verb_works_without_a_daemon_and_a_hook_is_tested_on_what_was_asked() {
    let model = scripted(&json!([says("Good", "", "", "Good morning to you.")]));
    let Some(home) = home(&model.base, "tools") else { return };
    home.good(&["chat", "--quiet", "-m", "Good morning"]);
    assert!(home.good(&["hooks", "list"]).contains("epoch 1 the built-in defaults: from the beginning"));

    let file = publish(&home, POLICY);
    let folder = home.beside("policy");
    let tree = ["--tree", folder.to_str().unwrap()];
    let tested = home.good(&[&["hooks", "test", "mine:signed"][..], &tree].concat());
    assert!(tested.contains("asked     1 questions") && tested.contains("(Ada)"), "{tested}");
    let other = home
        .good(&[&["hooks", "test", "klbr.policy.attention:idle", "--as", "turn.idle"][..], &tree].concat());
    assert!(other.contains("0 are answered differently") || other.contains("samples alone"), "{other}");
    refused(&home.run(&[&["hooks", "test", "mine:nothing"][..], &tree].concat()), &["nothing says what"]);
    let reads = "from klbr import hooks\n\n@hooks.slot(\"turn.idle\")\nasync def f(turn, host):\n    return (await host.recent_deliveries(minutes=9))[7]\n";
    std::fs::write(folder.join("reads.py"), reads).unwrap();
    let ended = home.run(&[&["hooks", "test", "reads:f"][..], &tree].concat());
    refused(&ended, &["IndexError: list index out of range", &format!("({}/reads.py:5)", folder.display())]);
    std::fs::remove_file(folder.join("reads.py")).unwrap();

    let activated = home.good(&["activate", &file]);
    assert!(
        activated.contains("epoch 2 ") && activated.contains("in force for turns that begin"),
        "{activated}"
    );
    assert!(home.good(&["hooks", "list"]).contains("model.plan"));
    refused(&home.run(&["activate", &file, "--expect", "1"]), &["epoch 2 is in force, not epoch 1"]);
    let back = json_of(&home, &["rollback"]);
    assert_eq!(back["in_force"]["cause"], json!({ "cause": "rolled_back", "to": 1 }));
    let again = home.good(&["hooks", "rollback", "2"]);
    assert!(again.contains("rolled back to epoch 2"), "{again}");
    refused(&home.run(&["rollback", "9"]), &["there is no epoch 9"]);
    let log = home.good(&["hooks", "log"]);
    assert_eq!(log.lines().count(), 4, "{log}");
    assert_eq!(home.run(&["workbench", "status"]).code, Some(4));

    std::fs::write(
        home.beside("bad.toml"),
        "manifest = 1\n[[hooks]]\nslot = \"turn.idel\"\nrun = \"../x:f\"\n",
    )
    .unwrap();
    let bad = home.beside("bad.toml");
    let ended = home.run(&["activate", bad.to_str().unwrap()]);
    refused(
        &ended,
        &[
            "bad.toml:3: there is no slot turn.idel (did you mean `turn.idle`?)",
            "bad.toml:4: \"../x:f\" names no function",
        ],
    );
    let ended = home.run(&["activate", bad.to_str().unwrap(), "--json"]);
    let error: Value = serde_json::from_str(&ended.err).unwrap();
    assert_eq!(error["error"]["places"][0]["line"], 3, "{error}");
}
