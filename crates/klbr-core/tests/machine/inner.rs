//! Calls that a running action makes (`C-ID-1`, `C-EFF-*`), and the wait that it may end with (`C-YLD-*`).

use std::time::Duration;

use expect_test::expect;
use klbr_core::action::{Class, FailureKind, Outcome, Resource, Role};
use klbr_core::config::{Config, Toolset};
use klbr_core::context::{self, Content, Read};
use klbr_core::event::{Control, Priority};
use klbr_core::ids::{ActionId, Fence};
use klbr_core::input::{Command, Input};
use klbr_core::model::Message;
use klbr_core::policy::{Answer, Slot, Verdict};

use super::{Script, action, begun, check_with};

fn cells(config: &mut Config) {
    config.actions.push(action("cell", Role::Cell, Class::Irreversible, true));
}

fn deny() -> Answer {
    Answer::Verdict(Verdict::Deny { reason: "not that".into() })
}

fn hold() -> Answer {
    Answer::Verdict(Verdict::Hold { reason: "look at it".into() })
}

fn allow() -> Answer {
    Answer::Verdict(Verdict::Allow)
}

impl Script {
    /// The operator has said something, and the model's only call is a cell that runs now.
    fn in_a_cell(&mut self) {
        self.unlogged(|s| {
            s.operator("go");
            s.says("", &[("cell", "{}")]);
        });
    }

    /// The newest cell that is out.
    fn cell(&self) -> (Fence, ActionId) {
        let cell = |command: &Command| match command {
            Command::Act { fence, attempt } if &*attempt.name == "cell" => Some((*fence, attempt.action)),
            _ => None,
        };
        self.out.iter().rev().find_map(cell).expect("a cell is out")
    }

    /// It calls something.
    fn calls(&mut self, name: &str, arguments: &str) {
        let (fence, caller) = self.cell();
        self.note(&format!("{caller} calls {name}"));
        self.call_as(fence, caller, name, arguments);
    }

    fn call_as(&mut self, fence: Fence, caller: ActionId, name: &str, arguments: &str) {
        self.ticket += 1;
        let (name, arguments) = (name.into(), arguments.into());
        self.handle(Input::Called { ticket: self.ticket, fence, caller, name, arguments });
    }

    fn settle_inner(&mut self, outcome: Outcome) {
        self.settle_where(|action| action.is_inner(), outcome);
    }

    fn settle_cell(&mut self, outcome: Outcome) {
        self.settle_where(|action| !action.is_inner(), outcome);
    }
}

