//! What holds of every session: a stub names only what the model has, no id comes twice, nothing is lost.

use std::collections::{BTreeMap, BTreeSet};

use klbr_core::context::prefix::{Facts, Prefix};
use klbr_core::context::proof::{Verdict, compare};
use klbr_core::context::reasoning::carried;
use klbr_core::context::{Entry, Hygiene, Limits, ResultId};
use klbr_core::hash::Hash;
use klbr_core::ids::Generation;
use klbr_core::model::{AssistantMessage, Message, Parameters, Request};
use klbr_core::record::BreakCause;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::context::{Session, output, read};

/// What may happen in a session.
#[derive(Clone, Debug)]
enum Step {
    Read { file: usize, offset: Option<u64>, limit: Option<u64> },
    Write { file: usize, content: usize },
    List { args: usize, text: usize },
    Reply,
    Compact,
    Undo(usize),
    Restart,
}

/// Contents that differ where lines end, and in bytes that are no text.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just(b"".to_vec()),
        Just(b"x".to_vec()),
        Just("äöü\u{200b}\u{feff}".as_bytes().to_vec()),
        Just(b"\0".to_vec()),
        Just(b"3: not a number".to_vec()),
        Just(b"\xff\xfe".to_vec()),
        Just(vec![b'l'; 60]),
        Just(b"(1 more lines \xe2\x80\x94 read again with offset 2)".to_vec()),
    ];
    let end = prop::sample::select(vec![b"\n".to_vec(), b"\r\n".to_vec(), b"\r".to_vec(), b"\n\n".to_vec()]);
    let lines = prop::collection::vec((line, end), 0..12);
    (lines, any::<bool>()).prop_map(|(lines, has_last_break)| {
        let mut content: Vec<u8> = lines.into_iter().flat_map(|(line, end)| [line, end]).flatten().collect();
        if !has_last_break && content.ends_with(b"\n") {
            content.pop();
        }
        content
    })
}

fn step() -> impl Strategy<Value = Step> {
    let window = || prop::option::of(0_u64..16);
    prop_oneof![
        8 => (0_usize..3, window(), window()).prop_map(|(file, offset, limit)| Step::Read { file, offset, limit }),
        2 => (0_usize..3, 0_usize..3).prop_map(|(file, content)| Step::Write { file, content }),
        2 => (0_usize..2, 0_usize..3).prop_map(|(args, text)| Step::List { args, text }),
        1 => Just(Step::Reply),
        1 => Just(Step::Compact),
        1 => (0_usize..20).prop_map(Step::Undo),
        1 => Just(Step::Restart),
    ]
}

/// A model that sees the results of the request being built, and nothing else.
#[derive(Default)]
struct Reader {
    results: BTreeMap<ResultId, String>,
}

/// What a read's bracket says.
struct Bracket<'t> {
    from: u64,
    to: u64,
    of: u64,
    sha: &'t str,
    rest: &'t str,
}

/// Reads `[#id path lines a-b of n sha x]`.
fn bracket(text: &str) -> Option<Bracket<'_>> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    let words: Vec<&str> = inside.split(' ').collect();
    let ["lines", range, "of", of, "sha", sha] = words[words.len().checked_sub(6)?..] else { return None };
    let (from, to) = range.split_once('-')?;
    Some(Bracket { from: from.parse().ok()?, to: to.parse().ok()?, of: of.parse().ok()?, sha, rest })
}

