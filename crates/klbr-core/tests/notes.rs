//! Notes: what changes while an agent lives is told at the end, in the next frame that starts a turn.

use expect_test::{Expect, expect};
use klbr_core::action::Outcome;
use klbr_core::context::prefix::Facts;
use klbr_core::context::{Answer, Remembered};
use klbr_core::event::{Body, Control, NewEvent, Priority, Source, SourceKind};
use klbr_core::record::{BreakCause, Record, Stamped};

use crate::machine::{Script, WAIT, begun};

/// Says something, has it answered, and gives the frame that showed it.
fn frame(s: &mut Script, say: &str) -> String {
    s.operator(say);
    answered(s);
    last_frame(s)
}

/// Has the turn answered and end with a wait.
fn answered(s: &mut Script) {
    s.says("", &[WAIT, ("local_send", r#"{"content":"yes"}"#)]);
    s.settle(Outcome::confirmed("Sent."));
}

fn last_frame(s: &Script) -> String {
    let text = |stamped: &Stamped| match &stamped.record {
        Record::FrameMade { text, .. } => Some(text.to_string()),
        _ => None,
    };
    s.kept.iter().rev().find_map(text).unwrap()
}

/// The prefixes made so far: why, and with which system prompt.
fn prefixes(s: &Script) -> Vec<(BreakCause, String)> {
    let made = |stamped: &Stamped| match &stamped.record {
        Record::PrefixMade { cause, system, .. } => Some((*cause, system.to_string())),
        _ => None,
    };
    s.kept.iter().filter_map(made).collect()
}

fn shows(script: impl FnOnce(&mut Script) -> Vec<String>, expected: Expect) {
    expected.assert_eq(&script(&mut begun(|_| {})).join("\n"));
}

#[test]
fn a_mode_and_a_file_that_change_are_a_note_and_no_new_prefix() {
    shows(
        |s| {
            s.facts = Facts {
                mode: "edit".to_owned(),
                mode_text: "Change what you like.".to_owned(),
                instructions: vec![("AGENTS.md".to_owned(), "Use tabs.".to_owned())],
                ..Facts::default()
            };
            let first = frame(s, "hi");
            s.facts.mode = "plan".to_owned();
            s.facts.mode_text = "Plan, change nothing.".to_owned();
            s.facts.instructions[0].1 = "Use spaces.".to_owned();
            let second = frame(s, "and now?");
            let third = frame(s, "still?");
            assert_eq!(prefixes(s).len(), 1);
            let system = &prefixes(s)[0].1;
            assert!(
                system.ends_with("# Mode\n\nChange what you like.\n\n# AGENTS.md\n\nUse tabs."),
                "{system}"
            );
            vec![first, second, third]
        },
        expect![[r#"
            <operator id="E1" time="2025-11-05T00:00:00Z">
            hi
            </operator>
            <session-note>
            Today is 2025-11-05.
            </session-note>
            <operator id="E2" time="2025-11-05T00:00:00Z">
            and now?
            </operator>
            <session-note>
            The permission mode is now plan:
            Plan, change nothing.

            AGENTS.md changed; it now reads:
            Use spaces.
            </session-note>
            <operator id="E3" time="2025-11-05T00:00:00Z">
            still?
            </operator>"#]],
    );
}

#[test]
fn where_the_agent_works_is_in_the_prompt_and_another_place_is_a_note() {
    shows(
        |s| {
            s.facts.environment = "Project: app (paths are relative to its root)".to_owned();
            frame(s, "hi");
            let system = &prefixes(s)[0].1;
            assert!(
                system.ends_with("# Environment\n\nProject: app (paths are relative to its root)"),
                "{system}"
            );
            s.facts.environment = "Project: web (paths are relative to its root)".to_owned();
            let second = frame(s, "and now?");
            s.facts.environment.clear();
            let third = frame(s, "still?");
            assert_eq!(prefixes(s).len(), 1);
            vec![second, third]
        },
        expect![[r#"
            <operator id="E2" time="2025-11-05T00:00:00Z">
            and now?
            </operator>
            <session-note>
            Where you work changed; it is now:
            Project: web (paths are relative to its root)
            </session-note>
            <operator id="E3" time="2025-11-05T00:00:00Z">
            still?
            </operator>
            <session-note>
            Where you work changed; it is now:
            (none)
            </session-note>"#]],
    );
}

#[test]
fn what_was_told_survives_a_crash_and_is_told_again_by_the_prefix_after_a_summary() {
    shows(
        |s| {
            frame(s, &"a long story ".repeat(60));
            s.facts.mode = "plan".to_owned();
            s.facts.mode_text = "Plan.".to_owned();
            frame(s, "and now?");
            s.crash();
            let after_crash = frame(s, "hello?");
            s.control(Control::Compact);
            s.says("they told me a long story", &[]);
            let after_summary = frame(s, "go on");
            assert_eq!(prefixes(s)[1].0, BreakCause::Compaction);
            let system = &prefixes(s)[1].1;
            assert!(system.ends_with("# Mode\n\nPlan."), "{system}");
            vec![after_crash, after_summary]
        },
        expect![[r#"
            <operator id="E3" time="2025-11-05T00:00:00Z">
            hello?
            </operator>
            <operator id="E5" time="2025-11-05T00:00:00Z">
            go on
            </operator>
            <session-note>
            Today is 2025-11-05.
            </session-note>"#]],
    );
}

#[test]
fn the_operators_change_of_what_is_pinned_is_a_note_and_the_models_own_is_not() {
    // C-MEM.
    shows(
        |s| {
            s.facts.memory = vec![(1, "likes tea".to_owned())];
            let mut out = vec![frame(s, "hi")];
            // Its own: the result says it.
            s.operator("remember that I like rain");
            s.says("", &[("look", "{}")]);
            s.settle(Outcome::answered(Answer::Remembered(Remembered {
                id: 2,
                pinned: Some("likes rain".to_owned()),
                text: "Remembered: 2. (pinned) likes rain".to_owned(),
            })));
            s.facts.memory.push((2, "likes rain".to_owned()));
            answered(s);
            out.push(frame(s, "thanks"));
            // The operator's, beside another of its own.
            s.operator("forget the rain");
            s.says("", &[("look", "{}")]);
            s.settle(Outcome::answered(Answer::Remembered(Remembered {
                id: 2,
                pinned: None,
                text: "Forgotten: 2. (pinned) likes rain".to_owned(),
            })));
            s.facts.memory = vec![(1, "likes coffee".to_owned())];
            answered(s);
            out.push(frame(s, "look now"));
            s.facts.memory.push((3, "is called Grace".to_owned()));
            out.push(frame(s, "and now"));
            assert_eq!(prefixes(s).len(), 1);
            out
        },
        expect![[r#"
            <operator id="E1" time="2025-11-05T00:00:00Z">
            hi
            </operator>
            <session-note>
            Today is 2025-11-05.
            </session-note>
            <operator id="E3" time="2025-11-05T00:00:00Z">
            thanks
            </operator>
            <operator id="E5" time="2025-11-05T00:00:00Z">
            look now
            </operator>
            <session-note>
            The person changed what is remembered; it is now:
            likes coffee
            </session-note>
            <operator id="E6" time="2025-11-05T00:00:00Z">
            and now
            </operator>
            <session-note>
            The person changed what is remembered; it is now:
            - likes coffee
            - is called Grace
            </session-note>"#]],
    );
}

#[test]
fn an_addition_carries_no_note_and_the_next_opening_frame_does() {
    // C-FRM-2.
    shows(
        |s| {
            s.operator("begin");
            s.facts.mode = "plan".to_owned();
            s.facts.mode_text = "Plan.".to_owned();
            let job = Source::new(SourceKind::Job, "jobs");
            let text = Body::text("the build is green");
            s.admit(NewEvent::external(job, "job:1", Priority::Directed, text));
            s.says("", &[("look", "{}")]);
            s.settle(Outcome::confirmed("Looked."));
            let addition = last_frame(s);
            answered(s);
            vec![addition, frame(s, "next")]
        },
        expect![[r#"
            <channel source="jobs" kind="job">
            <message id="E2" ref="job:1" time="2025-11-05T00:00:00Z">the build is green</message>
            </channel>
            <operator id="E3" time="2025-11-05T00:00:00Z">
            next
            </operator>
            <session-note>
            The permission mode is now plan:
            Plan.
            </session-note>"#]],
    );
}

#[test]
fn a_history_that_recorded_only_dates_is_read() {
    let kept = r#"{"seq":1,"at":0,"kind":"frame_made","frame":1,"addition":false,"events":[],"context":{},"audience":[],"text":"hi","date":"2025-11-05"}"#;
    let stamped: klbr_core::record::Stamped = serde_json::from_str(kept).unwrap();
    let Record::FrameMade { date, told, .. } = &stamped.record else { panic!("{stamped:?}") };
    assert_eq!((date.as_deref(), told), (Some("2025-11-05"), &None));
    let config = std::sync::Arc::new(klbr_core::config::Config::new("ada".parse().unwrap(), "m"));
    assert!(klbr_core::agent::Agent::restore(config, None, &[stamped]).is_ok());
}