#[test]
fn a_call_of_a_cell_is_an_action_of_its_own_and_inserts_nothing() {
    // C-ID-1, C-EFF-1: reviewed as what it is, attempted, settled, told; a delivery of it counts as one (C-YLD-5).
    check_with(
        |config| {
            cells(config);
            config.bound = [Slot::ActionReview, Slot::DeliveryReview, Slot::DeliveryFormat]
                .map(|slot| (slot, Duration::from_millis(300)))
                .into();
        },
        |s| {
            s.operator("hi");
            s.says("thinking", &[("cell", "{}")]);
            s.decide(Ok(allow()));
            s.calls("local_send", r#"{"content":"a"}"#);
            s.decide(Ok(Answer::Text(Some(r#"{"content":"A"}"#.into()))));
            s.decide(Ok(allow()));
            s.settle_inner(Outcome::confirmed("Sent."));
            s.calls("look", "{}");
            s.decide(Ok(deny()));
            s.settle_cell(Outcome::confirmed("42"));
            s.show_request(2);
            s.says("", &[]);
        },
        expect![[r#"
            operator: hi
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "thinking" cell
              step_sampled 1.1
              → decide action.review
            policy answers
              decided action.review
              intended 1.1.1
              attempted 1.1.1 #1
              → act cell
            1.1.1 calls local_send
              called 1.1.1.1 local_send
              → decide delivery.format
            policy answers
              decided delivery.format
              → decide delivery.review
            policy answers
              decided delivery.review
              intended 1.1.1.1
              attempted 1.1.1.1 #1
              → deliver {"content":"A"}
            1.1.1.1 ends: Sent.
              settled 1.1.1.1 Confirmed "Sent."
              → answer 1.1.1.1 confirmed "Sent."
            1.1.1 calls look
              called 1.1.1.2 look
              → decide action.review
            policy answers
              decided action.review
              settled 1.1.1.2 Failed { why: Denied } "Denied: not that"
              → answer 1.1.1.2 denied "Denied: not that"
            1.1.1 ends: 42
              settled 1.1.1 Confirmed "42"
              step_requested 1.2
              → sample
              | tool: [#0001]
              |   42
            model: "" 
              step_sampled 1.2
              turn_ended T1 Yielded returned 0
              turn_started T2 Idle
              nudged Idle
              step_requested 2.1
              → sample
        "#]],
    );
}

#[test]
fn what_a_cell_has_called_ends_with_it() {
    // C-EFF-2: what is not begun is cancelled, what can be killed is, the rest runs to its receipt.
    check_with(
        |config| {
            cells(config);
            config.limits.parallel = 2;
        },
        |s| {
            s.in_a_cell();
            s.calls("chat_send", r#"{"content":"a"}"#);
            s.calls("process", "{}");
            s.calls("chat_send", r#"{"content":"b"}"#);
            s.settle_cell(Outcome::failed(FailureKind::Refused, "ValueError: 1"));
            s.settle_inner(Outcome::confirmed("Sent."));
            s.show_request(2);
        },
        expect![[r#"
            1.1.1 calls chat_send
              called 1.1.1.1 chat_send
              intended 1.1.1.1
              attempted 1.1.1.1 #1
              → deliver {"content":"a"}
            1.1.1 calls process
              called 1.1.1.2 process
              intended 1.1.1.2
              attempted 1.1.1.2 #1
              → act process
            1.1.1 calls chat_send
              called 1.1.1.3 chat_send
              intended 1.1.1.3
            1.1.1 ends: ValueError: 1
              detached 1.1.1.1 "Begun before the end of what had called it; the receipt of 1.1.1.1 follows."
              settled 1.1.1.2 Failed { why: Cancelled } "Cancelled while it ran: what had called it came to its end. What it had done until then is not known."
              settled 1.1.1.3 Failed { why: Cancelled } "Not run: what had called it came to its end."
              settled 1.1.1 Failed { why: Refused } "ValueError: 1\n\nWhat it did by calling actions, as recorded:\n- 1.1.1.1 chat_send: under way, the receipt follows\n- 1.1.1.2 process: cancelled\n- 1.1.1.3 chat_send: cancelled"
              step_requested 1.2
              → answer 1.1.1.1 held "Begun before the end of what had called it; the receipt of 1.1.1.1 follows."
              → cancel 1.1.1.2
              → answer 1.1.1.2 cancelled "Cancelled while it ran: what had called it came to its end. What it had done until then is not known."
              → answer 1.1.1.3 cancelled "Not run: what had called it came to its end."
              → sample
            1.1.1.1 ends: Sent.
              receipt 1.1.1.1 Confirmed
              admitted E2 Ambient
              | tool: [#0001]
              |   ValueError: 1
              |   
              |   What it did by calling actions, as recorded:
              |   - 1.1.1.1 chat_send: under way, the receipt follows
              |   - 1.1.1.2 process: cancelled
              |   - 1.1.1.3 chat_send: cancelled
        "#]],
    );
}

#[test]
fn an_interrupted_cell_answers_with_what_it_did() {
    check_with(
        |config| {
            cells(config);
            config.bound.insert(Slot::DeliveryReview, Duration::from_millis(300));
        },
        |s| {
            s.in_a_cell();
            s.calls("chat_send", r#"{"content":"a"}"#);
            s.decide(Ok(allow()));
            s.settle_inner(Outcome::confirmed("Sent."));
            s.calls("chat_send", r#"{"content":"b"}"#);
            s.decide(Ok(hold()));
            s.calls("look", "{}");
            let (fence, caller) = s.cell();
            s.control(Control::Interrupt);
            s.note("what is left of the cell calls something");
            s.call_as(fence, caller, "chat_send", r#"{"content":"c"}"#);
            let held: ActionId = "1.1.1.2".parse().unwrap();
            s.control(Control::Resolve { action: held, allow: true });
            s.settle_where(|action| action == held, Outcome::confirmed("Sent."));
        },
        expect![[r#"
            1.1.1 calls chat_send
              called 1.1.1.1 chat_send
              → decide delivery.review
            policy answers
              decided delivery.review
              intended 1.1.1.1
              attempted 1.1.1.1 #1
              → deliver {"content":"a"}
            1.1.1.1 ends: Sent.
              settled 1.1.1.1 Confirmed "Sent."
              → answer 1.1.1.1 confirmed "Sent."
            1.1.1 calls chat_send
              called 1.1.1.2 chat_send
              → decide delivery.review
            policy answers
              decided delivery.review
              held 1.1.1.2 "Held for review, 1.1.1.2: look at it"
              → answer 1.1.1.2 held "Held for review, 1.1.1.2: look at it"
            1.1.1 calls look
              called 1.1.1.3 look
              intended 1.1.1.3
              attempted 1.1.1.3 #1
              → act look
            control: interrupt
              admitted E2 Control
              settled 1.1.1.3 Failed { why: Cancelled } "Cancelled while it ran: interrupted by interrupt."
              settled 1.1.1 Failed { why: Cancelled } "Cancelled while it ran: interrupted by interrupt. What it had done until then is not known.\n\nWhat it did by calling actions, as recorded:\n- 1.1.1.1 chat_send: confirmed\n- 1.1.1.2 chat_send: held for review"
              turn_ended T1 Preempted { by: "interrupt" } returned 0
              consumed E2
              → cancel 1.1.1
              → cancel 1.1.1.3
              → answer 1.1.1.3 cancelled "Cancelled while it ran: interrupted by interrupt."
            what is left of the cell calls something
              → answer not_run "Not run: what calls it is over."
            control: resolve
              admitted E3 Control
              attempted 1.1.1.2 #1
              consumed E3
              → deliver {"content":"b"}
            1.1.1.2 ends: Sent.
              receipt 1.1.1.2 Confirmed
              admitted E4 Ambient
        "#]],
    );
}

#[test]
fn after_a_crash_what_a_cell_had_under_way_is_found_out_about_before_the_cell() {
    // C-REC-2: reconciled from the inside out; nothing that was not begun is begun, nothing is done twice.
    check_with(
        |config| {
            cells(config);
            config.limits.parallel = 4;
            config.actions[4].resource = Resource::Named("r".into());
        },
        |s| {
            s.in_a_cell();
            s.calls("chat_send", r#"{"content":"a"}"#);
            s.settle_inner(Outcome::confirmed("Sent."));
            s.calls("chat_send", r#"{"content":"b"}"#);
            s.calls("process", "{}");
            s.calls("process", "{}");
            s.calls("look", "{}");
            s.calls("local_send", r#"{"content":"c"}"#);
            s.crash();
            s.settle_inner(Outcome::unknown("nobody knows"));
            s.settle_inner(Outcome::unknown("nobody knows either"));
            s.settle_inner(Outcome::confirmed("Sent."));
            s.settle_cell(Outcome::unknown("The process ended."));
            s.show_request(2);
        },
        expect![[r#"
            1.1.1 calls chat_send
              called 1.1.1.1 chat_send
              intended 1.1.1.1
              attempted 1.1.1.1 #1
              → deliver {"content":"a"}
            1.1.1.1 ends: Sent.
              settled 1.1.1.1 Confirmed "Sent."
              → answer 1.1.1.1 confirmed "Sent."
            1.1.1 calls chat_send
              called 1.1.1.2 chat_send
              intended 1.1.1.2
              attempted 1.1.1.2 #1
              → deliver {"content":"b"}
            1.1.1 calls process
              called 1.1.1.3 process
              intended 1.1.1.3
              attempted 1.1.1.3 #1
              → act process
            1.1.1 calls process
              called 1.1.1.4 process
              intended 1.1.1.4
            1.1.1 calls look
              called 1.1.1.5 look
              intended 1.1.1.5
              attempted 1.1.1.5 #1
              → act look
            1.1.1 calls local_send
              called 1.1.1.6 local_send
              intended 1.1.1.6
              attempted 1.1.1.6 #1
              → deliver {"content":"c"}
            crash
              recovered
              settled 1.1.1.4 Failed { why: Cancelled } "Not run: the process ended, and with it what had called it."
              settled 1.1.1.5 Failed { why: Cancelled } "Cancelled while it ran: the process ended, and with it what had called it."
              attempted 1.1.1.6 #2
              → reconcile chat_send
              → reconcile process
              → deliver {"content":"c"}
            1.1.1.2 ends: nobody knows
              settled 1.1.1.2 Unknown "nobody knows"
            1.1.1.3 ends: nobody knows either
              settled 1.1.1.3 Unknown "nobody knows either"
            1.1.1.6 ends: Sent.
              settled 1.1.1.6 Confirmed "Sent."
              → reconcile cell
            1.1.1 ends: The process ended.
              settled 1.1.1 Unknown "The process ended.\n\nWhat it did by calling actions, as recorded:\n- 1.1.1.1 chat_send: confirmed\n- 1.1.1.2 chat_send: unknown whether it happened\n- 1.1.1.3 process: unknown whether it happened\n- 1.1.1.4 process: cancelled\n- 1.1.1.6 local_send: confirmed"
              step_requested 1.2
              → sample
              | tool: [#0001]
              |   The process ended.
              |   
              |   What it did by calling actions, as recorded:
              |   - 1.1.1.1 chat_send: confirmed
              |   - 1.1.1.2 chat_send: unknown whether it happened
              |   - 1.1.1.3 process: unknown whether it happened
              |   - 1.1.1.4 process: cancelled
              |   - 1.1.1.6 local_send: confirmed
        "#]],
    );
}

#[test]
fn a_wait_in_a_cell_ends_it_and_is_its_answer() {
    // C-YLD-2, C-YLD-3: calls beside it run first; the answer is made when the wait ends. It survives a crash.
    check_with(
        cells,
        |s| {
            s.operator("go");
            s.says("", &[("cell", "{}"), ("cell", "{}"), ("look", "{}"), ("local_send", "{}")]);
            s.calls("look", "{}");
            s.settle_inner(Outcome::failed(FailureKind::Refused, "no"));
            s.settle_cell(Outcome::waits("printed", r#"{"timeout_ms":60000,"reason":"tests"}"#));
            s.settle_cell(Outcome::waits("printed too", r#"{"timeout_ms":1000}"#));
            s.crash();
            s.settle(Outcome::confirmed("seen"));
            s.settle(Outcome::confirmed("Sent."));
            s.crash();
            s.pass(61);
            s.show_request(2);
        },
        expect![[r#"
            operator: go
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" cell cell look local_send
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              intended 1.1.2
              attempted 1.1.2 #1
              intended 1.1.3
              attempted 1.1.3 #1
              intended 1.1.4
              attempted 1.1.4 #1
              → act cell
              → act cell
              → act look
              → deliver {}
            1.1.2 calls look
              called 1.1.2.1 look
              intended 1.1.2.1
              attempted 1.1.2.1 #1
              → act look
            1.1.2.1 ends: no
              settled 1.1.2.1 Failed { why: Refused } "no"
              → answer 1.1.2.1 refused "no"
            1.1.1 ends: printed
              yielded 1.1.1
            1.1.2 ends: printed too
              yielded 1.1.2
            crash
              recovered
              attempted 1.1.3 #2
              attempted 1.1.4 #2
              → act look
              → deliver {}
            1.1.3 ends: seen
              settled 1.1.3 Confirmed "seen"
            1.1.4 ends: Sent.
              settled 1.1.4 Confirmed "Sent."
              settled 1.1.2 Failed { why: Invalid } "printed too\n\nNot waiting: a turn waits once, and another wait stands before this one."
              wait_entered 1.1.1 60 s
              turn_ended T1 Waits returned 0
            crash
              recovered
            61 s pass
              wait_ended "printed\n\nWaited 1m 01s; nothing came. It is 2025-11-05T00:01:01Z. You waited for: tests."
              turn_started T2 WaitTimedOut
              step_requested 2.1
              → sample
              | tool: [#0003]
              |   printed too
              |   
              |   Not waiting: a turn waits once, and another wait stands before this one.
              | tool: [#0001]
              |   seen
              | tool: [#0002]
              |   Sent.
              | tool: [#0004]
              |   printed
              |   
              |   Waited 1m 01s; nothing came. It is 2025-11-05T00:01:01Z. You waited for: tests.
        "#]],
    );
}

#[test]
fn a_wait_in_a_cell_is_refused_as_any_is() {
    check_with(
        cells,
        |s| {
            s.chat(Priority::Ambient, "room", "hello");
            s.pass(9);
            s.says("", &[("cell", "{}"), ("look", "{}")]);
            s.settle_cell(Outcome::waits("one", r#"{"timeout_ms":60000}"#));
            s.settle(Outcome::failed(FailureKind::Refused, "no"));
            s.says("", &[("cell", "{}")]);
            s.settle_cell(Outcome::waits("two", r#"{"timeout_ms":0}"#));
            s.says("", &[("cell", "{}"), ("look", "{}")]);
            s.settle_cell(Outcome::waits("three", r#"{"timeout_ms":60000}"#));
            s.operator("stop");
            s.says("text", &[("cell", "{}")]);
            s.settle_cell(Outcome::waits("four", r#"{"timeout_ms":60000}"#));
        },
        expect![[r#"
            chat room: hello
              aliased d1
              admitted E1 Ambient
            9 s pass
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" cell look
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              intended 1.1.2
              attempted 1.1.2 #1
              → act cell
              → act look
            1.1.1 ends: one
              yielded 1.1.1
            1.1.2 ends: no
              settled 1.1.2 Failed { why: Refused } "no"
              settled 1.1.1 Failed { why: NotRun } "one\n\nNot waiting: look beside it did not succeed; see its result."
              step_requested 1.2
              → sample
            model: "" cell
              step_sampled 1.2
              intended 1.2.1
              attempted 1.2.1 #1
              → act cell
            1.2.1 ends: two
              yielded 1.2.1
              settled 1.2.1 Failed { why: Invalid } "two\n\nNot waiting: timeout_ms is not a time to wait: it has to be at least a millisecond."
              step_requested 1.3
              → sample
            model: "" cell look
              step_sampled 1.3
              intended 1.3.1
              attempted 1.3.1 #1
              intended 1.3.2
              attempted 1.3.2 #1
              → act cell
              → act look
            1.3.1 ends: three
              yielded 1.3.1
            operator: stop
              admitted E2 Operator
              settled 1.3.1 Failed { why: Cancelled } "three\n\nNot waiting: interrupted by operator."
              settled 1.3.2 Failed { why: Cancelled } "Cancelled while it ran: interrupted by operator."
              turn_ended T1 Preempted { by: "operator" } returned 1
              → cancel 1.3.2
              frame_made F2 [E2]
              turn_started T2 Events
              step_requested 2.1
              → sample
            model: "text" cell
              step_sampled 2.1
              intended 2.1.1
              attempted 2.1.1 #1
              → act cell
            1.3.2 ends: four
              late_dropped the outcome of 1.3.2: four
        "#]],
    );
}

#[test]
fn a_cell_and_what_it_calls_do_not_wait_for_each_other() {
    // A limit of one, and a resource that both have.
    check_with(
        |config| {
            cells(config);
            config.limits.parallel = 1;
            config.actions[5].resource = Resource::Named("r".into());
            config.actions[4].resource = Resource::Named("r".into());
        },
        |s| {
            s.operator("go");
            s.says("", &[("cell", "{}"), ("process", "{}")]);
            s.calls("process", "{}");
            s.calls("process", "{}");
            s.settle_inner(Outcome::confirmed("one"));
            s.settle_inner(Outcome::confirmed("two"));
            s.settle_cell(Outcome::confirmed("done"));
            s.settle(Outcome::confirmed("three"));
        },
        expect![[r#"
            operator: go
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" cell process
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              intended 1.1.2
              → act cell
            1.1.1 calls process
              called 1.1.1.1 process
              intended 1.1.1.1
              attempted 1.1.1.1 #1
              → act process
            1.1.1 calls process
              called 1.1.1.2 process
              intended 1.1.1.2
            1.1.1.1 ends: one
              settled 1.1.1.1 Confirmed "one"
              attempted 1.1.1.2 #1
              → answer 1.1.1.1 confirmed "one"
              → act process
            1.1.1.2 ends: two
              settled 1.1.1.2 Confirmed "two"
              → answer 1.1.1.2 confirmed "two"
            1.1.1 ends: done
              settled 1.1.1 Confirmed "done"
              attempted 1.1.2 #1
              → act process
            1.1.2 ends: three
              settled 1.1.2 Confirmed "three"
              step_requested 1.2
              → sample
        "#]],
    );
}

#[test]
fn what_cannot_be_called_is_answered_with_why() {
    check_with(
        |config| {
            cells(config);
            config.limits.inner_calls = 4;
            config.unavailable.insert("look".into(), "There is nothing to look at.".into());
        },
        |s| {
            s.in_a_cell();
            s.calls("no_such", "{}");
            s.calls("cell", "{}");
            s.calls("wait_and_continue", r#"{"seconds":3}"#);
            s.calls("look", "[1]");
            s.calls("look", "{}");
        },
        expect![[r#"
            1.1.1 calls no_such
              called 1.1.1.1 no_such
              settled 1.1.1.1 Failed { why: Invalid } "There is no action \"no_such\". There are: local_send, chat_send, look, process."
              → answer 1.1.1.1 invalid "There is no action \"no_such\". There are: local_send, chat_send, look, process."
            1.1.1 calls cell
              called 1.1.1.2 cell
              settled 1.1.1.2 Failed { why: Invalid } "Not run: a cell runs no other cell; cell is called from none."
              → answer 1.1.1.2 invalid "Not run: a cell runs no other cell; cell is called from none."
            1.1.1 calls wait_and_continue
              called 1.1.1.3 wait_and_continue
              settled 1.1.1.3 Failed { why: Invalid } "Not waiting: wait() does that in a cell, and ends it."
              → answer 1.1.1.3 invalid "Not waiting: wait() does that in a cell, and ends it."
            1.1.1 calls look
              called 1.1.1.4 look
              settled 1.1.1.4 Failed { why: NotRun } "There is nothing to look at."
              → answer 1.1.1.4 not_run "There is nothing to look at."
            1.1.1 calls look
              → answer not_run "Not run: 4 calls are as many as one action may make."
        "#]],
    );
}

#[test]
fn a_file_that_a_cell_has_read_is_known_and_no_result_names_that() {
    // What was told to code stands in no request: it is no ground for a stub, and a ground for a change.
    let mut s = begun(cells);
    let read = |text: &str| {
        let content = Content::of(text.as_bytes());
        let (path, file) = ("a".to_owned(), "/p/a".to_owned());
        Outcome::answered(context::Answer::Read(Read { path, file, content, offset: None, limit: None }))
    };
    s.in_a_cell();
    s.calls("look", "{}");
    s.settle_inner(read("one\ntwo\n"));
    assert!(s.log.contains(r#"answer 1.1.1.1 confirmed "1: one\n2: two""#), "{}", s.log);
    s.calls("process", "{}");
    let seen = s.out.iter().rev().find_map(|command| match command {
        Command::Act { attempt, .. } => Some(attempt.seen.clone()),
        _ => None,
    });
    let hash = |text: &str| Some(Content::of(text.as_bytes()).hash());
    let seen = seen.expect("an attempt is out");
    assert!(seen.check_change("/p/a", hash("one\ntwo\n")).is_ok());
    assert!(seen.check_change("/p/a", hash("other")).is_err());
    s.settle_inner(Outcome::confirmed("made"));
    s.settle_cell(Outcome::confirmed("done"));
    s.says("", &[("look", "{}")]);
    s.settle(read("one\ntwo\n"));
    let Some(Message::Tool { text, .. }) = s.request().messages.pop() else { panic!("no result") };
    assert!(text.ends_with("1: one\n2: two"), "{text}");
}

#[test]
fn a_cell_that_the_operator_releases_runs_without_a_turn() {
    // C-EFF-2: it has a receipt, calls nothing and waits for nothing.
    check_with(
        |config| {
            cells(config);
            config.bound.insert(Slot::ActionReview, Duration::from_millis(300));
        },
        |s| {
            s.operator("go");
            s.says("", &[("cell", "{}")]);
            s.decide(Ok(hold()));
            s.control(Control::Resolve { action: "1.1.1".parse().unwrap(), allow: true });
            s.calls("look", "{}");
            s.settle_cell(Outcome::waits("printed", r#"{"timeout_ms":60000}"#));
        },
        expect![[r#"
            operator: go
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" cell
              step_sampled 1.1
              → decide action.review
            policy answers
              decided action.review
              held 1.1.1 "Held for review, 1.1.1: look at it"
              step_requested 1.2
              → sample
            control: resolve
              admitted E2 Control
              attempted 1.1.1 #1
              consumed E2
              → act cell
            1.1.1 calls look
              → answer not_run "Not run: the turn of 1.1.1 is over, and what was released since calls nothing. Call it from a new cell."
            1.1.1 ends: printed
              receipt 1.1.1 Confirmed
              admitted E3 Ambient
        "#]],
    );
}

#[test]
fn a_call_that_policy_refuses_again_and_again_ends_the_cell_and_then_the_turn() {
    // python-policy: identical vetoes in a row stop the loop and are shown. Others in between do not hide them.
    check_with(
        |config| {
            cells(config);
            config.limits.identical_vetoes = 2;
            config.bound.insert(Slot::DeliveryReview, Duration::from_millis(300));
        },
        |s| {
            s.in_a_cell();
            for answer in [deny(), hold()] {
                s.calls("chat_send", r#"{"content":"again"}"#);
                s.decide(Ok(answer));
                s.calls("chat_send", r#"{"content":"other"}"#);
                s.decide(Ok(allow()));
                s.settle_inner(Outcome::confirmed("Sent."));
            }
            s.calls("chat_send", r#"{"content":"again"}"#);
            s.show_request(2);
        },
        expect![[r#"
            1.1.1 calls chat_send
              called 1.1.1.1 chat_send
              → decide delivery.review
            policy answers
              decided delivery.review
              settled 1.1.1.1 Failed { why: Denied } "Denied: not that"
              → answer 1.1.1.1 denied "Denied: not that"
            1.1.1 calls chat_send
              called 1.1.1.2 chat_send
              → decide delivery.review
            policy answers
              decided delivery.review
              intended 1.1.1.2
              attempted 1.1.1.2 #1
              → deliver {"content":"other"}
            1.1.1.2 ends: Sent.
              settled 1.1.1.2 Confirmed "Sent."
              → answer 1.1.1.2 confirmed "Sent."
            1.1.1 calls chat_send
              called 1.1.1.3 chat_send
              → decide delivery.review
            policy answers
              decided delivery.review
              held 1.1.1.3 "Held for review, 1.1.1.3: look at it"
              → answer 1.1.1.3 held "Held for review, 1.1.1.3: look at it"
            1.1.1 calls chat_send
              called 1.1.1.4 chat_send
              → decide delivery.review
            policy answers
              decided delivery.review
              intended 1.1.1.4
              attempted 1.1.1.4 #1
              → deliver {"content":"other"}
            1.1.1.4 ends: Sent.
              settled 1.1.1.4 Confirmed "Sent."
              → answer 1.1.1.4 confirmed "Sent."
            1.1.1 calls chat_send
              called 1.1.1.5 chat_send
              settled 1.1.1.5 Failed { why: NotRun } "Not run: chat_send was refused 2 times in a row with the same arguments. It is not asked for again in this turn."
              settled 1.1.1 Failed { why: Cancelled } "Cancelled while it ran: chat_send was refused 2 times in a row with the same arguments. What it had done until then is not known.\n\nWhat it did by calling actions, as recorded:\n- 1.1.1.1 chat_send: denied\n- 1.1.1.2 chat_send: confirmed\n- 1.1.1.3 chat_send: held for review\n- 1.1.1.4 chat_send: confirmed\n- 1.1.1.5 chat_send: not run"
              nudged WrapUp
              step_requested 1.2
              → answer 1.1.1.5 not_run "Not run: chat_send was refused 2 times in a row with the same arguments. It is not asked for again in this turn."
              → cancel 1.1.1
              → sample
              | tool: [#0001]
              |   Cancelled while it ran: chat_send was refused 2 times in a row with the same arguments. What it had done until then is not known.
              |   
              |   What it did by calling actions, as recorded:
              |   - 1.1.1.1 chat_send: denied
              |   - 1.1.1.2 chat_send: confirmed
              |   - 1.1.1.3 chat_send: held for review
              |   - 1.1.1.4 chat_send: confirmed
              |   - 1.1.1.5 chat_send: not run
              | user: <nudge>
              |   chat_send was refused 2 times in a row with the same arguments. Other actions will not be run in this turn any more: say what is done and what is not, where it matters to someone, then wait.
              |   </nudge>
        "#]],
    );
}

#[test]
fn with_python_alone_the_model_is_offered_cells_and_the_wait() {
    let mut s = begun(|config| {
        cells(config);
        config.toolset = Toolset::Python;
        config.limits.steps = 2;
    });
    s.operator("go");
    let request = s.request();
    let tools: Vec<serde_json::Value> = serde_json::from_str(&request.tools).unwrap();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["wait_and_continue", "cell"]);
    assert!(request.system.contains("- `chat.send()`"), "{}", request.system);
    s.says("", &[("local_send", r#"{"content":"a"}"#)]);
    s.says("", &[("look", "{}")]);
    let Message::Tool { text, .. } = &s.request().messages[2] else { panic!("no result") };
    assert!(text.contains("Call cell with `await local.send(…)`"), "{text}");
    // C-YLD-6: a turn that wraps up can still speak where it speaks from cells, and do nothing else.
    s.says("", &[("cell", "{}")]);
    s.calls("look", "{}");
    s.calls("local_send", r#"{"content":"bye"}"#);
    assert!(s.log.contains("answer 1.3.1.1 not_run"), "{}", s.log);
    assert!(s.log.contains(r#"deliver {"content":"bye"}"#), "{}", s.log);
}
