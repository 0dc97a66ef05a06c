//! Attention: items, who decides about them, edits and deletions, batches (`B-ATT-*`, `C-EVT-2`, `B-DIS-4`).

use expect_test::{Expect, expect};
use klbr_core::action::{Outcome, Sent};
use klbr_core::attention::{Mark, Response, Status, mark_tool};
use klbr_core::config::Config;
use klbr_core::event::{
    Author, Body, Bucket, Change, Control, Conversation, NewEvent, Priority, Source, SourceKind,
};
use klbr_core::input::Command;
use klbr_core::model::Message;
use klbr_core::policy::{Answer, Slot};

use super::{Script, WAIT, check_with};

fn configure(config: &mut Config) {
    config.actions.push(mark_tool("chat_mark", "chat"));
    let channel = config.channels.get_mut("chat").unwrap();
    channel.instructions = Some("Read the room.".into());
}

fn check(script: impl FnOnce(&mut Script), expected: Expect) {
    check_with(configure, script, expected);
}

/// A message of the room, named by a number of the script's own.
fn message(id: u64, room: &str, text: &str) -> NewEvent {
    let author = Author { id: "7".into(), name: "Grace".into() };
    let body = Body { author: Some(author), ..Body::text(text) };
    let source = Source::new(SourceKind::Channel, "chat");
    NewEvent::external(source, format!("msg:{id}"), Priority::Ambient, body).in_conversation(room)
}

fn addressed(id: u64, room: &str, bucket: Bucket, text: &str) -> NewEvent {
    NewEvent { priority: Priority::Directed, ..message(id, room, text).for_attention(bucket) }
}

fn edit(id: u64, room: &str, text: &str) -> NewEvent {
    let newer = message(id, room, text).amending(format!("msg:{id}"), Change::Edited);
    NewEvent { external_id: format!("edit:{id}:1").into(), ..newer }
}

fn delete(id: u64, room: &str) -> NewEvent {
    let taken_back = message(id, room, "").amending(format!("msg:{id}"), Change::Deleted);
    NewEvent { external_id: format!("del:{id}").into(), body: Body::text(""), ..taken_back }
}

fn sent(room: &str, reply_to: Option<&str>, item: Option<&str>) -> Outcome {
    let conversation = Conversation { instance: "chat".into(), id: room.into() };
    let reply_to = reply_to.map(Into::into);
    let sent = Sent { conversation, reply_to, item: item.map(Into::into), messages: vec!["msg:900".into()] };
    Outcome::sent("sent", sent)
}

impl Script {
    fn hears(&mut self, event: NewEvent) {
        self.note(&format!("hears {}", event.external_id));
        self.admit(event);
    }

    fn show_anchors(&mut self) {
        let attempts = self.out.iter().filter_map(|command| match command {
            Command::Deliver { delivery, .. } => Some(delivery.attempt().frame.anchors.clone()),
            _ => None,
        });
        for anchors in attempts.collect::<Vec<_>>() {
            let names: Vec<&str> = anchors.iter().map(|anchor| &*anchor.external_id).collect();
            self.note(&format!("  : anchors [{}]", names.join(" ")));
        }
    }