impl Reader {
    /// The lines that a read shows, rebuilt from the texts in the request; a stub is looked up where it points.
    fn lines(&self, text: &str) -> Result<Vec<String>, String> {
        let here = bracket(text).ok_or("not a read")?;
        let (source, first) = match here.rest.strip_prefix(" Unchanged since ") {
            None => (here.rest, here.from),
            Some(stub) => {
                let id: ResultId = stub.split(',').next().unwrap_or_default().parse().map_err(|_| "no id")?;
                let earlier = self.results.get(&id).ok_or_else(|| format!("{id} is not in the request"))?;
                let earlier = bracket(earlier).ok_or("the earlier result is no read")?;
                if earlier.rest.starts_with(" Unchanged") || earlier.sha != here.sha || earlier.of != here.of
                {
                    return Err(format!("{id} does not show this content"));
                }
                (earlier.rest, earlier.from)
            }
        };
        let mut rest = source.strip_prefix('\n').ok_or("no lines")?;
        let mut lines = Vec::new();
        for number in first..=here.to {
            rest = rest.strip_prefix(&format!("{number}: ")).ok_or_else(|| format!("no line {number}"))?;
            let end = rest
                .find(&format!("\n{}: ", number + 1))
                .or_else(|| rest.find("\n\n("))
                .unwrap_or(rest.len());
            let (line, after) = rest.split_at(end);
            rest = after.strip_prefix('\n').unwrap_or(after);
            if number >= here.from {
                lines.push(line.to_owned());
            }
        }
        Ok(lines)
    }
}

