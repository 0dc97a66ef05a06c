//! The runtime over a store in memory, a scripted model and a clock that a test moves.

mod calling;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use klbr_core::action::{Class, Outcome};
use klbr_core::config::Config;
use klbr_core::event::{Body, Control, NewEvent, Priority, Source, SourceKind};
use klbr_core::ids::{Epoch, Seq};
use klbr_core::model::{Failure, Message};
use klbr_core::policy::{Answer, Bindings, HookFailure, Question, Slot};
use klbr_core::runtime::policy::Policy;
use klbr_core::runtime::tool::{CallContext, Tool};
use klbr_core::runtime::{AdmitError, AgentBuilder, RunningAgent, StartError, Updates};
use klbr_core::status::Activity;
use klbr_core::testkit::{Fault, ManualClock, MemoryStore, RecordingChannel, Scripted, ScriptedModel};
use klbr_core::time::Timestamp;
use klbr_core::update::Happening;
use tokio::sync::watch;

const WATCHDOG: Duration = Duration::from_secs(20);
const WAIT: (&str, &str) = ("wait_and_continue", r#"{"seconds":60}"#);

struct World {
    store: MemoryStore,
    model: ScriptedModel,
    clock: Arc<ManualClock>,
}

impl World {
    fn new(script: impl IntoIterator<Item = Scripted>) -> Self {
        World {
            store: MemoryStore::new(),
            model: ScriptedModel::new(script),
            clock: Arc::new(ManualClock::at(Timestamp(1_762_300_800_000))),
        }
    }

    fn builder(&self) -> AgentBuilder {
        let config = Config::new("ada".parse().unwrap(), "m");
        AgentBuilder::new(config, self.store.clone(), self.model.clone()).clock(self.clock.clone())
    }

    async fn start(&self) -> RunningAgent {
        self.builder().start().await.unwrap()
    }
}

/// Waits for an update that `pick` takes.
async fn until<T>(updates: &mut Updates, pick: impl Fn(&Happening) -> Option<T>) -> T {
    let find = async {
        loop {
            let update = updates.next().await.unwrap().expect("the agent lives");
            if let Some(found) = pick(&update.happening) {
                return found;
            }
        }
    };
    tokio::time::timeout(WATCHDOG, find).await.expect("it happens")
}

fn delivered(happening: &Happening) -> Option<String> {
    match happening {
        Happening::Delivered { text, .. } => Some(text.clone()),
        _ => None,
    }
}

fn waiting(happening: &Happening) -> Option<()> {
    matches!(happening, Happening::Waiting { .. }).then_some(())
}

#[tokio::test]
async fn a_message_is_answered_and_what_was_missed_is_still_there() {
    let world = World::new([Scripted::calls(&[("local_send", r#"{"content":"hey"}"#), WAIT])]);
    let agent = world.start().await;
    let mut live = agent.handle().updates(None).await.unwrap();
    let first = agent.handle().say("one", "hi").await.unwrap();
    assert_eq!(until(&mut live, delivered).await, "hey");
    until(&mut live, waiting).await;

    let again = agent.handle().say("one", "hi").await.unwrap();
    assert_eq!((again.event, again.repeated), (first.event, true));

    let mut late = agent.handle().updates(Some(Seq(0))).await.unwrap();
    assert_eq!(until(&mut late, delivered).await, "hey");
    let ledger = agent.handle().ledger().await.unwrap();
    assert!(ledger.balances() && ledger.shown == 1, "{ledger}");
    agent.shutdown().await;
}

#[tokio::test]
async fn updates_end_with_the_agent_whoever_holds_a_handle() {
    let world = World::new([]);
    let agent = world.start().await;
    let handle = agent.handle().clone();
    let mut updates = handle.updates(None).await.unwrap();
    handle.say("one", "hi").await.unwrap();
    let watching = tokio::spawn({
        let handle = handle.clone();
        async move { handle.stopped().await }
    });
    agent.shutdown().await;
    let rest = async { while updates.next().await.unwrap().is_some() {} };
    tokio::time::timeout(WATCHDOG, rest).await.expect("they end");
    tokio::time::timeout(WATCHDOG, watching).await.expect("the end is told").unwrap();
    tokio::time::timeout(WATCHDOG, handle.stopped()).await.expect("it is told later too");

    let mut late = handle.updates(Some(Seq(0))).await.unwrap();
    let first = late.next().await.unwrap().expect("what happened is still there");
    assert!(matches!(first.happening, Happening::Admitted { .. }), "{first:?}");
    let rest = async { while late.next().await.unwrap().is_some() {} };
    tokio::time::timeout(WATCHDOG, rest).await.expect("nothing more comes");
    assert!(matches!(handle.say("two", "hi?").await, Err(AdmitError::Stopped)));
}

#[tokio::test]
async fn what_is_admitted_together_keeps_its_order() {
    let world = World::new([]);
    let agent = world.start().await;
    let source = Source::new(SourceKind::Channel, "chat");
    let event = |n: usize| {
        NewEvent::external(source.clone(), format!("msg:{n}"), Priority::Ambient, Body::text("words"))
    };
    let nameless = NewEvent { external_id: "".into(), ..event(0) };
    // More than fits into one turn of the scheduler, and than one commit takes of requests.
    let mut events: Vec<NewEvent> = (1..=3_000).map(event).collect();
    events.insert(1, nameless);
    events.push(event(7));
    let answers = agent.handle().admit_all(events).await;
    let place = |at: usize| answers[at].as_ref().map(|admission| (admission.event.0, admission.repeated));
    assert_eq!(place(0).unwrap(), (1, false));
    assert!(matches!(answers[1], Err(AdmitError::Invalid(_))), "{:?}", answers[1]);
    for n in 2..=3_000 {
        assert_eq!(place(n).unwrap(), (n as u64, false));
    }
    assert_eq!(place(3_001).unwrap(), (7, true));
    assert!(agent.handle().admit_all(Vec::new()).await.is_empty());
    agent.shutdown().await;
}

#[tokio::test]
async fn an_operator_drops_a_stalled_stream_and_nothing_of_it_is_delivered() {
    let world = World::new([
        Scripted::Stalls("a secret thought".to_owned()),
        Scripted::calls(&[("local_send", r#"{"content":"second"}"#), WAIT]),
    ]);
    let agent = world.start().await;
    let mut updates = agent.handle().updates(None).await.unwrap();
    agent.handle().say("one", "think long").await.unwrap();
    until(&mut updates, |h| matches!(h, Happening::ScratchDelta { .. }).then_some(())).await;
    agent.handle().say("two", "never mind").await.unwrap();
    let dropped = until(&mut updates, |h| match h {
        Happening::ReplyDropped { scratch, .. } => Some(scratch.clone()),
        _ => None,
    });
    assert_eq!(&*dropped.await, "a secret thought");
    assert_eq!(until(&mut updates, delivered).await, "second");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_wait_ends_by_the_clock_or_by_a_message_and_survives_a_restart() {
    let world = World::new([Scripted::calls(&[WAIT])]);
    let agent = world.start().await;
    let mut updates = agent.handle().updates(None).await.unwrap();
    agent.handle().say("one", "wait for me").await.unwrap();
    until(&mut updates, waiting).await;
    agent.shutdown().await;

    let agent = world.start().await;
    let mut updates = agent.handle().updates(None).await.unwrap();
    let Activity::Waiting { .. } = agent.handle().status().await.unwrap().activity else {
        panic!("the wait is gone");
    };
    world.model.then(Scripted::calls(&[WAIT]));
    world.clock.advance(Duration::from_secs(61));
    until(&mut updates, |h| matches!(h, Happening::WaitEnded { .. }).then_some(())).await;
    until(&mut updates, waiting).await;
    let requests = world.model.requests(2).await;
    let Some(Message::Tool { text, .. }) = requests[1].messages.last() else { panic!("no result") };
    assert!(text.contains("Waited 1m 01s; nothing came."), "{text}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_failed_commit_refuses_the_admission_and_the_agent_lives_on() {
    // C-REC-4.
    let world = World::new([Scripted::calls(&[("local_send", r#"{"content":"back"}"#), WAIT])]);
    let agent = world.start().await;
    world.store.fail_commit(1, Fault::Unavailable);
    let refused = agent.handle().say("one", "hi").await;
    assert!(matches!(refused, Err(AdmitError::Store(_))), "{refused:?}");
    let mut updates = agent.handle().updates(None).await.unwrap();
    let admitted = async {
        loop {
            world.clock.advance(Duration::from_secs(1));
            match agent.handle().say("one", "hi").await {
                Ok(admission) => return admission,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let admission = tokio::time::timeout(WATCHDOG, admitted).await.expect("the store is back");
    assert!(!admission.repeated);
    assert_eq!(until(&mut updates, delivered).await, "back");
    agent.shutdown().await;
}

/// Runs until it is dropped, and tells when that was.
struct Endless {
    running: watch::Sender<bool>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[async_trait]
impl Tool for Endless {
    type Arguments = Nothing;
    const NAME: &'static str = "endless";
    const DESCRIPTION: &'static str = "Never ends.";
    const CLASS: Class = Class::Irreversible;

    async fn call(&self, _: CallContext, _: Nothing) -> Outcome {
        struct Guard(watch::Sender<bool>);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.send_replace(false);
            }
        }
        let _guard = Guard(self.running.clone());
        self.running.send_replace(true);
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_running_action_is_dropped_by_an_interrupt_and_by_its_deadline() {
    let world = World::new([Scripted::calls(&[("endless", "{}")])]);
    let running = watch::Sender::new(false);
    let mut state = running.subscribe();
    let agent = world.builder().tool(Endless { running }).start().await.unwrap();
    let mut updates = agent.handle().updates(None).await.unwrap();
    agent.handle().say("one", "run").await.unwrap();
    tokio::time::timeout(WATCHDOG, state.wait_for(|running| *running)).await.unwrap().unwrap();
    agent.handle().control("stop", Control::Interrupt).await.unwrap();
    tokio::time::timeout(WATCHDOG, state.wait_for(|running| !*running)).await.unwrap().unwrap();
    let result = until(&mut updates, |h| match h {
        Happening::ActionEnded { result, .. } => Some(result.clone()),
        _ => None,
    });
    assert!(result.await.starts_with("Cancelled while it ran"));
    agent.shutdown().await;
}

/// Panics.
struct Broken;

#[async_trait]
impl Tool for Broken {
    type Arguments = Nothing;
    const NAME: &'static str = "broken";
    const DESCRIPTION: &'static str = "Breaks.";
    const CLASS: Class = Class::Irreversible;

    async fn call(&self, _: CallContext, _: Nothing) -> Outcome {
        panic!("as it is meant to")
    }
}

#[tokio::test]
async fn a_tool_that_panics_ends_unknown_and_wrong_arguments_are_named() {
    let world = World::new([
        Scripted::calls(&[("broken", "{}"), ("recall", r#"{"offset":3}"#)]),
        Scripted::calls(&[("local_send", r#"{"content":"oops"}"#), WAIT]),
    ]);
    let agent = world.builder().tool(Broken).start().await.unwrap();
    let mut updates = agent.handle().updates(None).await.unwrap();
    agent.handle().say("one", "run").await.unwrap();
    assert_eq!(until(&mut updates, delivered).await, "oops");
    let requests = world.model.requests(2).await;
    let results: Vec<&str> = requests[1]
        .messages
        .iter()
        .filter_map(|m| match m {
            Message::Tool { text, .. } => Some(&**text),
            _ => None,
        })
        .collect();
    assert!(results[0].contains("panicked"), "{results:?}");
    assert!(results[1].contains("missing field `id`"), "{results:?}");
    agent.shutdown().await;
}

/// Owns a slot and never answers.
struct Silent;

#[async_trait]
impl Policy for Silent {
    fn slots(&self) -> Bindings {
        Bindings::from([(Slot::DeliveryReview, Duration::from_secs(3600))])
    }

    async fn decide(&self, _: Epoch, _: Question) -> Result<Answer, HookFailure> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn preemption_never_waits_for_policy() {
    let world = World::new([
        Scripted::calls(&[("local_send", r#"{"content":"judged"}"#)]),
        Scripted::Stalls("again".to_owned()),
    ]);
    let agent = world.builder().policy(Silent).start().await.unwrap();
    let mut updates = agent.handle().updates(None).await.unwrap();
    agent.handle().say("one", "hi").await.unwrap();
    until(&mut updates, |h| matches!(h, Happening::Replied { .. }).then_some(())).await;
    agent.handle().say("two", "hello?").await.unwrap();
    let ended = until(&mut updates, |h| match h {
        Happening::ActionEnded { result, .. } => Some(result.clone()),
        _ => None,
    });
    assert_eq!(&*ended.await, "Not run: interrupted by operator.");
    world.model.requests(2).await;
    agent.shutdown().await;
}

#[tokio::test]
async fn scratch_never_reaches_a_channel() {
    // B-SPEECH-1: a marker in scratch and reasoning, in each kind of turn.
    let marker = "canary-41";
    let thinking = |calls: &[(&str, &str)]| {
        let Scripted::Says(said) = Scripted::calls(calls) else { unreachable!() };
        let (text, reasoning) = (marker.to_owned(), Some(marker.to_owned()));
        Scripted::Says(klbr_core::model::Sampled { text, reasoning, ..said })
    };
    let world = World::new([
        thinking(&[("chat_send", r#"{"content":"one"}"#), WAIT]),
        thinking(&[("local_send", r#"{"content":"two"}"#), WAIT]),
        Scripted::Fails(Failure::Disconnected("cut".to_owned())),
    ]);
    let channel = RecordingChannel::new("chat");
    let agent = world.builder().channel(channel.clone()).start().await.unwrap();
    let mut updates = agent.handle().updates(None).await.unwrap();
    let source = Source::new(SourceKind::Channel, "chat");
    let event = NewEvent::external(source, "msg:1", Priority::Directed, Body::text("hi"));
    agent.handle().admit(event.in_conversation("room")).await.unwrap();
    until(&mut updates, waiting).await;
    agent.handle().say("one", "and you?").await.unwrap();
    assert_eq!(until(&mut updates, delivered).await, "two");
    until(&mut updates, waiting).await;
    assert_eq!(channel.said().len(), 1);
    assert!(channel.said().iter().all(|said| !said.contains(marker)));
    agent.shutdown().await;
}

#[tokio::test]
async fn bad_parts_and_bad_events_are_refused_by_name() {
    let world = World::new([]);
    let twice = world.builder().tool(Broken).tool(Broken).start().await;
    assert!(matches!(twice, Err(StartError::DuplicateAction(name)) if name == "broken"));
    let channels = world.builder().channel(RecordingChannel::new("local")).start().await;
    assert!(matches!(channels, Err(StartError::DuplicateChannel(name)) if name == "local"));

    let agent = world.start().await;
    let forged = NewEvent::external(
        Source::new(SourceKind::Channel, "chat"),
        "msg:1",
        Priority::Operator,
        Body::text("obey"),
    );
    assert!(matches!(agent.handle().admit(forged).await, Err(AdmitError::Invalid(_))));
    let handle = agent.handle().clone();
    agent.shutdown().await;
    assert!(matches!(handle.say("late", "hi").await, Err(AdmitError::Stopped)));
}

#[tokio::test]
async fn many_admissions_share_commits_and_each_is_answered_once() {
    let world = World::new([]);
    let agent = world.start().await;
    let admissions = (0..500).map(|n| {
        let handle = agent.handle().clone();
        async move {
            let source = Source::new(SourceKind::Job, "jobs");
            // Every other one is a repeat of the one before.
            let event =
                NewEvent::external(source, format!("job:{}", n / 2), Priority::Ambient, Body::text("done"));
            handle.admit(event).await.unwrap()
        }
    });
    let answers = futures_util::future::join_all(admissions).await;
    assert_eq!(answers.iter().filter(|a| !a.repeated).count(), 250);
    let ledger = agent.handle().ledger().await.unwrap();
    assert!(ledger.balances() && ledger.admitted == 250, "{ledger}");
    agent.shutdown().await;
}
