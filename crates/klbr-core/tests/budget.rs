//! The budget: a summary is asked for before a context overflows, whatever the provider counts, and an overflow that
//! comes all the same is recovered from (`C-PFX-2`).

use expect_test::{Expect, expect};
use klbr_core::action::Outcome;
use klbr_core::event::Priority;
use klbr_core::input::{Command, Input};
use klbr_core::model::{Failure, Finish, Message, RawCall, Request, Sampled, Usage};
use klbr_core::record::{BreakCause, Record, Stamped};
use klbr_core::state::Archive;
use klbr_core::status::Activity;

use crate::machine::{Script, WAIT, begun, check};

/// What a token is, for the provider of these tests: as many bytes as klbr takes it for before anyone has counted.
const BYTES_PER_TOKEN: f64 = 3.5;
const CONTEXT: u64 = 16_000;

/// The true size of a request in tokens.
fn size(request: &Request) -> u64 {
    let messages: usize = request
        .messages
        .iter()
        .map(|message| match message {
            Message::User { text, .. } | Message::Tool { text, .. } => text.len(),
            Message::Assistant(said) => {
                said.text.len()
                    + said.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>()
            }
        })
        .sum();
    ((request.system.len() + request.tools.len() + messages) as f64 / BYTES_PER_TOKEN) as u64
}

fn request(s: &Script) -> Option<Request> {
    s.out.iter().rev().find_map(|command| match command {
        Command::Sample { request, .. } => Some(Request::clone(request)),
        _ => None,
    })
}

fn overflow() -> Failure {
    let message = "the request exceeds the available context size, try increasing it".to_owned();
    Failure::ContextOverflow { limit: Some(CONTEXT), message }
}

fn count(s: &Script, is_it: impl Fn(&Record) -> bool) -> usize {
    s.kept.iter().filter(|stamped| is_it(&stamped.record)).count()
}