/// Checks a read against the file as it is: the model has these lines, and the hash proves the rest.
fn check_read(reader: &Reader, text: &str, content: &[u8]) -> TestCaseResult {
    let Some(here) = bracket(text) else { return Ok(()) };
    let whole = String::from_utf8_lossy(content);
    let truth: Vec<&str> =
        whole.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line)).collect();
    prop_assert_eq!(here.of, truth.len() as u64);
    prop_assert!(Hash::of(content).to_string().starts_with(here.sha));
    let is_stub = here.rest.starts_with(" Unchanged");
    if text.contains("[…cut]") || (text.contains("(not valid UTF-8") && !is_stub) {
        return Ok(());
    }
    let lines = reader.lines(text).map_err(TestCaseError::fail)?;
    prop_assert_eq!(&lines, &truth[here.from as usize - 1..here.to as usize]);
    if is_stub && lines.len() as u64 == here.of {
        // All of it: the lines rebuild the very bytes, with or without a last line break.
        let joined = lines.join("\n");
        let candidates = [joined.clone(), joined + "\n"];
        prop_assert!(candidates.iter().any(|text| text.as_bytes() == content));
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_stub_names_only_what_the_model_has(
        contents in prop::collection::vec(content(), 3),
        steps in prop::collection::vec(step(), 1..40),
        narrow in any::<bool>(),
    ) {
        let limits = if narrow { Limits { window_chars: 40, ..Limits::default() } } else { Limits::default() };
        let mut session = Session::with(limits);
        let mut disk = [0_usize, 1, 2];
        let mut reader = Reader::default();
        let mut given = BTreeSet::new();
        for step in steps {
            let insertion = match step {
                Step::Read { file, offset, limit } => {
                    session.insert(&read(&format!("f {file}"), &contents[disk[file]], offset, limit))
                }
                // From outside, without a word to the session.
                Step::Write { file, content } => { disk[file] = content; continue }
                Step::List { args, text } => session.insert(&output("grep", &format!("[{args}]"), &format!("text {text}"))),
                Step::Reply => { session.hygiene.carry(|_| false); reader.results.clear(); continue }
                Step::Compact => {
                    if let Some(last) = session.hygiene.last() { session.hygiene.compacted(last) }
                    reader.results.clear();
                    continue
                }
                Step::Undo(back) => {
                    let last = session.hygiene.last().map_or(0, ResultId::number);
                    let is_taken = |id: ResultId| id.number() + back as u64 > last;
                    session.hygiene.take_back(is_taken);
                    reader.results.retain(|id, _| !is_taken(*id));
                    continue
                }
                Step::Restart => {
                    let checkpoint = serde_json::to_string(&session.hygiene).unwrap();
                    session.hygiene = serde_json::from_str(&checkpoint).unwrap();
                    continue
                }
            };
            prop_assert!(given.insert(insertion.id()), "an id came twice");
            let opening = format!("[{}", insertion.id());
            prop_assert!(insertion.text.starts_with(&opening));
            if let Some(same) = insertion.text.split_once("] Same result as ") {
                let earlier: ResultId = same.1.trim_end_matches('.').parse().unwrap();
                let named = reader.results.get(&earlier).and_then(|text| text.split_once("]\n"));
                prop_assert_eq!(named.map(|(_, text)| text), Some(insertion.stored()));
            }
            if let Step::Read { file, .. } = step {
                check_read(&reader, &insertion.text, &contents[disk[file]])?;
            }
            reader.results.insert(insertion.id(), insertion.text.clone());
        }
        // Once more all of it is still there to be recalled, to the byte.
        for (id, stored) in session.stored.clone() {
            prop_assert_eq!(recalled(&mut session, id)?, stored);
        }
    }

    #[test]
    fn what_is_recorded_restores_the_memory(steps in prop::collection::vec(step(), 1..30)) {
        let mut session = Session::default();
        let mut entries: Vec<Entry> = Vec::new();
        for step in steps {
            match step {
                Step::Read { file, offset, limit } => {
                    entries.push(session.insert(&read(&format!("f{file}"), "a\nb\nc\nd", offset, limit)).entry);
                }
                Step::List { args, text } => {
                    entries.push(session.insert(&output("list", &args.to_string(), &text.to_string())).entry);
                }
                Step::Write { .. } | Step::Reply | Step::Compact | Step::Undo(_) | Step::Restart => {}
            }
        }
        let mut restored = Hygiene::new();
        for entry in &entries {
            let stored = serde_json::to_string(entry).unwrap();
            restored.apply(&serde_json::from_str(&stored).unwrap());
        }
        prop_assert_eq!(restored, session.hygiene);
    }

    #[test]
    fn caps_and_recall_lose_nothing(
        text in prop::collection::vec(prop_oneof![Just("\n"), Just("äb"), Just("\r\n"), Just("0123456789"), Just("")], 0..80),
        numbers in prop::array::uniform6(0_u64..20),
        window in (1_u64..5, 1_u64..30),
    ) {
        let text = text.concat();
        let [max_lines, max_chars, head_lines, head_chars, tail_lines, tail_chars] = numbers;
        let limits = Limits {
            max_lines, max_chars, head_lines, head_chars, tail_lines, tail_chars,
            window_lines: window.0, window_chars: window.1,
            ..Limits::default()
        };
        let mut session = Session::with(limits);
        let insertion = session.insert(&output("bash", "{}", &text));
        prop_assert_eq!(insertion.stored(), &text);
        prop_assert_eq!(recalled(&mut session, insertion.id())?, text.clone());
        // What is shown is the text, or its beginning, one line that counts what is missing, and its end.
        let shown = insertion.text.strip_prefix("[#0001]\n").unwrap();
        if let Some((head, tail)) = shown.split_once(" lines elided, full output #0001]") {
            let (head, elided) = head.rsplit_once('[').unwrap();
            let tail = tail.strip_prefix('\n').unwrap_or(tail);
            prop_assert!(text.ends_with(tail));
            let count = |text: &str| text.split_inclusive('\n').count();
            match head.strip_suffix(" […cut]\n") {
                Some(cut) => {
                    prop_assert!(text.starts_with(cut));
                    prop_assert_eq!(1 + elided.parse::<usize>().unwrap() + count(tail), count(&text));
                }
                None => {
                    prop_assert!(text.starts_with(head));
                    prop_assert_eq!(count(head) + elided.parse::<usize>().unwrap() + count(tail), count(&text));
                }
            }
        } else {
            prop_assert_eq!(shown, &text);
        }
    }
}

/// What may happen to a prefix.
#[derive(Clone, Debug)]
enum Happening {
    Turn,
    Addition,
    Reply { reasoning: bool },
    Result,
    Memory(u8),
    Date(u8),
    Renew(BreakCause),
    Restart,
}

