//! Slots that choose: what a frame shows, where deliveries go, what stays behind a summary.

use std::time::Duration;

use expect_test::expect;
use klbr_core::action::Outcome;
use klbr_core::config::Config;
use klbr_core::event::{Control, NewEvent, Priority};
use klbr_core::ids::EventId;
use klbr_core::input::Command;
use klbr_core::policy::{Answer, HookFailure, Question, Slot};

use super::{Script, WAIT, begun, check_with};

fn bind(slot: Slot) -> impl FnOnce(&mut Config) {
    move |config| {
        config.bound.insert(slot, Duration::from_millis(300));
    }
}

fn events(ids: &[u64]) -> Result<Answer, HookFailure> {
    Ok(Answer::Events(ids.iter().copied().map(EventId).collect()))
}

impl Script {
    fn question(&self) -> Question {
        let asked = |command: &Command| match command {
            Command::Decide { question, .. } => Some(question.clone()),
            _ => None,
        };
        self.out.iter().find_map(asked).expect("a question is out")
    }
}

#[test]
fn what_a_frame_does_not_take_waits_for_the_next() {
    // context.select: what is left out is lost to no term of the ledger, and an answer that shows nothing is none.
    check_with(
        bind(Slot::ContextSelect),
        |s| {
            s.chat(Priority::Ambient, "one", "hello");
            s.chat(Priority::Ambient, "two", "hello");
            s.chat(Priority::Directed, "two", "you there");
            s.decide(events(&[3]));
            s.says("", &[WAIT]);
            s.pass(9);
            s.decide(events(&[]));
        },
        expect![[r#"
            chat one: hello
              aliased d1
              admitted E1 Ambient
            chat two: hello
              aliased d2
              admitted E2 Ambient
            chat two: you there
              admitted E3 Directed
              → decide context.select
            policy answers
              decided context.select
              prefix_made G1 First
              frame_made F1 [E3]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" wait_and_continue
              step_sampled 1.1
              wait_entered 1.1.1 60 s
              turn_ended T1 NothingDelivered returned 0
            9 s pass
              wait_ended "Woken after 9s by channel chat. It is 2025-11-05T00:00:09Z."
              → decide context.select
            policy answers
              decided context.select by default
              frame_made F2 [E1 E2]
              turn_started T2 Events
              step_requested 2.1
              → sample
        "#]],
    );
}

#[test]
fn the_operator_waits_for_no_choice() {
    // B-EVENT-2: a hook that does not answer does not keep the operator's words back.
    check_with(
        bind(Slot::ContextSelect),
        |s| {
            s.chat(Priority::Directed, "one", "hello");
            s.operator("hi");
            s.decide(events(&[1]));
        },
        expect![[r#"
            chat one: hello
              aliased d1
              admitted E1 Directed
              → decide context.select
            operator: hi
              admitted E2 Operator
              prefix_made G1 First
              frame_made F1 [E2]
              turn_started T1 Events
              step_requested 1.1
              → sample
            policy answers
              late_dropped a decision
        "#]],
    );
}

#[test]
fn policy_says_where_deliveries_go_by_default() {
    let mut s = begun(bind(Slot::DeliveryTarget));
    s.chat(Priority::Directed, "one", "hello");
    let Question::DeliveryTarget { conversations, target } = s.question() else { panic!("another question") };
    assert_eq!((conversations, target.as_deref()), (vec!["d1".into()], Some("d1")));
    s.decide(Ok(Answer::Text(None)));
    s.says("", &[("chat_send", r#"{"content":"a"}"#)]);
    let destination = |s: &Script| {
        let delivery = |command: &Command| match command {
            Command::Deliver { delivery, .. } => Some(delivery.attempt().frame.destination.clone()),
            _ => None,
        };
        s.out.iter().rev().find_map(delivery).expect("a delivery is out").map(|place| place.id)
    };
    assert_eq!(destination(&s), None);
    s.settle(Outcome::confirmed("Sent."));
    s.says("", &[WAIT]);
    s.chat(Priority::Ambient, "one", "hello");
    s.chat(Priority::Directed, "two", "you there");
    s.decide(Ok(Answer::Text(Some("d2".into()))));
    s.says("", &[("chat_send", r#"{"content":"b"}"#)]);
    assert_eq!(destination(&s).as_deref(), Some("two"));
    s.settle(Outcome::confirmed("Sent."));
    s.says("", &[WAIT]);
    s.chat(Priority::Ambient, "one", "hello");
    s.chat(Priority::Directed, "two", "you there");
    s.decide(Ok(Answer::Text(Some("d9".into()))));
    s.says("", &[("chat_send", r#"{"content":"c"}"#)]);
    assert_eq!(destination(&s), None, "a place that is not there is an answer that is none");
}

#[test]
fn turns_that_policy_keeps_stand_word_for_word_behind_the_summary() {
    check_with(
        bind(Slot::CompactKeep),
        |s| {
            for text in ["one ", "two "] {
                s.admit(NewEvent::operator(text, text.repeat(300)));
                s.says("", &[("local_send", "{}"), WAIT]);
                s.settle(Outcome::confirmed("Sent."));
            }
            s.operator("three");
            s.says("", &[("local_send", "{}"), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
            s.control(Control::Compact);
            let Question::CompactKeep { messages, turns } = s.question() else { panic!("another question") };
            s.note(&format!("{messages} messages, {turns} turns could stay"));
            s.decide(Ok(Answer::Count(1)));
            s.says("a summary", &[]);
            s.operator("four");
            s.show_request(0);
        },
        expect![[r#"
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" local_send wait_and_continue
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → deliver {}
            1.1.1 ends: Sent.
              settled 1.1.1 Confirmed "Sent."
              wait_entered 1.1.2 60 s
              turn_ended T1 Waits returned 0
              admitted E2 Operator
              wait_ended "Woken after 0ms by operator. It is 2025-11-05T00:00:00Z."
              frame_made F2 [E2]
              turn_started T2 Events
              step_requested 2.1
              → sample
            model: "" local_send wait_and_continue
              step_sampled 2.1
              intended 2.1.1
              attempted 2.1.1 #1
              → deliver {}
            2.1.1 ends: Sent.
              settled 2.1.1 Confirmed "Sent."
              wait_entered 2.1.2 60 s
              turn_ended T2 Waits returned 0
            operator: three
              admitted E3 Operator
              wait_ended "Woken after 0ms by operator. It is 2025-11-05T00:00:00Z."
              frame_made F3 [E3]
              turn_started T3 Events
              step_requested 3.1
              → sample
            model: "" local_send wait_and_continue
              step_sampled 3.1
              intended 3.1.1
              attempted 3.1.1 #1
              → deliver {}
            3.1.1 ends: Sent.
              settled 3.1.1 Confirmed "Sent."
              wait_entered 3.1.2 60 s
              turn_ended T3 Waits returned 0
            control: compact
              admitted E4 Control
              wait_ended "Ended after 0ms by the operator's compact. It is 2025-11-05T00:00:00Z."
              compaction_wanted
              consumed E4
              → decide compact.keep
            12 messages, 2 turns could stay
            policy answers
              decided compact.keep
              compaction_requested
              → sample
            model: "a summary" 
              compacted 8 messages
            operator: four
              admitted E5 Operator
              prefix_made G2 Compaction
              frame_made F4 [E5]
              turn_started T4 Events
              step_requested 4.1
              → sample
              | user: <instructions>
              |   The conversation so far is about to be replaced by a summary, because it takes up most of your context. Write that summary now, as plain text and without calling anything. Keep what you will need: who is who and what each of them wants, what was promised and to whom, what is under way and where it stands, what was decided and why, what was learnt, names, numbers and paths exactly as they are, and what you meant to do next. Leave out what is settled and will not matter again. Nothing is lost: all of it stays in your history, and history_search finds it.
              |   </instructions>
              | assistant: a summary
              |   
              |   (Summary 1: history_expand shows every message that it stands for.) [0 calls]
              | user: <operator id="E3" time="2025-11-05T00:00:00Z">
              |   three
              |   </operator>
              | assistant:  [2 calls]
              | tool: [#0005]
              |   Sent.
              | tool: [#0006]
              |   Ended after 0ms by the operator's compact. It is 2025-11-05T00:00:00Z.
              | user: <operator id="E5" time="2025-11-05T00:00:00Z">
              |   four
              |   </operator>
              |   <session-note>
              |   Today is 2025-11-05.
              |   </session-note>
        "#]],
    );
}
