//! The action `python` in a living agent: what a cell calls is acted, held, killed and waited for as the core says.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::config::{Config, Toolset};
use klbr_core::event::Control;
use klbr_core::ids::Epoch;
use klbr_core::model::Message;
use klbr_core::policy::{Answer, Bindings, HookFailure, Question, Slot, Verdict};
use klbr_core::runtime::policy::Policy;
use klbr_core::runtime::{AgentBuilder, RunningAgent, Updates};
use klbr_core::testkit::{ManualClock, MemoryStore, RecordingChannel, Scripted, ScriptedModel};
use klbr_core::time::Timestamp;
use klbr_core::update::Happening;
use klbr_pyhost::*;
use tokio::time::Instant;

use crate::support::*;

/// The bar from an interrupt to the end of the cell.
const BAR: Duration = Duration::from_millis(250);

const WAIT: (&str, &str) = ("wait_and_continue", r#"{"seconds":60}"#);

/// Holds what names a secret, denies what is rude.
struct Reviewer;

#[async_trait]
impl Policy for Reviewer {
    fn slots(&self) -> Bindings {
        Bindings::from([(Slot::DeliveryReview, Duration::from_secs(60))])
    }

    async fn decide(&self, _: Epoch, question: Question) -> Result<Answer, HookFailure> {
        let Question::DeliveryReview(review) = question else {
            return Err(HookFailure::Unavailable { reason: "no such question".into() });
        };
        Ok(Answer::Verdict(match &*review.arguments {
            arguments if arguments.contains("secret") => Verdict::Hold { reason: "a secret".into() },
            arguments if arguments.contains("rude") => Verdict::Deny { reason: "be kind".into() },
            _ => Verdict::Allow,
        }))
    }
}

struct Life {
    agent: RunningAgent,
    updates: tokio::sync::Mutex<Updates>,
    model: ScriptedModel,
    clock: Arc<ManualClock>,
    chat: RecordingChannel,
    tool: Arc<PythonTool>,
}

async fn life(world: &World, toolset: Toolset) -> Life {
    let model = ScriptedModel::new([]);
    let clock = Arc::new(ManualClock::at(Timestamp(1_762_300_800_000)));
    let chat = RecordingChannel::new("chat");
    let tool = Arc::new(PythonTool::new(bench(world), world.watch()));
    let config = Config { toolset, ..Config::new("ada".parse().unwrap(), "m") };
    let agent = AgentBuilder::new(config, MemoryStore::new(), model.clone())
        .clock(clock.clone())
        .channel(chat.clone())
        .any_tool(tool.clone())
        .policy(Reviewer)
        .start()
        .await
        .unwrap();
    let updates = tokio::sync::Mutex::new(agent.handle().updates(None).await.unwrap());
    Life { agent, updates, model, clock, chat, tool }
}

fn cell(code: &str) -> String {
    serde_json::json!({ "code": code }).to_string()
}

impl Life {
    /// The model replies with a cell.
    fn then(&self, code: &str) {
        self.model.then(Scripted::calls(&[("python", &cell(code))]));
    }

    async fn say(&self, text: &str) {
        self.agent.handle().say(text, text).await.unwrap();
    }

    async fn until<T>(&self, pick: impl Fn(&Happening) -> Option<T>) -> T {
        let find = async {
            loop {
                let update = self.updates.lock().await.next().await.unwrap().expect("the agent lives");
                if let Some(found) = pick(&update.happening) {
                    return found;
                }
            }
        };
        tokio::time::timeout(WATCHDOG, find).await.expect("it happens")
    }

    /// The last result of the model's `count`-th request.
    async fn result(&self, count: usize) -> String {
        let requests = self.model.requests(count).await;
        let results = requests[count - 1].messages.iter().rev().find_map(|message| match message {
            Message::Tool { text, .. } => Some(text.to_string()),
            Message::User { .. } | Message::Assistant(_) => None,
        });
        results.expect("there is a result")
    }
}

fn waiting(happening: &Happening) -> Option<()> {
    matches!(happening, Happening::Waiting { .. }).then_some(())
}

/// Stops the agent's `n`-th turn in the middle of a cell; answers with how long the cell went on.
async fn interrupted(world: &World, life: &Life, n: u64, body: &str) -> Duration {
    let begun = world.path().join(format!("begun{n}"));
    life.then(&format!("kept{n} = 1\nawait chat.send('{n}')\nopen('begun{n}', 'w').close()\n{body}"));
    life.say(&format!("go {n}")).await;
    observed(|| begun.exists().then_some(())).await;
    let bench = life.tool.workbench().unwrap();
    let at = Instant::now();
    life.agent.handle().control(&format!("stop {n}"), Control::Stop).await.unwrap();
    // The variables are told when the cell has ended, and not before.
    let variables = bench.variables(at + WATCHDOG).await.unwrap();
    let took = at.elapsed();
    assert!(variables.iter().any(|variable| *variable.name == *format!("kept{n}")), "{variables:?}");
    let result = life.until(|h| match h {
        Happening::ActionEnded { result, .. } if result.contains("Cancelled") => Some(result.clone()),
        _ => None,
    });
    let result = result.await;
    let done = format!("- {n}.1.1.1 chat_send: confirmed");
    assert!(result.contains("interrupted by stop") && result.contains(&done), "{result}");
    took
}

macro_rules! lives {
    ($($name:ident($world:ident, $life:ident, $toolset:ident) $body:block)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let Some($world) = World::new() else { return };
            let $life = life(&$world, Toolset::$toolset).await;
            $body
            $life.agent.shutdown().await;
        })*
    };
}