/// A life of operator's turns that each end in a wait; the provider counts as `usage` says, of the true size.
fn live(turns: usize, usage: impl Fn(u64) -> Option<Usage>) -> Script {
    let mut s = begun(|config| config.context_tokens = CONTEXT);
    for turn in 0..turns {
        s.operator(&format!("{turn}: {}", "some words of an operator who has a lot to say ".repeat(30)));
        for _ in 0..4 {
            let Some(request) = request(&s) else { break };
            let tokens = size(&request);
            assert!(tokens <= CONTEXT, "turn {turn}: a request of {tokens} tokens does not fit");
            let usage = usage(tokens);
            if s.agent.status().compacting {
                s.reply(Sampled { text: "in short".to_owned(), usage, ..Sampled::default() });
                continue;
            }
            let call = |(name, arguments): (&str, &str)| RawCall {
                id: None,
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            };
            let calls = vec![call(("local_send", r#"{"content":"I see"}"#)), call(WAIT)];
            s.reply(Sampled { calls, finish: Finish::ToolCalls, usage, ..Sampled::default() });
            s.settle(Outcome::confirmed("Sent."));
        }
        assert!(matches!(s.agent.status().activity, Activity::Waiting { .. }), "turn {turn}");
    }
    s
}

/// Checks that no context ran over, that summaries were written by the model, and how many there were.
fn check_life(name: &str, usage: impl Fn(u64) -> Option<Usage>, summaries: std::ops::RangeInclusive<usize>) {
    let s = live(120, usage);
    let by_model = count(&s, |record| matches!(record, Record::Compacted { model: Some(_), .. }));
    let last_resorts = count(&s, |record| matches!(record, Record::Compacted { model: None, .. }));
    let failed = count(&s, |record| matches!(record, Record::CompactionFailed { .. }));
    assert!(summaries.contains(&by_model), "{name}: {by_model} summaries");
    assert_eq!((last_resorts, failed), (0, 0), "{name}");
    assert_eq!(count(&s, |record| matches!(record, Record::PrefixBroken { .. })), 0, "{name}");
}

#[test]
fn an_absurd_count_changes_nothing_and_a_summary_comes_in_time() {
    let says = |input, output, cached| move |_: u64| Some(Usage { input, output, cached });
    check_life("none", |_| None, 4..=8);
    check_life("true", |tokens| Some(Usage { input: tokens, output: 20, cached: Some(tokens / 2) }), 4..=8);
    check_life("zero", says(0, 0, Some(0)), 4..=8);
    check_life("one", says(1, 1, None), 4..=8);
    check_life("all", says(u64::MAX, u64::MAX, Some(u64::MAX)), 4..=8);
    check_life("more cached than read", says(7, 7, Some(u64::MAX)), 4..=8);
    check_life("a tenth", |tokens| Some(Usage { input: tokens / 10, output: 1, cached: None }), 4..=8);
    check_life("ten times", |tokens| Some(Usage { input: tokens * 10, output: 1, cached: None }), 4..=8);
    let apart = |tokens| Some(Usage { input: tokens / 10, output: 1, cached: Some(tokens - tokens / 10) });
    check_life("cached counted apart", apart, 4..=8);
    // A count that may be true is believed: what it takes for more is summarised sooner.
    check_life("twice", |tokens| Some(Usage { input: tokens * 2, output: 1, cached: None }), 9..=30);
}

#[test]
fn a_summary_begins_by_what_the_provider_counts_before_anything_overflows() {
    // The provider's tokens are short: two bytes each. Uncounted, the context would run over long before 75 %.
    let s = live(120, |tokens| Some(Usage { input: tokens * 7 / 4, output: 1, cached: None }));
    let mut input = 0;
    let mut at: Vec<u64> = Vec::new();
    for Stamped { record, .. } in &s.kept {
        match record {
            Record::StepSampled { usage: Some(usage), .. } => input = usage.input,
            Record::CompactionRequested { .. } => at.push(input),
            _ => {}
        }
    }
    // Of what the reply leaves, 14,000 tokens, at most three quarters; a turn's growth may come on top.
    assert!(at.len() > 5 && at.iter().all(|tokens| *tokens < CONTEXT * 3 / 4), "{at:?}");
}

/// Three turns that fit, and the request of a fourth.
fn talk(s: &mut Script) {
    for say in ["a long story ", "and another ", "and one more "] {
        s.operator(&say.repeat(20));
        s.says("", &[("local_send", r#"{"content":"I see"}"#), WAIT]);
        s.settle(Outcome::confirmed("Sent."));
    }
}

fn check_overflow(script: impl FnOnce(&mut Script), expected: Expect) {
    check(
        |s| {
            talk(s);
            script(s);
        },
        expected,
    );
}

#[test]
fn an_overflow_of_an_operators_turn_is_answered_by_the_last_resort_at_once() {
    check_overflow(
        |s| {
            s.operator("so?");
            s.log.clear();
            s.fails(overflow());
            s.show_request(0);
            s.says("", &[("local_send", r#"{"content":"so it goes"}"#), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
        },
        expect![[r#"
            model fails: the request does not fit the model's context: the request exceeds the available context size, try increasing it
              sampling_failed 4.1 for good
              compaction_wanted
              compacted 12 messages
              prefix_made G2 Compaction
              step_requested 4.2
              → sample
              | user: <instructions>
              |   The conversation so far is about to be replaced by a summary, because it takes up most of your context. Write that summary now, as plain text and without calling anything. Keep what you will need: who is who and what each of them wants, what was promised and to whom, what is under way and where it stands, what was decided and why, what was learnt, names, numbers and paths exactly as they are, and what you meant to do next. Leave out what is settled and will not matter again. Nothing is lost: all of it stays in your history, and history_search finds it.
              |   </instructions>
              | assistant: 12 messages stood here and no longer fit; no summary of them could be made (the next request would not have fit). All of them are kept: history_search, history_expand and recall find them.
              |   
              |   (Summary 1: history_expand shows every message that it stands for.) [0 calls]
              | user: <operator id="E4" time="2025-11-05T00:00:00Z">
              |   so?
              |   </operator>
            model: "" local_send wait_and_continue
              step_sampled 4.2
              intended 4.2.1
              attempted 4.2.1 #1
              → deliver {"content":"so it goes"}
            4.2.1 ends: Sent.
              settled 4.2.1 Confirmed "Sent."
              wait_entered 4.2.2 60 s
              turn_ended T4 Waits returned 0
        "#]],
    );
}

#[test]
fn another_overflow_is_answered_by_a_summary_and_the_turn_goes_on() {
    check_overflow(
        |s| {
            s.chat(Priority::Directed, "room", "so?");
            s.log.clear();
            s.fails(overflow());
            s.says("three stories were told", &[]);
            s.show_request(0);
            s.says("", &[("chat_send", r#"{"content":"so it goes"}"#), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
        },
        expect![[r#"
            model fails: the request does not fit the model's context: the request exceeds the available context size, try increasing it
              sampling_failed 4.1 for good
              compaction_wanted
              compaction_requested
              → sample
            model: "three stories were told" 
              compacted 12 messages
              prefix_made G2 Compaction
              step_requested 4.2
              → sample
              | user: <instructions>
              |   The conversation so far is about to be replaced by a summary, because it takes up most of your context. Write that summary now, as plain text and without calling anything. Keep what you will need: who is who and what each of them wants, what was promised and to whom, what is under way and where it stands, what was decided and why, what was learnt, names, numbers and paths exactly as they are, and what you meant to do next. Leave out what is settled and will not matter again. Nothing is lost: all of it stays in your history, and history_search finds it.
              |   </instructions>
              | assistant: three stories were told
              |   
              |   (Summary 1: history_expand shows every message that it stands for.) [0 calls]
              | user: <channel source="chat" kind="channel" conversation="d1">
              |   <message id="E4" ref="msg:3" time="2025-11-05T00:00:00Z">so?</message>
              |   </channel>
            model: "" chat_send wait_and_continue
              step_sampled 4.2
              intended 4.2.1
              attempted 4.2.1 #1
              → deliver {"content":"so it goes"}
            4.2.1 ends: Sent.
              settled 4.2.1 Confirmed "Sent."
              wait_entered 4.2.2 60 s
              turn_ended T4 Waits returned 0
        "#]],
    );
}

#[test]
fn the_context_that_a_refusal_tells_is_kept_to_from_then_on() {
    let mut s = begun(|config| config.context_tokens = 1_000_000);
    talk(&mut s);
    s.operator("so?");
    s.fails(Failure::ContextOverflow { limit: Some(4_096), message: "too long".to_owned() });
    s.crash();
    let end = [("local_send", r#"{"content":"so it goes"}"#), WAIT];
    s.says("", &end);
    s.settle(Outcome::confirmed("Sent."));
    for _ in 0..20 {
        s.operator(&"a long story ".repeat(60));
        assert!(size(&request(&s).unwrap()) < 4_096);
        s.says("", &end);
        s.settle(Outcome::confirmed("Sent."));
        if s.agent.status().compacting {
            return;
        }
    }
    panic!("no summary was asked for");
}

#[test]
fn a_context_that_is_found_out_late_is_kept_to_and_the_next_turn_names_its_model() {
    let mut s = begun(|config| config.context_tokens = 1_000_000);
    let end = [("local_send", r#"{"content":"so it goes"}"#), WAIT];
    s.operator(&"a long story ".repeat(600));
    let first = request(&s).unwrap();
    let found = |context_tokens| Input::ModelFound { model: "found".into(), context_tokens };
    s.handle(found(Some(4_096)));
    // A size that no provider has teaches nothing.
    s.handle(found(Some(3)));
    assert_eq!((&*s.agent.status().model, s.agent.status().context_tokens), ("found", 4_096));
    s.fails(Failure::Disconnected("gone".to_owned()));
    s.pass(5);
    assert_eq!(request(&s).unwrap(), first, "what was asked is asked again as it was");
    s.says("", &end);
    s.settle(Outcome::confirmed("Sent."));
    s.operator("so?");
    assert_eq!(&*request(&s).unwrap().model, "found");
    s.says("", &end);
    s.settle(Outcome::confirmed("Sent."));
    assert!(s.agent.status().compacting, "what fitted before does not any more");
    let causes: Vec<BreakCause> = s
        .kept
        .iter()
        .filter_map(|stamped| match &stamped.record {
            Record::PrefixMade { cause, .. } => Some(*cause),
            _ => None,
        })
        .collect();
    assert_eq!(causes, [BreakCause::First, BreakCause::Model]);
}

#[test]
fn an_overflow_of_the_summary_itself_is_answered_by_the_last_resort() {
    check_overflow(
        |s| {
            s.chat(Priority::Directed, "room", "so?");
            s.log.clear();
            s.fails(overflow());
            s.fails(overflow());
            s.show_request(0);
            s.says("", &[("local_send", r#"{"content":"so it goes"}"#), WAIT]);
            s.settle(Outcome::confirmed("Sent."));
        },
        expect![[r#"
            model fails: the request does not fit the model's context: the request exceeds the available context size, try increasing it
              sampling_failed 4.1 for good
              compaction_wanted
              compaction_requested
              → sample
            model fails: the request does not fit the model's context: the request exceeds the available context size, try increasing it
              compaction_failed "the request does not fit the model's context: the request exceeds the available context size, try increasing it" again false
              compacted 12 messages
              prefix_made G2 Compaction
              step_requested 4.2
              → sample
              | user: <instructions>
              |   The conversation so far is about to be replaced by a summary, because it takes up most of your context. Write that summary now, as plain text and without calling anything. Keep what you will need: who is who and what each of them wants, what was promised and to whom, what is under way and where it stands, what was decided and why, what was learnt, names, numbers and paths exactly as they are, and what you meant to do next. Leave out what is settled and will not matter again. Nothing is lost: all of it stays in your history, and history_search finds it.
              |   </instructions>
              | assistant: 12 messages stood here and no longer fit; no summary of them could be made (the request does not fit the model's context: the request exceeds the available context size, try increasing it). All of them are kept: history_search, history_expand and recall find them.
              |   
              |   (Summary 1: history_expand shows every message that it stands for.) [0 calls]
              | user: <channel source="chat" kind="channel" conversation="d1">
              |   <message id="E4" ref="msg:3" time="2025-11-05T00:00:00Z">so?</message>
              |   </channel>
            model: "" local_send wait_and_continue
              step_sampled 4.2
              intended 4.2.1
              attempted 4.2.1 #1
              → deliver {"content":"so it goes"}
            4.2.1 ends: Sent.
              settled 4.2.1 Confirmed "Sent."
              wait_entered 4.2.2 60 s
              turn_ended T4 NothingDelivered returned 0
        "#]],
    );
}

#[test]
fn an_overflow_with_nothing_to_summarise_is_a_dead_letter() {
    check(
        |s| {
            s.operator("far too much");
            s.log.clear();
            for _ in 0..3 {
                s.fails(overflow());
                s.pass(60);
            }
        },
        expect![[r#"
            model fails: the request does not fit the model's context: the request exceeds the available context size, try increasing it
              sampling_failed 1.1 retried later
            60 s pass
              step_retried 1.1
              → sample
            model fails: the request does not fit the model's context: the request exceeds the available context size, try increasing it
              sampling_failed 1.1 retried later
            60 s pass
              step_retried 1.1
              → sample
            model fails: the request does not fit the model's context: the request exceeds the available context size, try increasing it
              sampling_failed 1.1 for good
              dead_lettered 1 messages
              sampling_aborted "(interrupted)"
              turn_ended T1 Refused returned 0
              prefix_made G2 Refused
              turn_started T2 Idle
              nudged Idle
              step_requested 2.1
              → sample
            60 s pass
        "#]],
    );
}

#[test]
fn a_summary_is_written_while_the_agent_waits_and_the_turn_that_waits_stays() {
    let mut s = begun(|config| config.context_tokens = 4_000);
    for n in 0..6 {
        s.operator(&format!("{n} {}", "a long story ".repeat(150)));
        s.log.clear();
        s.says("", &[("local_send", r#"{"content":"I see"}"#), WAIT]);
        s.settle(Outcome::confirmed("Sent."));
        if s.agent.status().compacting {
            break;
        }
    }
    assert!(s.agent.status().compacting && matches!(s.agent.status().activity, Activity::Waiting { .. }));
    s.says("stories", &[]);
    assert!(matches!(s.agent.status().activity, Activity::Waiting { .. }));
    s.log.clear();
    s.operator("and?");
    let messages = request(&s).unwrap().messages;
    let kinds: Vec<&str> = messages
        .iter()
        .map(|message| match message {
            Message::User { text, .. } if text.starts_with("<instructions>") => "request for the summary",
            Message::User { .. } => "frame",
            Message::Assistant(said) if said.calls.is_empty() => "summary",
            Message::Assistant(_) => "calls",
            Message::Tool { .. } => "result",
        })
        .collect();
    assert_eq!(kinds, ["request for the summary", "summary", "frame", "calls", "result", "result", "frame"]);
}

#[test]
fn a_summary_that_stands_for_other_messages_than_it_says_is_found() {
    let s = live(60, |_| None);
    let read = |kept: &[Stamped]| {
        let mut archive = Archive::new();
        let covered = kept.iter().filter_map(move |stamped| archive.read(stamped).unwrap());
        covered.map(|covered| (covered.number, covered.parent, covered.is_intact)).collect::<Vec<_>>()
    };
    assert!(matches!(read(&s.kept)[..], [(1, None, true), (2, Some(1), true), ..]), "{:?}", read(&s.kept));
    let mut damaged = s.kept.clone();
    let result = damaged.iter_mut().find_map(|stamped| match &mut stamped.record {
        Record::Settled { result, .. } => Some(result),
        _ => None,
    });
    result.unwrap().full = "Sent!".into();
    assert!(matches!(read(&damaged)[..], [(1, None, false), (2, Some(1), true), ..]));
}