    fn newest_message(&self) -> String {
        let request = self.out.iter().rev().find_map(|command| match command {
            Command::Sample { request, .. } => request.messages.last().cloned(),
            _ => None,
        });
        match request {
            Some(Message::User { text, .. }) => text.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn show_items(&mut self) {
        for item in self.agent.attention(100) {
            let by = item.decided.map_or("nobody".to_owned(), |decision| decision.by.to_string());
            let note = item.note.unwrap_or_default();
            let (bucket, status, action) = (item.bucket.as_str(), item.status.as_str(), item.action.as_str());
            self.note(&format!("  : {} {bucket} {status} {action} by {by} {note:?}", item.item));
        }
    }
}

#[test]
fn b_att_1_a_direct_message_and_a_mention_are_items_and_chatter_is_none() {
    check(
        |s| {
            s.hears(message(1, "room", "chatter"));
            s.hears(addressed(2, "dm", Bucket::Dm, "are you there?"));
            s.hears(addressed(3, "room", Bucket::Mention, "what does @ada think?"));
            s.show_request(0);
            s.show_items();
        },
        expect![[r#"
            hears msg:1
              aliased d1
              admitted E1 Ambient
            hears msg:2
              aliased d2
              admitted E2 Directed
              prefix_made G1 First
              frame_made F1 [E2 E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            hears msg:3
              admitted E3 Directed
              | user: <channel source="chat" kind="channel" conversation="d2">
              |   <message id="E2" ref="msg:2" time="2025-11-05T00:00:00Z" author="Grace" author_id="7">are you there?</message>
              |   </channel>
              |   <channel source="chat" kind="channel" conversation="d1">
              |   <message id="E1" ref="msg:1" time="2025-11-05T00:00:00Z" author="Grace" author_id="7">chatter</message>
              |   </channel>
              |   <pending>
              |   <message ref="msg:2" bucket="dm" conversation="d2" shown="above"/>
              |   </pending>
              |   <instructions channel="chat">
              |   Read the room.
              |   </instructions>
              |   <session-note>
              |   Today is 2025-11-05.
              |   </session-note>
              : msg:3 mention pending none by nobody ""
              : msg:2 dm pending none by nobody ""
        "#]],
    );
}

#[test]
fn b_att_3_a_confirmed_send_marks_its_item_and_uses_the_anchor_up() {
    // B-ATT-4: the one named; else the frame's reply target; else the newest direct message of that place.
    check(
        |s| {
            s.hears(addressed(1, "room", Bucket::Mention, "one"));
            s.says("", &[("chat_send", "{}"), ("chat_send", "{}"), WAIT]);
            s.show_anchors();
            s.settle(sent("room", Some("msg:1"), None));
            s.settle(Outcome::unknown("the line went dead"));
            s.show_items();
            s.hears(addressed(2, "dm", Bucket::Dm, "two"));
            s.hears(addressed(3, "dm", Bucket::Dm, "three"));
            s.says("", &[("chat_send", "{}")]);
            s.settle(sent("dm", None, Some("2")));
            s.show_items();
            s.says("", &[("chat_send", "{}")]);
            s.show_anchors();
            s.settle(sent("dm", None, None));
            s.show_items();
        },
        expect![[r#"
            hears msg:1
              aliased d1
              admitted E1 Directed
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" chat_send chat_send wait_and_continue
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              intended 1.1.2
              attempted 1.1.2 #1
              → deliver {}
              → deliver {}
              : anchors [msg:1]
              : anchors [msg:1]
            1.1.1 ends: sent
              marked E1 acted replied by receipt (1.1.1)
              settled 1.1.1 Confirmed "sent item:msg:1 acted"
            1.1.2 ends: the line went dead
              settled 1.1.2 Unknown "the line went dead"
              settled 1.1.3 Failed { why: NotRun } "Not waiting: chat_send beside it did not succeed; see its result."
              step_requested 1.2
              → sample
              : msg:1 mention acted replied by receipt (1.1.1) "answered by 1.1.1"
            hears msg:2
              aliased d2
              admitted E2 Directed
            hears msg:3
              admitted E3 Directed
            model: "" chat_send
              step_sampled 1.2
              intended 1.2.1
              attempted 1.2.1 #1
              → deliver {}
            1.2.1 ends: sent
              marked E2 acted messaged by receipt (1.2.1)
              settled 1.2.1 Confirmed "sent item:msg:2 acted"
              step_requested 1.3
              → sample
              : msg:3 dm pending none by nobody ""
              : msg:2 dm acted messaged by receipt (1.2.1) "answered by 1.2.1"
              : msg:1 mention acted replied by receipt (1.1.1) "answered by 1.1.1"
            model: "" chat_send
              step_sampled 1.3
              intended 1.3.1
              attempted 1.3.1 #1
              → deliver {}
              : anchors []
            1.3.1 ends: sent
              marked E3 acted messaged by receipt (1.3.1)
              settled 1.3.1 Confirmed "sent item:msg:3 acted"
              step_requested 1.4
              → sample
              : msg:3 dm acted messaged by receipt (1.3.1) "answered by 1.3.1"
              : msg:2 dm acted messaged by receipt (1.2.1) "answered by 1.2.1"
              : msg:1 mention acted replied by receipt (1.1.1) "answered by 1.1.1"
        "#]],
    );
}

#[test]
fn b_att_3_what_failed_or_cannot_be_known_marks_nothing() {
    check(
        |s| {
            s.hears(addressed(1, "dm", Bucket::Dm, "one"));
            s.says("", &[("chat_send", "{}"), ("chat_send", "{}")]);
            s.settle(Outcome::failed(klbr_core::action::FailureKind::Refused, "no permission"));
            s.settle(Outcome::unknown("the line went dead"));
            s.show_items();
        },
        expect![[r#"
            hears msg:1
              aliased d1
              admitted E1 Directed
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "" chat_send chat_send
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              intended 1.1.2
              attempted 1.1.2 #1
              → deliver {}
              → deliver {}
            1.1.1 ends: no permission
              settled 1.1.1 Failed { why: Refused } "no permission"
            1.1.2 ends: the line went dead
              settled 1.1.2 Unknown "the line went dead"
              step_requested 1.2
              → sample
              : msg:1 dm pending none by nobody ""
        "#]],
    );
}

#[test]
fn b_att_2_an_item_ages_from_when_it_was_first_shown() {
    check(
        |s| {
            s.hears(addressed(1, "dm", Bucket::Dm, "one"));
            s.says("Later.", &[("wait_and_continue", r#"{"seconds":600}"#)]);
            s.says("", &[("wait_and_continue", r#"{"seconds":600}"#)]);
            s.pass(599);
            s.show_items();
            s.pass(1);
            s.show_items();
        },
        expect![[r#"
            hears msg:1
              aliased d1
              admitted E1 Directed
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "Later." wait_and_continue
              step_sampled 1.1
              settled 1.1.1 Failed { why: NotRun } "Not waiting: something is to be done first."
              nudged Delivery
              step_requested 1.2
              → sample
            model: "" wait_and_continue
              step_sampled 1.2
              wait_entered 1.2.1 600 s
              turn_ended T1 NothingDelivered returned 0
            599 s pass
              : msg:1 dm pending none by nobody ""
            1 s pass
              marked E1 seen noted by ageing
              wait_ended "Waited 10m 00s; nothing came. It is 2025-11-05T00:10:00Z."
              turn_started T2 WaitTimedOut
              step_requested 2.1
              → sample
              : msg:1 dm seen noted by ageing "shown in frame F1, not decided"
        "#]],
    );
}

#[test]
fn b_att_2_what_was_never_shown_stays_pending_and_a_bound_slot_may_keep_an_item() {
    let bind = |config: &mut Config| {
        configure(config);
        config.bound.insert(Slot::Age, std::time::Duration::from_millis(300));
    };
    check_with(
        bind,
        |s| {
            s.operator("hold on");
            s.hears(addressed(1, "dm", Bucket::Dm, "one"));
            s.pass(1000);
            s.show_items();
            s.says("", &[("local_send", "{}"), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
            s.says("", &[("wait_and_continue", r#"{"seconds":600}"#)]);
            s.pass(600);
            s.decide(Ok(Answer::Yes(false)));
            s.show_items();
        },
        expect![[r#"
            operator: hold on
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            hears msg:1
              aliased d1
              admitted E2 Directed
            1000 s pass
              : msg:1 dm pending none by nobody ""
            model: "" local_send wait_and_continue
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → deliver {}
            1.1.1 ends: Sent.
              settled 1.1.1 Confirmed "Sent."
              wait_entered 1.1.2 60 s
              turn_ended T1 Waits returned 0
              wait_ended "Woken after 0ms by channel chat. It is 2025-11-05T00:16:40Z."
              frame_made F2 [E2]
              turn_started T2 Events
              step_requested 2.1
              → sample
            model: "" wait_and_continue
              step_sampled 2.1
              wait_entered 2.1.1 600 s
              turn_ended T2 NothingDelivered returned 0
            600 s pass
              wait_ended "Waited 10m 00s; nothing came. It is 2025-11-05T00:26:40Z."
              turn_started T3 WaitTimedOut
              step_requested 3.1
              → decide attention.age
              → sample
            policy answers
              decided attention.age
              : msg:1 dm pending none by nobody ""
        "#]],
    );
}

#[test]
fn b_att_5_the_model_and_the_operator_mark_and_a_wrong_mark_names_the_choices() {
    check(
        |s| {
            s.hears(addressed(1, "dm", Bucket::Dm, "one"));
            s.hears(addressed(2, "dm", Bucket::Dm, "two"));
            s.says(
                "",
                &[
                    ("chat_mark", r#"{"item_id":"9","status":"ignored"}"#),
                    ("chat_mark", r#"{"item_id":"1","status":"done"}"#),
                    ("chat_mark", r#"{"item_id":"msg:1","status":"ignored","note":"spam"}"#),
                ],
            );
            s.show_items();
            let mark = |status| Mark { item: "2".into(), status, action: None, note: Some("mine".into()) };
            s.control(Control::Mark(mark(Status::Seen).into()));
            s.control(Control::Mark(Mark { action: Some(Response::Noted), ..mark(Status::Pending) }.into()));
            s.show_items();
            s.crash();
            s.show_items();
        },
        expect![[r#"
            hears msg:1
              aliased d1
              admitted E1 Directed
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            hears msg:2
              admitted E2 Directed
            model: "" chat_mark chat_mark chat_mark
              step_sampled 1.1
              settled 1.1.1 Failed { why: Invalid } "Not marked: there is no item \"9\"; undecided are msg:2, msg:1."
              settled 1.1.2 Failed { why: Invalid } "Not marked: unknown variant `done`, expected one of `pending`, `seen`, `acted`, `ignored` at line 1 column 30."
              marked E1 ignored dismissed by model (1.1.3)
              settled 1.1.3 Confirmed "marked item:msg:1 status:ignored action:dismissed"
              step_requested 1.2
              → sample
              : msg:2 dm pending none by nobody ""
              : msg:1 dm ignored dismissed by model (1.1.3) "spam"
            control: mark
              admitted E3 Control
              marked E2 seen none by operator
              consumed E3
            control: mark
              admitted E4 Control
              marked E2 pending noted by operator
              consumed E4
              : msg:2 dm pending noted by operator "mine"
              : msg:1 dm ignored dismissed by model (1.1.3) "spam"
            crash
              recovered
              step_retried 1.2
              → sample
              : msg:2 dm pending noted by operator "mine"
              : msg:1 dm ignored dismissed by model (1.1.3) "spam"
        "#]],
    );
}

#[test]
fn c_evt_2_what_waits_is_shown_in_its_newest_version_and_later_edits_name_the_old_one() {
    // B-ATT-6.
    check(
        |s| {
            s.operator("hold on");
            s.hears(addressed(1, "room", Bucket::Mention, "tpyo"));
            s.hears(edit(1, "room", "typo"));
            s.hears(message(2, "room", "chatter"));
            s.hears(edit(2, "room", "chatter 2"));
            s.says("", &[("local_send", "{}"), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
            s.show_request(3);
            s.hears(NewEvent { external_id: "edit:1:2".into(), ..edit(1, "room", "typo, later") });
            s.hears(delete(1, "room"));
            s.says("", &[WAIT]);
            s.pass(8);
            s.show_request(6);
            s.show_items();
        },
        expect![[r#"
            operator: hold on
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            hears msg:1
              aliased d1
              admitted E2 Directed
            hears edit:1:1
              admitted E3 Ambient
            hears msg:2
              admitted E4 Ambient
            hears edit:2:1
              admitted E5 Ambient
            model: "" local_send wait_and_continue
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → deliver {}
            1.1.1 ends: Sent.
              settled 1.1.1 Confirmed "Sent."
              wait_entered 1.1.2 60 s
              turn_ended T1 Waits returned 0
              wait_ended "Woken after 0ms by channel chat. It is 2025-11-05T00:00:00Z."
              frame_made F2 [E2 E3 E4 E5]
              turn_started T2 Events
              step_requested 2.1
              → sample
              | tool: [#0002]
              |   Woken after 0ms by channel chat. It is 2025-11-05T00:00:00Z.
              | user: <channel source="chat" kind="channel" conversation="d1">
              |   <message id="E2" ref="msg:1" time="2025-11-05T00:00:00Z" author="Grace" author_id="7" version="2025-11-05T00:00:00Z">typo</message>
              |   <message id="E4" ref="msg:2" time="2025-11-05T00:00:00Z" author="Grace" author_id="7" version="2025-11-05T00:00:00Z">chatter 2</message>
              |   </channel>
              |   <pending>
              |   <message ref="msg:1" bucket="mention" conversation="d1" shown="above"/>
              |   </pending>
              |   <instructions channel="chat">
              |   Read the room.
              |   </instructions>
            hears edit:1:2
              admitted E6 Ambient
            hears del:1
              admitted E7 Ambient
            model: "" wait_and_continue
              step_sampled 2.1
              wait_entered 2.1.1 60 s
              turn_ended T2 NothingDelivered returned 0
            8 s pass
              wait_ended "Woken after 8s by channel chat. It is 2025-11-05T00:00:08Z."
              frame_made F3 [E6 E7]
              turn_started T3 Events
              step_requested 3.1
              → sample
              | tool: [#0003]
              |   Woken after 8s by channel chat. It is 2025-11-05T00:00:08Z.
              | user: <channel source="chat" kind="channel" conversation="d1">
              |   <message id="E6" ref="edit:1:2" time="2025-11-05T00:00:00Z" author="Grace" author_id="7" edited="msg:1">typo, later</message>
              |   <message id="E7" ref="del:1" time="2025-11-05T00:00:00Z" deleted="msg:1"/>
              |   </channel>
        "#]],
    );
}

#[test]
fn c_evt_2_what_is_deleted_before_it_is_shown_is_withdrawn() {
    check(
        |s| {
            s.operator("hold on");
            s.hears(addressed(1, "dm", Bucket::Dm, "forget it"));
            s.hears(edit(1, "dm", "really"));
            s.hears(delete(1, "dm"));
            s.show_items();
            let ledger = s.agent.ledger();
            s.note(&format!("{ledger}"));
            s.says("", &[("local_send", "{}"), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
        },
        expect![[r#"
            operator: hold on
              admitted E1 Operator
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            hears msg:1
              aliased d1
              admitted E2 Directed
            hears edit:1:1
              admitted E3 Ambient
            hears del:1
              admitted E4 Ambient
              withdrawn E2 E3 E4
            admitted 4 = waiting 0 + held 0 + framed 1 + shown 0 + folded 0 + withdrawn 3 + consumed 0 + dead_lettered 0
            model: "" local_send wait_and_continue
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → deliver {}
            1.1.1 ends: Sent.
              settled 1.1.1 Confirmed "Sent."
              wait_entered 1.1.2 60 s
              turn_ended T1 Waits returned 0
        "#]],
    );
}

#[test]
fn c_evt_2_an_edit_that_first_names_the_agent_makes_an_item_of_the_message() {
    check(
        |s| {
            s.hears(message(1, "room", "hm"));
            let newer = edit(1, "room", "hm @ada").for_attention(Bucket::Mention);
            s.hears(NewEvent { priority: Priority::Directed, ..newer });
            s.show_request(0);
            s.show_items();
        },
        expect![[r#"
            hears msg:1
              aliased d1
              admitted E1 Ambient
            hears edit:1:1
              admitted E2 Directed
              prefix_made G1 First
              frame_made F1 [E1 E2]
              turn_started T1 Events
              step_requested 1.1
              → sample
              | user: <channel source="chat" kind="channel" conversation="d1">
              |   <message id="E1" ref="msg:1" time="2025-11-05T00:00:00Z" author="Grace" author_id="7" version="2025-11-05T00:00:00Z">hm @ada</message>
              |   </channel>
              |   <pending>
              |   <message ref="msg:1" bucket="mention" conversation="d1" shown="above"/>
              |   </pending>
              |   <instructions channel="chat">
              |   Read the room.
              |   </instructions>
              |   <session-note>
              |   Today is 2025-11-05.
              |   </session-note>
              : msg:1 mention pending none by nobody ""
        "#]],
    );
}

#[test]
fn b_dis_4_instructions_come_with_the_first_the_seventh_and_large_batches() {
    check(
        |s| {
            let mut seen = Vec::new();
            for batch in 0..8u64 {
                let count = if batch == 3 { 6 } else { 1 };
                for n in 0..count {
                    s.hears(addressed(batch * 10 + n, "room", Bucket::Mention, "hello"));
                }
                if count == 6 {
                    // What came with the first of them is a frame of its own.
                    s.says("", &[]);
                }
                let has = s.newest_message().contains("<instructions channel=\"chat\">");
                seen.push(format!("{batch}: {has}"));
                s.says("", &[WAIT]);
            }
            s.log.clear();
            s.note(&seen.join("\n"));
        },
        expect![[r#"
            0: true
            1: false
            2: false
            3: true
            4: false
            5: true
            6: false
            7: false
        "#]],
    );
}

#[test]
fn a_send_to_someone_else_is_not_an_answer() {
    // C-YLD-5: the delivery has to reach that audience.
    check(
        |s| {
            s.hears(addressed(1, "dm", Bucket::Dm, "hello?"));
            s.says("Something for the room.", &[("chat_send", "{}")]);
            s.settle(sent("room", None, None));
            s.says("Done.", &[]);
            s.show_request(3);
        },
        expect![[r#"
            hears msg:1
              aliased d1
              admitted E1 Directed
              prefix_made G1 First
              frame_made F1 [E1]
              turn_started T1 Events
              step_requested 1.1
              → sample
            model: "Something for the room." chat_send
              step_sampled 1.1
              intended 1.1.1
              attempted 1.1.1 #1
              → deliver {}
            1.1.1 ends: sent
              settled 1.1.1 Confirmed "sent"
              step_requested 1.2
              → sample
            model: "Done." 
              step_sampled 1.2
              nudged Delivery
              step_requested 1.3
              → sample
              | assistant: Done. [0 calls]
              | user: <nudge>
              |   You wrote text, but text is your scratchpad and reached nobody. If you have an answer, call chat_send to d1 now; if you have none, wait.
              |   </nudge>
        "#]],
    );
}
