//! A running action that calls others through its context.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::action::{ActionSpec, Answered, Class, End, Outcome, Resource, Role};
use klbr_core::event::Control;
use klbr_core::model::{Message, ToolDefinition};
use klbr_core::runtime::actions::{Actions, AgentGone};
use klbr_core::runtime::tool::{AnyTool, CallContext, lost};
use klbr_core::testkit::{Fault, Scripted};
use klbr_core::update::Happening;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::{WAIT, WATCHDOG, World, delivered, until, waiting};

/// Hands its actions out, and ends as it is told to.
struct Cell {
    started: mpsc::UnboundedSender<Actions>,
    end: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Outcome>>>,
}

#[async_trait]
impl AnyTool for Cell {
    fn spec(&self) -> ActionSpec {
        ActionSpec {
            tool: ToolDefinition {
                name: "cell".to_owned(),
                description: "Runs code.".to_owned(),
                parameters: json!({ "type": "object" }),
            },
            role: Role::Cell,
            class: Class::Irreversible,
            cancellable: true,
            resource: Resource::None,
            deadline: Duration::from_secs(60),
        }
    }

    async fn call(&self, context: CallContext) -> Outcome {
        self.started.send(context.actions).unwrap();
        self.end.lock().await.recv().await.unwrap()
    }

    async fn reconcile(&self, _: CallContext) -> Outcome {
        lost()
    }
}

fn cell() -> (Arc<Cell>, mpsc::UnboundedReceiver<Actions>, mpsc::UnboundedSender<Outcome>) {
    let (started, actions) = mpsc::unbounded_channel();
    let (end, ends) = mpsc::unbounded_channel();
    (Arc::new(Cell { started, end: Arc::new(tokio::sync::Mutex::new(ends)) }), actions, end)
}

async fn call(actions: &Actions, name: &str, arguments: Value) -> Result<Answered, AgentGone> {
    let Value::Object(arguments) = arguments else { panic!("no object") };
    tokio::time::timeout(WATCHDOG, actions.call(name, arguments)).await.expect("it is answered")
}

#[tokio::test]
async fn a_cell_acts_and_hears_of_it_and_the_wait_that_it_ends_with_is_its_answer() {
    let world = World::new([Scripted::calls(&[("cell", "{}")])]);
    let (tool, mut started, end) = cell();
    let agent = world.builder().any_tool(tool).start().await.unwrap();
    let mut updates = agent.handle().updates(None).await.unwrap();
    agent.handle().say("one", "go").await.unwrap();
    let actions = started.recv().await.unwrap();
    let names: Vec<&str> = actions.specs().map(ActionSpec::name).collect();
    assert_eq!(names, ["local_send", "history_search", "history_expand", "recall", "memory"]);

    let sent = call(&actions, "local_send", json!({ "content": "from inside" })).await.unwrap();
    assert_eq!((sent.code(), sent.action.map(|a| a.to_string()).as_deref()), ("confirmed", Some("1.1.1.1")));
    assert_eq!(until(&mut updates, delivered).await, "from inside");
    let refused = call(&actions, "no_such", json!({})).await.unwrap();
    assert!(refused.told.starts_with("There is no action"), "{refused:?}");
    let tea = call(&actions, "memory", json!({ "operation": "add", "text": "tea" })).await.unwrap();
    assert!(tea.answer.is_some() && tea.end == Some(End::Confirmed), "{tea:?}");
    assert_eq!(agent.handle().store().result(agent.handle().agent(), 1).await.unwrap(), None);

    end.send(Outcome::waits("printed", r#"{"seconds":60}"#)).unwrap();
    until(&mut updates, waiting).await;
    let late = call(&actions, "local_send", json!({ "content": "too late" })).await.unwrap();
    assert_eq!((late.action, &*late.told), (None, "Not run: what calls it is over."));
    world.clock.advance(Duration::from_secs(61));
    let requests = world.model.requests(2).await;
    let Some(Message::Tool { text, .. }) = requests[1].messages.last() else { panic!("no result") };
    assert!(text.starts_with("[#0001]\nprinted\n\nWaited 1m 01s; nothing came."), "{text}");
    agent.shutdown().await;
}

#[tokio::test]
async fn whoever_has_called_hears_when_the_agent_is_gone_or_was_interrupted() {
    let world = World::new([Scripted::calls(&[("cell", "{}")]), Scripted::calls(&[("cell", "{}")])]);
    let (tool, mut started, _end) = cell();
    let agent = world.builder().any_tool(tool).start().await.unwrap();
    let mut updates = agent.handle().updates(None).await.unwrap();
    agent.handle().say("one", "go").await.unwrap();
    let first = started.recv().await.unwrap();
    agent.handle().control("stop", Control::Interrupt).await.unwrap();
    until(&mut updates, |h| matches!(h, Happening::TurnEnded { .. }).then_some(())).await;
    let late = call(&first, "local_send", json!({ "content": "too late" })).await.unwrap();
    assert_eq!(late.code(), "not_run");

    agent.handle().say("two", "again").await.unwrap();
    let second = started.recv().await.unwrap();
    world.store.fail_commit(1, Fault::Unavailable);
    let failed = call(&second, "local_send", json!({ "content": "lost" })).await;
    assert_eq!(failed, Err(AgentGone), "C-REC-4: nothing is done on the account of what was not committed");
    agent.shutdown().await;
    assert!(second.call("local_send", Map::new()).await.is_err());
}

#[tokio::test]
async fn calls_made_at_once_are_done_at_once_and_each_is_told_its_own() {
    let world = World::new([Scripted::calls(&[("cell", "{}")]), Scripted::calls(&[WAIT])]);
    let (tool, mut started, end) = cell();
    let agent = world.builder().any_tool(tool).start().await.unwrap();
    let mut updates = agent.handle().updates(None).await.unwrap();
    agent.handle().say("one", "go").await.unwrap();
    let actions = started.recv().await.unwrap();
    let calls = (0..50).map(|n| {
        let actions = actions.clone();
        tokio::spawn(async move {
            let add = json!({ "operation": "add", "text": format!("memory {n}") });
            let answered = call(&actions, "memory", add).await.unwrap();
            (answered.action.unwrap(), answered.told)
        })
    });
    let mut ids = std::collections::BTreeSet::new();
    for (n, answered) in futures_util::future::join_all(calls).await.into_iter().enumerate() {
        let (action, told) = answered.unwrap();
        assert!(told.ends_with(&format!("memory {n}")), "{told}");
        assert!(ids.insert(action), "{action} was given out twice");
    }
    end.send(Outcome::confirmed("done")).unwrap();
    until(&mut updates, waiting).await;
    let memories = agent.handle().store().memories(agent.handle().agent(), "", &[], 100).await.unwrap();
    assert_eq!(memories.len(), 50);
    agent.shutdown().await;
}