lives! {
    a_cell_sends_one_is_held_with_the_other_and_waits(world, life, Python) {
        life.then(
            "a = await local.send('one')\n\
             try:\n    await chat.send('a secret')\n\
             except HostError as error:\n    held = (error.code, error.action)\n\
             try:\n    await chat.send('rude')\n\
             except HostError as error:\n    denied = (error.code, error.action, str(error))\n\
             found = await history.search('hello')\n\
             print(a, a.action, type(found).__mro__[1].__name__)\n\
             wait('1m', reason='a review')",
        );
        life.say("hello").await;
        life.until(waiting).await;
        assert!(life.chat.said().is_empty());
        let action = "1.1.1.2".parse().unwrap();
        life.agent.handle().control("allow", Control::Resolve { action, allow: true }).await.unwrap();
        let said = life.until(|h| match h {
            Happening::Delivered { action, channel, text } => Some(format!("{action} {channel} {text}")),
            _ => None,
        });
        assert_eq!(said.await, "1.1.1.2 chat a secret");
        life.then("held, denied");
        life.clock.advance(Duration::from_secs(61));
        let text = life.result(2).await;
        let parts = ["The cell ended with a wait (workbench 1).", "[stdout]\nSent. 1.1.1.1 str", "- 1.1.1.2 chat_send: held for review", "Waited 1m 01s; nothing came.", "You waited for: a review."];
        for part in parts {
            assert!(text.contains(part), "{part} in {text}");
        }
        let text = life.result(3).await;
        assert!(text.contains("(('held', '1.1.1.2'), ('denied', '1.1.1.3', 'Denied: be kind'))"), "{text}");
        assert_eq!(life.chat.said().len(), 1);
    }

    calls_at_once_run_at_once_and_others_are_named(world, life, Both) {
        life.then(
            "import asyncio\n\
             texts = [str(n) for n in range(40)]\n\
             sent = await asyncio.gather(*[chat.send(text) for text in texts])\n\
             wrong = []\n\
             for call in [chat.send(5), history.search(), memory(action='nonsense')]:\n    \
                 try:\n        await call\n    \
                 except (HostError, TypeError) as error:\n        wrong.append(getattr(error, 'code', 'type'))\n\
             len(sent), len({one.action for one in sent}), wrong",
        );
        life.say("go").await;
        let text = life.result(2).await;
        assert!(text.contains("(40, 40, "), "{text}");
        assert_eq!(life.chat.said().len(), 41);
    }

    a_workbench_that_dies_in_mid_cell_is_answered_with_what_was_done(world, life, Both) {
        life.then("kept = 1\nawait chat.send('before')\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)");
        life.then("1 + 1");
        life.say("go").await;
        let text = life.result(2).await;
        assert!(text.contains("The workbench died under the cell"), "{text}");
        assert!(text.contains("- 1.1.1.1 chat_send: confirmed"), "{text}");
        let text = life.result(3).await;
        assert!(text.contains("(workbench 2)") && text.contains("[int]\n2"), "{text}");
        assert!(text.contains("its variables are gone"), "{text}");
    }

    an_interrupt_ends_a_cell_by_the_ladder(world, life, Both) {
        let mut n = 0;
        for body in ["import asyncio\nawait asyncio.sleep(1000)", "import time\ntime.sleep(1000)", "while True:\n    pass"] {
            // Other work on the machine may take the time once; a ladder that is broken takes it always.
            let mut took = Vec::new();
            while took.last().is_none_or(|took| *took > BAR) {
                assert!(took.len() < 3, "{took:?} {body}");
                n += 1;
                took.push(interrupted(&world, &life, n, body).await);
            }
        }
    }

    a_cell_past_its_time_is_stopped_and_accounted_for(world, life, Both) {
        let arguments = serde_json::json!({ "code": "await chat.send('a')\nwhile True: pass", "timeout": 0.3 });
        life.model.then(Scripted::calls(&[("python", &arguments.to_string())]));
        life.model.then(Scripted::calls(&[("python", r#"{"code":"1","timeout":-1}"#), ("python", r#"{"code":1}"#), WAIT]));
        life.say("go").await;
        let text = life.result(2).await;
        assert!(text.contains("The cell was stopped") && text.contains("- 1.1.1.1 chat_send: confirmed"), "{text}");
        let requests = life.model.requests(3).await;
        let results: Vec<&str> = requests[2].messages.iter().filter_map(|message| match message {
            Message::Tool { text, .. } => Some(&**text),
            Message::User { .. } | Message::Assistant(_) => None,
        }).collect();
        assert!(results[1].contains("a timeout of -1 seconds is no time"), "{results:?}");
        assert!(results[2].contains("the arguments of python are invalid"), "{results:?}");
    }

    a_loop_that_asks_for_the_same_again_and_again_is_ended(world, life, Both) {
        life.then("while True:\n    try:\n        await chat.send('rude')\n    except HostError:\n        pass");
        life.say("go").await;
        let nudge = life.until(|h| match h { Happening::Nudged { text, .. } => Some(text.clone()), _ => None }).await;
        assert!(nudge.contains("chat_send was refused 3 times in a row"), "{nudge}");
        let text = life.result(2).await;
        assert!(text.contains("- 1.1.1.4 chat_send: not run"), "{text}");
        assert!(life.chat.said().is_empty());
    }
}