fn happening() -> impl Strategy<Value = Happening> {
    let cause = prop::sample::select(vec![BreakCause::Compaction, BreakCause::Reset, BreakCause::Model]);
    prop_oneof![
        3 => Just(Happening::Turn),
        1 => Just(Happening::Addition),
        4 => any::<bool>().prop_map(|reasoning| Happening::Reply { reasoning }),
        4 => Just(Happening::Result),
        1 => (0_u8..3).prop_map(Happening::Memory),
        1 => (0_u8..3).prop_map(Happening::Date),
        1 => cause.prop_map(Happening::Renew),
        1 => Just(Happening::Restart),
    ]
}

proptest! {
    #[test]
    fn requests_extend_each_other_unless_a_prefix_was_made(
        happenings in prop::collection::vec(happening(), 1..60),
    ) {
        let mut prefix = Prefix::new();
        let mut facts = Facts { date: "day 0".to_owned(), ..Facts::default() };
        let mut system = String::new();
        let mut messages: Vec<Message> = Vec::new();
        let mut before: Option<(Generation, Request)> = None;
        for happening in happenings {
            match happening {
                Happening::Turn => {
                    let note = prefix.note(&facts).map(|note| note.to_string()).unwrap_or_default();
                    messages.push(Message::User { text: format!("words\n{note}").into(), starts_turn: true });
                    // A prefix that is due is made for this request, and says what it says without the note.
                    if prefix.due().is_none() {
                        prefix.told(&facts);
                    }
                }
                Happening::Addition => messages.push(Message::User { text: "a job ended".into(), starts_turn: false }),
                Happening::Reply { reasoning } => {
                    let reasoning = reasoning.then(|| "thought".into());
                    messages.push(Message::Assistant(AssistantMessage { text: "".into(), reasoning, calls: Vec::new() }));
                }
                Happening::Result => messages.push(Message::Tool { call_id: "c".into(), text: "[#0001]\nx".into() }),
                Happening::Memory(n) => facts.memory = vec![(1, format!("memory {n}"))],
                Happening::Date(n) => facts.date = format!("day {n}"),
                Happening::Renew(cause) => {
                    prefix.renew(cause);
                    if cause != BreakCause::Model {
                        messages.clear();
                    }
                }
                Happening::Restart => prefix = serde_json::from_str(&serde_json::to_string(&prefix).unwrap()).unwrap(),
            }
            if prefix.made(&facts).is_some() {
                system = format!("remembered: {:?}", facts.memory);
            }
            prop_assert!(!system.contains("day"));
            let request = Request {
                model: "m".into(),
                system: system.as_str().into(),
                tools: "[]".into(),
                messages: carried(&messages),
                parameters: Parameters::default(),
            };
            if let Some((generation, before)) = &before {
                let verdict = compare(before, &request);
                let is_break = matches!(verdict, Verdict::Broken(_));
                prop_assert!(!is_break || *generation < prefix.generation(), "{:?}", verdict);
            }
            before = Some((prefix.generation(), request));
        }
    }
}

/// All of a stored result, put together from as many recalls as it takes.
fn recalled(session: &mut Session, id: ResultId) -> Result<String, TestCaseError> {
    let mut whole = String::new();
    let mut offset = 1;
    loop {
        let text = session.recall(&id.to_string(), Some(offset), None).text;
        let (header, body) = text.split_once('\n').unwrap_or((&text, ""));
        if header.ends_with(" empty]") {
            return Ok(whole);
        }
        let header = header.strip_suffix(']').ok_or_else(|| TestCaseError::fail("no bracket"))?;
        let words: Vec<&str> = header.split(' ').collect();
        let (_, to) = words[words.len() - 3].split_once('-').unwrap();
        let (to, of): (u64, u64) = (to.parse().unwrap(), words[words.len() - 1].parse().unwrap());
        prop_assert!(to >= offset);
        whole.push_str(body);
        if to == of {
            return Ok(whole);
        }
        // Between two windows stands a line break, unless a long line goes on.
        let stored = &session.stored[&id];
        if stored[whole.len()..].starts_with('\n') {
            whole.push('\n');
        }
        offset = to + 1;
    }
}
