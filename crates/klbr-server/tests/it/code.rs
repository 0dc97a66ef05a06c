//! The code that a daemon's agent works on: within its folder, hard files parsed by a process of the daemon's program.

use klbr_server::config::{CodeConfig, Isolation};
use serde_json::json;

use crate::support::{Scripted, World, wait};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_reads_the_code_that_its_home_names_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.py"), "def one(): pass\n").unwrap();
    let outline = |path: &str| ("code_outline", json!({ "path": path }));
    let edit = json!({ "path": "a.py", "symbol": "one", "edit": "rename_in_file", "text": "two" });
    let scripted =
        Scripted::new(&[&[outline("."), outline("../home/token"), ("code_edit_symbol", edit)], &[wait(600)]]);
    let root = folder.path().to_owned();
    let world = World::with(scripted.clone(), |config| {
        config.code = Some(CodeConfig { root, write: false });
        let program = env!("CARGO_BIN_EXE_klbrd").into();
        config.parser = Some(Isolation { program, arguments: vec!["--parser".into()], above_bytes: 0 });
    })
    .await;
    let mut events = world.client.events(0).await;
    world.client.say("k", "Look at it").await;
    // Calls of one step run at once, so that they end in any order.
    let mut ended = Vec::new();
    for _ in 0..3 {
        ended.push(events.until("action_ended").await.1["result"].to_string());
    }
    for told in ["def one():", "not open to this session", "can be read in this session but not changed"] {
        assert!(ended.iter().any(|result| result.contains(told)), "{told:?} is not in {ended:?}");
    }
    let tools = scripted.asked.lock().unwrap()[0].tools.matches("\"name\":\"code_").count();
    assert_eq!(tools, 6);
    world.running.shutdown().await;
}
